"""Expressions of kernels, as values, regions and sizes of the intermediate form."""
