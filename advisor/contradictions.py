"""What makes a mesh or a distribution impossible, whichever way it was written down.

The annotations check themselves with it at run time, so it imports no more than they do.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know the name; at run time nothing is imported
if TYPE_CHECKING:
    from collections.abc import Sequence


def mesh_contradictions(mesh: Sequence[tuple[str, int | str]]) -> list[str]:
    """Return what is wrong with mesh axes given as (name, extent) pairs, one line each."""
    problems = []
    names = [name for name, _ in mesh]
    for position, (name, extent) in enumerate(mesh):
        if not name.isidentifier():
            problems.append(f"mesh axis {name!r} is not a name")
        if name in names[:position]:
            problems.append(f"mesh axis {name!r} is named twice")
        if isinstance(extent, str):
            if not extent.isidentifier():
                problems.append(
                    f"the extent of mesh axis {name!r} must be a number or the name of a size,"
                    f" not {extent!r}"
                )
        elif extent < 1:
            problems.append(f"mesh axis {name!r} needs at least 1 rank, not {extent}")
    return problems


def contradictions(
    shape: Sequence[str],
    dims: Sequence[tuple[Sequence[str], int | None]],
    mesh: Sequence[tuple[str, int | str]],
    order: str,
    halo: Sequence[int],
) -> list[str]:
    """Return what is wrong with a distribution, one line each; empty when nothing is.

    Parameters
    ----------
    shape : sequence of str
        Extent of each dimension, as text.
    dims : sequence of (axes, k)
        Mesh axes of each dimension (none: not distributed), and the piece of a cyclic one.
    mesh : sequence of (name, extent)
    order : str
    halo : sequence of int
        Width for each dimension.
    """
    problems = mesh_contradictions(mesh)
    if not shape:
        problems.append("an array needs at least one dimension")
    if len(dims) != len(shape):
        problems.append(f"{len(dims)} distributions are given for extents numbering {len(shape)}")
    for number, extent in enumerate(shape):
        text = extent.strip()
        if not text:
            problems.append(f"the extent of dimension {number} is empty")
        elif text.lstrip("+-").isdecimal() and (text.startswith("-") or not text.strip("+0")):
            problems.append(f"the extent of dimension {number} must be at least 1, not {text}")
    used: dict[str, int] = {}
    known = [name for name, _ in mesh]
    for number, (axes, k) in enumerate(dims):
        if k is not None and k < 1:
            problems.append(f"cyclic pieces hold at least 1 element, not {k}")
        for axis in axes:
            if axis not in known:
                having = f"has only {', '.join(known)}" if known else "is missing"
                problems.append(
                    f"dimension {number} is distributed over axis {axis!r}, but the mesh {having}"
                )
            elif axis in used:
                where = (
                    f"twice by dimension {number}"
                    if used[axis] == number
                    else f"by both dimension {used[axis]} and dimension {number}"
                )
                problems.append(f"mesh axis {axis!r} is used {where}")
            used.setdefault(axis, number)
    if order not in ("C", "F"):
        problems.append(f"order is 'C' or 'F', not {order!r}")
    if len(halo) != len(dims):
        problems.append(f"{len(halo)} halo widths are given for dimensions numbering {len(dims)}")
    for number, width in enumerate(halo):
        if width < 0:
            problems.append(f"the halo of dimension {number} must not be negative, got {width}")
        elif width and number < len(dims) and not dims[number][0]:
            problems.append(f"halo {width} in dimension {number}, which is not distributed")
    return problems
