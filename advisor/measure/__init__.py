"""Measured pieces: programs timed in short stretches, on arrays that we make."""
