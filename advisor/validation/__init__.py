"""Experiments described as documents, done on this machine: predicted, measured and published."""
