"""What subscripts tell of sizes: ``u[-2]`` is an element only where there are two."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.statements import Bind, Loop, ScalarBind, Statement, Store
from advisor.ir.values import Point, Subscript, reads
from costdb.expr import Expr
from costdb.expr.nodes import Add, Sym


def least_sizes(statements: tuple[Statement, ...]) -> dict[str, int]:
    """Return the least values of sizes for which single indices lie inside their arrays.

    A kernel raises for smaller ones, so that what it costs then is nobody's question. Statements
    that may not run say nothing; what loops hold is taken to run.
    """
    found: dict[str, int] = {}
    for part in _subscripts(statements):
        if isinstance(part, Point):
            known = _least(part.at)
            if known is not None and known[1] > found.get(known[0], 1):
                found[known[0]] = known[1]
    return found


def _least(index: Expr) -> tuple[str, int] | None:
    """Return for an index such as ``N - 2`` the size and its least value."""
    match index:
        case Add((Sym(name),), int(constant)) if constant < 0 and "." not in name:
            return name, -constant
    return None


def _subscripts(statements: tuple[Statement, ...]) -> Iterator[Subscript]:
    for statement in statements:
        match statement:
            case Loop():
                yield from _subscripts(statement.body)
            case Store():
                yield from statement.region
                for read in reads(statement.value):
                    yield from read.region
            case Bind() | ScalarBind():
                for read in reads(statement.value):
                    yield from read.region
            case _:
                pass
