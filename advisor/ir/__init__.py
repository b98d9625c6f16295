"""The kernel's intermediate form: the only thing that transforms see."""
