"""Rules for computation along an axis: windows, scans, recurrences, Fourier transforms."""
