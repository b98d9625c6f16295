"""Annotations that say how the arrays of a kernel are distributed.

Importing this package costs next to nothing and needs nothing but Python, so that production
code can carry the annotations; the rest of the tool is imported only where it is used.
"""

from advisor.annotations import Block, Cyclic, Dist, Mesh, kernel

TYPE_CHECKING = False  # type checkers know the name; at run time ``typing`` stays unimported
if TYPE_CHECKING:
    from advisor.selection import select as select

__all__ = ["Block", "Cyclic", "Dist", "Mesh", "kernel", "select"]


def __getattr__(name: str) -> object:
    """Return ``select``, for which the models are imported when it is first asked for."""
    if name != "select":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from costdb.launch.space import ours

    with ours():
        from advisor.selection import select

        return select
