"""The command line: the program, its options, and what commands share."""
