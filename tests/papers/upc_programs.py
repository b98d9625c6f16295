"""Three published UPC programs as references, for models of their communication.

Each function returns the interval of the slowest thread; :func:`costdb.pgas.partition.partition`
finds its groups and :func:`costdb.pgas.partition.remote_groups` the work. Private computation
is not included: no rate of it was printed.
"""

from __future__ import annotations

from costdb.expr import Expr, ceil_div, less_equal, maximum, minimum, num
from costdb.pgas.partition import (
    Affine,
    Dependence,
    DependenceKind,
    Interval,
    Irregular,
    Loop,
    Reference,
    SharedArray,
    Spread,
)


def affine(offset: int = 0, **coefficients: int) -> Affine:
    """The subscript ``i - 1`` for ``affine(-1, i=1)``."""
    return Affine(tuple(sorted((k, v) for k, v in coefficients.items() if v != 0)), offset)


def histogram(increments: Expr, threads: Expr) -> Interval:
    """Return ``for k: table[random]++`` on a cyclic table.

    Parameters
    ----------
    increments : Expr
        Made by each thread; the published runs make a percentage of the table's size.
    """
    location = (Irregular("random"),)
    return Interval(
        threads=threads,
        arrays=(SharedArray("table", Spread.CYCLIC),),
        loops=(Loop("k", increments),),
        references=(
            Reference("table", location, "increment"),
            Reference("table", location, "increment", store=True),
        ),
        dependences=(Dependence(0, 1, DependenceKind.ANTI),),
    )


def matmul(size: Expr, threads: Expr, spread: Spread) -> Interval:
    """Return ``C = A @ B``: for the own rows i, for j: ``C = 0``; for k: ``C += A * B``.

    Rows of A and C and columns of B lie cyclic or in blocks over the threads. Each thread's
    columns of B are taken to lie one after another in its memory, the layout for which the
    published partition, a vector pattern down the column, holds.
    """
    row_column = (affine(i=1), affine(j=1))
    return Interval(
        threads=threads,
        arrays=(
            SharedArray("C", spread, axis=0, fastest=1),
            SharedArray("A", spread, axis=0, fastest=1),
            SharedArray("B", spread, axis=1, fastest=0),
        ),
        loops=(Loop("i", ceil_div(size, threads)), Loop("j", size), Loop("k", size)),
        references=(
            Reference("C", row_column, "clear", store=True, depth=2),
            Reference("C", row_column, "add"),
            Reference("A", (affine(i=1), affine(k=1)), "add"),
            Reference("B", (affine(k=1), affine(j=1)), "add"),
            Reference("C", row_column, "add", store=True),
        ),
        dependences=(
            Dependence(0, 1, DependenceKind.TRUE),
            Dependence(0, 4, DependenceKind.OUTPUT),
            Dependence(1, 4, DependenceKind.ANTI),
        ),
        affinity="i",
    )


def sobel(size: Expr, threads: Expr) -> Interval:
    """Return Sobel edge detection of a square image O into E, rows in blocks.

    The outermost rows and columns are not computed. The slowest thread is one in the middle,
    if there is one: a full block of rows and a neighbour on either side.
    """
    block = ceil_div(size, threads)
    blocks = ceil_div(size, block)
    own_border_rows = maximum(3 - blocks, 0)
    arrays = (
        SharedArray("E", Spread.BLOCK, axis=0, fastest=1),
        SharedArray("O", Spread.BLOCK, axis=0, fastest=1),
    )
    horizontal = ((-1, -1), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 1))
    vertical = ((-1, -1), (-1, 0), (-1, 1), (1, -1), (1, 0), (1, 1))
    reads = tuple(
        Reference("O", (affine(row, i=1), affine(column, j=1)), statement)
        for statement, stencil in (("horizontal", horizontal), ("vertical", vertical))
        for row, column in stencil
    )
    return Interval(
        threads=threads,
        arrays=arrays,
        loops=(
            Loop("i", maximum(minimum(block, size) - own_border_rows, 0)),
            Loop("j", maximum(size - 2, 0)),
        ),
        references=(
            *reads,
            Reference("E", (affine(i=1), affine(j=1)), "combine", store=True),
        ),
        affinity="i",
        below=less_equal(num(2), blocks),
        above=less_equal(num(3), blocks),
    )
