"""From an annotated kernel to a distributed program that runs."""
