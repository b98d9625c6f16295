"""What the names of a file and of a kernel denote: bindings, scopes, literals."""
