"""Predictions held against runs: the only part of the advisor that executes the code it reads."""
