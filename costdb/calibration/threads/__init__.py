"""Supersteps with real threads: plans, kernels, fits and what a profile keeps of them."""
