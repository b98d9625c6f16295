"""What a user writes to say how arrays are distributed: inert values and one inert decorator.

Production code imports this module, so it stays with the language itself: no ``typing``,
``dataclasses`` or ``inspect``, whose import would cost more than everything here.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know the name; at run time ``typing`` stays unimported
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, NoReturn, TypeVar, overload

    Function = TypeVar("Function", bound=Callable[..., object])

METADATA = "__advise__"  # attribute of a marked function that holds its sizes


class _Value:
    """An immutable value: equal, hashed, printed, copied and pickled by its arguments."""

    __slots__: tuple[str, ...] = ()

    def _arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return the positional and keyword arguments that build this value again."""
        raise NotImplementedError

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__slots__)))

    def __repr__(self) -> str:
        positional, keywords = self._arguments()
        written = [*map(repr, positional), *(f"{key}={val!r}" for key, val in keywords.items())]
        return f"{type(self).__name__}({', '.join(written)})"

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _build, (type(self), *self._arguments())


def _build(
    kind: type[_Value], positional: tuple[object, ...], keywords: dict[str, object]
) -> object:
    return kind(*positional, **keywords)


def _whole(value: object, what: str) -> int:
    # bool is an int to Python, but `halo=True` is a slip, not a width
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    return value


def _axis_names(axis: str | tuple[str, ...]) -> tuple[str, ...]:
    names = axis if isinstance(axis, tuple) else (axis,)
    if not names:
        raise ValueError("a distribution needs at least one mesh axis")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a mesh axis is named by a string, not {name!r}")
        if names.count(name) > 1:
            raise ValueError(f"mesh axis {name!r} is used twice in one distribution")
    return names


class Block(_Value):
    """Consecutive pieces of ``ceil(extent / ranks)`` elements, one for each rank in order.

    Parameters
    ----------
    axis : str or tuple of str
        Mesh axis that the dimension is spread over. Several axes act as one, the last
        varying fastest: ``Block(("row", "col"))`` spreads over all ranks of both.

    Examples
    --------
    >>> Block("row")
    Block('row')
    """

    __slots__ = ("axes",)
    axes: tuple[str, ...]

    def __init__(self, axis: str | tuple[str, ...]) -> None:
        self._set(axes=_axis_names(axis))

    def _arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        return (self.axes[0] if len(self.axes) == 1 else self.axes,), {}


class Cyclic(_Value):
    """Pieces of `k` consecutive elements, dealt to the ranks in turn.

    Parameters
    ----------
    axis : str or tuple of str
        Mesh axis that the dimension is spread over, as for :class:`Block`.
    k : int
        Elements in a piece, at least 1.

    Examples
    --------
    >>> Cyclic("col", k=2)
    Cyclic('col', k=2)
    """

    __slots__ = ("axes", "k")
    axes: tuple[str, ...]
    k: int

    def __init__(self, axis: str | tuple[str, ...], k: int = 1) -> None:
        if _whole(k, "k") < 1:
            raise ValueError(f"cyclic pieces hold at least 1 element, not {k}")
        self._set(axes=_axis_names(axis), k=k)

    def _arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        axis = self.axes[0] if len(self.axes) == 1 else self.axes
        return (axis,), {} if self.k == 1 else {"k": self.k}


class Mesh(_Value):
    """A grid of ranks with named axes; ranks are numbered with the last axis fastest.

    Parameters
    ----------
    **axes : int or str
        Extent of each axis, in order: a number, or the name of a size bound elsewhere.

    Examples
    --------
    >>> Mesh(row=4, col="P")
    Mesh(row=4, col='P')
    """

    __slots__ = ("axes",)
    axes: tuple[tuple[str, int | str], ...]

    def __init__(self, /, **axes: int | str) -> None:
        if not axes:
            raise ValueError("a mesh needs at least one axis")
        for name, extent in axes.items():
            if not isinstance(extent, str):
                _whole(extent, f"the extent of mesh axis {name!r}")
        for problem in mesh_contradictions(tuple(axes.items())):
            raise ValueError(problem)
        self._set(axes=tuple(axes.items()))

    def _arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        return (), dict(self.axes)


class Dist(_Value):
    """Shape of an array and how each of its dimensions is distributed over a mesh.

    Mesh axes that no dimension names hold copies of the array.

    Parameters
    ----------
    *entries : str, int, None, Block or Cyclic
        First the extents, one for each dimension (an expression over sizes, such as
        ``"N+1"``, or a number), then as many distributions: ``Block``, ``Cyclic``,
        a mesh axis by name (short for ``Block`` of it), or None for not distributed.
    on : Mesh, optional
        May be left out when nothing is distributed.
    order : {"C", "F"}
        Storage order of the array and of every rank's part of it.
    halo : int or tuple of int
        Width of the rim of neighbours' elements that each rank keeps, for all distributed
        dimensions or for each dimension.
    dtype : str, optional
        NumPy's name of the element type, where the annotated type does not say it.

    Raises
    ------
    ValueError
        When the entries contradict one another.

    Examples
    --------
    >>> Dist("N", "N", "row", None, on=Mesh(row=4))
    Dist('N', 'N', Block('row'), None, on=Mesh(row=4))
    """

    __slots__ = ("dims", "dtype", "halo", "on", "order", "shape")
    shape: tuple[str | int, ...]
    dims: tuple[Block | Cyclic | None, ...]
    on: Mesh | None
    order: Literal["C", "F"]
    halo: tuple[int, ...]
    dtype: str | None

    def __init__(
        self,
        *entries: str | int | Block | Cyclic | None,
        on: Mesh | None = None,
        order: Literal["C", "F"] = "C",
        halo: int | tuple[int, ...] = 0,
        dtype: str | None = None,
    ) -> None:
        shape, dims = _halves(entries)
        if on is not None and not isinstance(on, Mesh):
            raise TypeError(f"on= takes a Mesh, not {on!r}")
        if dtype is not None and not isinstance(dtype, str):
            raise TypeError(f"dtype= takes a name such as 'i4' or 'float64', not {dtype!r}")
        if isinstance(halo, tuple):
            widths = tuple(_whole(width, "a halo width") for width in halo)
        else:
            width = _whole(halo, "a halo width")
            widths = tuple(0 if dim is None else width for dim in dims)
            if width and not any(widths):
                raise ValueError(f"halo {width}, but no dimension is distributed")
        pairs = tuple(
            ((), None) if dim is None else (dim.axes, dim.k if isinstance(dim, Cyclic) else None)
            for dim in dims
        )
        mesh = () if on is None else on.axes
        for problem in contradictions(tuple(map(str, shape)), pairs, mesh, order, widths):
            raise ValueError(problem)
        self._set(shape=shape, dims=dims, on=on, order=order, halo=widths, dtype=dtype)

    def _arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        usual = {"on": None, "order": "C", "halo": (0,) * len(self.dims), "dtype": None}
        stated = {name: getattr(self, name) for name in usual}
        keywords = {name: value for name, value in stated.items() if value != usual[name]}
        return (*self.shape, *self.dims), keywords


def _halves(
    entries: tuple[str | int | Block | Cyclic | None, ...],
) -> tuple[tuple[str | int, ...], tuple[Block | Cyclic | None, ...]]:
    """Split the entries of a `Dist` into extents and distributions."""
    count, odd = divmod(len(entries), 2)
    if odd:
        raise ValueError(
            f"Dist takes as many distributions as extents, but got {len(entries)} entries in all"
        )
    shape: list[str | int] = []
    for number, entry in enumerate(entries[:count]):
        if isinstance(entry, str):
            shape.append(entry)
        elif entry is None or isinstance(entry, Block | Cyclic):
            raise ValueError(
                f"entry {number} of Dist must be the extent of dimension {number}, not {entry!r}:"
                f" the {count} extents come before the {count} distributions"
            )
        else:
            shape.append(_whole(entry, f"the extent of dimension {number}"))
    dims: list[Block | Cyclic | None] = []
    for number, entry in enumerate(entries[count:]):
        if isinstance(entry, str):
            dims.append(Block(entry))
        elif entry is None or isinstance(entry, Block | Cyclic):
            dims.append(entry)
        else:
            raise ValueError(
                f"entry {count + number} of Dist must be the distribution of dimension {number},"
                f" not {entry!r}: the {count} extents come before the {count} distributions, which"
                " are None where a dimension is not distributed"
            )
    return tuple(shape), tuple(dims)


if TYPE_CHECKING:

    @overload
    def kernel(function: Function, /) -> Function: ...

    @overload
    def kernel(**sizes: float) -> Callable[[Function], Function]: ...


def kernel(
    function: Callable[..., object] | None = None, /, **sizes: float
) -> Callable[..., object]:
    """Mark a function as a kernel to advise on, and bind sizes to their usual values.

    The very same function is returned; the sizes are kept in its attribute ``__advise__``.

    Parameters
    ----------
    function : callable
        Given by the bare form ``@kernel``.
    **sizes : int or float
        Usual values of size names and integer parameters, each at least 1; a float says that a
        parameter is a number and no size.

    Raises
    ------
    ValueError
        When a size is not positive.
    """
    for name, size in sizes.items():
        if not isinstance(size, float) and _whole(size, f"size {name}") < 1:
            raise ValueError(f"size {name} must be at least 1, not {size}")

    def mark(marked: Callable[..., object]) -> Callable[..., object]:
        if not callable(marked):
            raise TypeError(f"@kernel marks a function, not {marked!r}")
        try:
            setattr(marked, METADATA, dict(sizes))
        except AttributeError:
            # compiled functions have no room for it, and must work as before all the same
            return marked
        return marked

    return mark if function is None else mark(function)


# What makes a mesh or a distribution impossible, whichever way it was written down.


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
