"""The machine while it is measured: its hardware, and who else computes on its cores."""
