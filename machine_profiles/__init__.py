"""One JSON document for each machine, and the JSON Schema they follow."""
