"""Work of loops: over single elements, in turn, in a pipeline, or with another index."""
