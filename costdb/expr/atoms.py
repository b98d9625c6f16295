"""The parts of a body that keep it from being a polynomial in its index."""

from __future__ import annotations

from collections.abc import Iterator

from costdb.expr.closing import NotClosed
from costdb.expr.names import free_symbols
from costdb.expr.nodes import Add, Expr, Mul, Num, Pow, Sym


def atoms_in(expr: Expr, index: str) -> Iterator[Expr]:
    """Yield the outermost parts of `expr` over `index` that are not polynomial."""
    if index not in free_symbols(expr) or isinstance(expr, Sym):
        return
    if isinstance(expr, Add | Mul):
        for child in expr.children:
            yield from atoms_in(child, index)
    elif isinstance(expr, Pow) and isinstance(expr.exponent, Num):
        if not isinstance(expr.exponent.value, int) or expr.exponent.value < 0:
            raise NotClosed
        yield from atoms_in(expr.base, index)
    else:
        yield expr


def replace_atom(expr: Expr, atom: Expr, new: Expr) -> Expr:
    """Return `expr` with every occurrence of the part `atom` replaced.

    Reductions are not entered: their index could hide a name of `atom`.
    """
    if expr == atom:
        return new
    if not expr.children or expr.size < atom.size or expr.depth < atom.depth:
        return expr
    return expr.rebuild(tuple([replace_atom(child, atom, new) for child in expr.children]))
