"""Statements of kernels, as statements of the intermediate form."""
