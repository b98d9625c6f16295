"""Annotations that say how the arrays of a kernel are distributed.

Importing this package costs next to nothing and needs nothing but Python, so that production
code can carry the annotations; the rest of the tool is imported only where it is used.
"""

from advisor.annotations import Block, Cyclic, Dist, Mesh, kernel

__all__ = ["Block", "Cyclic", "Dist", "Mesh", "kernel"]
