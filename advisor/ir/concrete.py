"""A kernel at given sizes: the same statements with numbers in the place of symbols.

Formulas of numbers are found many times faster than formulas of symbols, which is what ranking
many variants of a kernel needs. Reports need the symbols again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from advisor.distribution import ArraySpec, MeshSpec
from advisor.ir.kernel import DeclaredArray, Kernel, LocalArray
from advisor.source import Span
from costdb.expr import Expr, num, substitute

Node = TypeVar("Node")
Bindings = Mapping[str, Expr]


def at_sizes(kernel: Kernel, sizes: Mapping[str, int | float]) -> Kernel:
    """Return a kernel with values for its sizes; sizes that are no whole numbers stay symbols.

    Parameters
    ----------
    kernel : Kernel
    sizes : mapping of str to number
    """
    whole = {name: value for name, value in sizes.items() if isinstance(value, int)}
    bindings = {name: num(value) for name, value in whole.items()}
    return replace(
        kernel,
        arrays={name: _declared(array, bindings, whole) for name, array in kernel.arrays.items()},
        locals={name: _local(array, bindings) for name, array in kernel.locals.items()},
        body=_bound(kernel.body, bindings),
    )


def _declared(array: DeclaredArray, bindings: Bindings, sizes: Mapping[str, int]) -> DeclaredArray:
    return replace(
        array,
        spec=_spec(array.spec, sizes),
        extents=tuple(substitute(extent, bindings) for extent in array.extents),
    )


def _spec(spec: ArraySpec, sizes: Mapping[str, int]) -> ArraySpec:
    axes = tuple(
        (name, sizes.get(extent, extent) if isinstance(extent, str) else extent)
        for name, extent in spec.mesh.axes
    )
    return replace(spec, mesh=MeshSpec(axes))


def _local(array: LocalArray, bindings: Bindings) -> LocalArray:
    return replace(array, extents=tuple(substitute(e, bindings) for e in array.extents))


def _bound(node: Node, bindings: Bindings) -> Node:
    """Return a statement, a value, or a tuple of them, with symbols replaced throughout."""
    changed: object = node
    if isinstance(node, Expr):
        changed = substitute(node, bindings)
    elif isinstance(node, tuple):
        changed = tuple(_bound(part, bindings) for part in node)
    elif is_dataclass(node) and not isinstance(node, Span | type):
        before = {field.name: getattr(node, field.name) for field in fields(node)}
        after = {name: _bound(part, bindings) for name, part in before.items()}
        if any(after[name] is not before[name] for name in before):
            changed = type(node)(**after)
    return changed  # type: ignore[return-value]  # every branch keeps the type it was given
