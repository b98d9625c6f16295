"""A kernel at given sizes, and the symbols that its cost follows from.

Formulas of numbers are found many times faster than formulas of symbols, which is what ranking
many variants of a kernel needs. Reports need the symbols again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from operator import is_not
from typing import TypeVar, cast

from advisor.distribution import MeshSpec
from advisor.ir.kernel import DeclaredArray, Kernel, LocalArray, once
from advisor.ir.statements import Loop, walk
from advisor.ir.values import Along
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num, substitute

# Anything made of dataclasses and tuples: its symbols, and itself with other parts.

Node = TypeVar("Node")


def rebuilt(node: Node, other: Callable[[Expr], Expr]) -> Node:
    """Return a statement, a value, work, or a tuple of them, with every expression replaced.

    Parameters
    ----------
    node : dataclass, tuple, Expr or anything else
        Of what is anything else nothing changes; what holds no other expression stays the object
        that it is.
    other : callable
        Gives what stands for an expression.
    """
    return mapped(node, lambda part: other(part) if isinstance(part, Expr) else None)


def with_part(node: Node, old: object, new: object) -> Node:
    """Return a value, or a tuple of them, with another part wherever an equal one stands."""
    return mapped(node, lambda part: new if part == old else None)


def with_name(node: Node, old: str, new: str) -> Node:
    """Return statements with another name for an array, which nothing else is called."""

    def other(part: object) -> object:
        if isinstance(part, frozenset) and old in part:
            return part - {old} | {new}
        return new if part == old else None

    return mapped(node, other)


def spelled_out(node: Node) -> Node:
    """Return statements or values with what functions along axes come to in their places."""
    return mapped(
        node, lambda part: spelled_out(part.computed) if isinstance(part, Along) else None
    )


def mapped(node: Node, other: Callable[[object], object]) -> Node:
    """Return a node with its parts replaced where `other` gives something, outermost first."""
    changed = other(node)
    if changed is not None:
        return cast(Node, changed)
    if isinstance(node, tuple):
        parts = [mapped(part, other) for part in node]
        return cast(Node, tuple(parts)) if any(map(is_not, parts, node)) else node
    names = _names_of(cast(type, type(node)))
    before = [getattr(node, name) for name in names]
    after = [mapped(part, other) for part in before]
    if any(map(is_not, after, before)):
        return type(node)(**dict(zip(names, after, strict=True)))
    return node


def symbols(node: object) -> frozenset[str]:
    """Return every symbol in the expressions of a statement, a value, a region, or several."""
    found: set[str] = set()
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, Expr):
            found |= free_symbols(part)
            continue
        names = _names_of(cast(type, type(part)))
        pending += part if isinstance(part, tuple) else [getattr(part, name) for name in names]
    return frozenset(found)


@lru_cache(maxsize=256)
def _names_of(kind: type) -> tuple[str, ...]:
    """Return what of the objects of a type may hold expressions."""
    if not is_dataclass(kind) or kind is Span:
        return ()
    return tuple(field.name for field in fields(kind))


# A kernel at given sizes.


Bindings = Mapping[str, Expr]


def at_sizes(kernel: Kernel, sizes: Mapping[str, int | float]) -> Kernel:
    """Return a kernel with values for its sizes; sizes that are no whole numbers stay symbols.

    Parameters
    ----------
    kernel : Kernel
    sizes : mapping of str to number
    """
    return _at(kernel, tuple((name, one) for name, one in sizes.items() if isinstance(one, int)))


@once
def _at(kernel: Kernel, sizes: tuple[tuple[str, int], ...]) -> Kernel:
    whole = dict(sizes)
    bindings = {name: num(value) for name, value in whole.items()}
    return replace(
        kernel,
        arrays={name: _declared(array, bindings, whole) for name, array in kernel.arrays.items()},
        locals={name: _local(array, bindings) for name, array in kernel.locals.items()},
        body=rebuilt(
            kernel.body,
            lambda expr: (
                expr if free_symbols(expr).isdisjoint(bindings) else substitute(expr, bindings)
            ),
        ),
    )


@once
def symbols_of(kernel: Kernel) -> frozenset[str]:
    """Return the symbols that the cost of a kernel may depend on.

    Parameters
    ----------
    kernel : Kernel
    """
    indices = _indices_of(kernel)
    return _extents_of(kernel).union(*(symbols(one) - indices for one in kernel.body))


def whole_numbers_of(kernel: Kernel) -> frozenset[str]:
    """Return the symbols that stand for whole numbers: extents, and the program's own integers.

    A symbol that only a pragma names, as in ``cost a*N us``, may be any number.

    Parameters
    ----------
    kernel : Kernel
    """
    own = frozenset(kernel.context.scalar_texts) - _indices_of(kernel)
    return _extents_of(kernel).union(kernel.sizes, own)


def _indices_of(kernel: Kernel) -> frozenset[str]:
    return frozenset(loop.variable for loop in walk(kernel.body) if isinstance(loop, Loop))


def _extents_of(kernel: Kernel) -> frozenset[str]:
    """Return the symbols in the shapes of arrays and in those of meshes."""
    extents = [
        extent for name in (*kernel.arrays, *kernel.locals) for extent in kernel.extents(name)
    ]
    ranks = (
        extent
        for array in kernel.arrays.values()
        for _, extent in array.spec.mesh.axes
        if isinstance(extent, str)
    )
    return frozenset(ranks).union(*map(free_symbols, extents))


def _declared(array: DeclaredArray, bindings: Bindings, sizes: Mapping[str, int]) -> DeclaredArray:
    axes = tuple(
        (name, sizes.get(extent, extent) if isinstance(extent, str) else extent)
        for name, extent in array.spec.mesh.axes
    )
    extents = tuple(substitute(extent, bindings) for extent in array.extents)
    return replace(array, spec=replace(array.spec, mesh=MeshSpec(axes)), extents=extents)


def _local(array: LocalArray, bindings: Bindings) -> LocalArray:
    return replace(array, extents=tuple(substitute(e, bindings) for e in array.extents))
