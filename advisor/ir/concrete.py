"""A kernel at given sizes: the same statements with numbers in the place of symbols.

Formulas of numbers are found many times faster than formulas of symbols, which is what ranking
many variants of a kernel needs. Reports need the symbols again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from advisor.distribution import ArraySpec, MeshSpec
from advisor.ir.kernel import DeclaredArray, Kernel, LocalArray
from advisor.ir.rebuilt import rebuilt
from advisor.ir.statements import Loop, symbols, walk
from costdb.expr import Expr, free_symbols, num, substitute

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
        body=rebuilt(
            kernel.body,
            lambda expr: (
                expr if free_symbols(expr).isdisjoint(bindings) else substitute(expr, bindings)
            ),
        ),
    )


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
