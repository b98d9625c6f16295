"""The papers' experiments run on this machine: kernels and programs, predicted and measured."""
