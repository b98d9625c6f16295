"""One run over many files: what it works within, in which processes, and what it fixes."""
