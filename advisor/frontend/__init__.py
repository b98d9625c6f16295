"""From source text to the kernel's intermediate form."""
