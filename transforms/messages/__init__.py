"""Rules for messages and collectives of SPMD programs: which, how many, of what."""
