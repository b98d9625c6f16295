"""Work of statements over whole arrays, and the calls of a library that they are."""
