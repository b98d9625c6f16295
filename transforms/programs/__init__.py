"""What rules ask of SPMD programs: calls, names, views of memory, and which ranks do what."""
