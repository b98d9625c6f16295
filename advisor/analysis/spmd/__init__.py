"""From the steps of an SPMD program to the work of its slowest rank."""
