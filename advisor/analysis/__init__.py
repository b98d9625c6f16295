"""From a kernel to the work of its slowest rank, by the owner-computes rule."""
