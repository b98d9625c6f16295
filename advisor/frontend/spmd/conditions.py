"""Conditions of an SPMD program: on whom they depend, and how many ranks they state."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.advise_comments.pragmas import Pragmas, spoken_of
from advisor.frontend.spmd.expressions import evaluate
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import NeighbourRank, Number, Opaque
from advisor.ir.spmd.steps import Condition, ConditionKind, Leave, Step
from advisor.source import Span
from costdb.expr import Expr, equal, logical_not, num
from costdb.expr.functions import Equal
from costdb.expr.nodes import Num, Sym


def condition_of(test: cst.BaseExpression, header: Span, run: Run, pragmas: Pragmas) -> Condition:
    """Return the condition of a branch."""
    found = evaluate(test, run)
    value = found.expr if isinstance(found, Number | Opaque) else None
    varies = isinstance(found, Number | Opaque) and found.varies
    kind = ConditionKind.UNIFORM
    if run.symbols.varies(value) or (varies and _names_ranks(test, run)):
        kind = ConditionKind.RANK
    elif varies:
        kind = ConditionKind.DATA
    elif not isinstance(found, Number):
        kind = ConditionKind.UNKNOWN
    single = None
    if isinstance(value, Equal):
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if isinstance(one, Sym) and one.name.startswith("rank"):
                single = other
    lines = range(header.start_line, header.end_line + 1)
    probability = spoken_of(pragmas.probabilities, lines)
    if isinstance(found, Number) and found.dtype == "int" and value is not None:
        # ``if rank:``
        value = logical_not(equal(value, num(0)))
    elif not isinstance(found, Number) or found.dtype != "bool":
        value = None if value is None or not isinstance(value, Num) else num(int(value.value != 0))
    return Condition(kind, run.text(test), run.span(test), value, single, probability)


def _names_ranks(test: cst.BaseExpression, run: Run) -> bool:
    """Return whether a condition asks for a rank or a neighbour, not only for data."""
    waiting: list[cst.CSTNode] = [test]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Name | cst.Attribute):
            found = evaluate(node, run)
            known = found.expr if isinstance(found, Number | Opaque) else None
            if isinstance(found, NeighbourRank) or run.symbols.varies(known):
                return True
        else:
            waiting += node.children
    return False


def _ranks_from(condition: Expr, origin: str, run: Run) -> None:
    """Note the number of ranks that a condition which must hold states."""
    if isinstance(condition, Equal):
        sides = (condition.left, condition.right)
        for one, other in (sides, sides[::-1]):
            value = run.symbols.value(other)
            if one == Sym("P") and value is not None:
                run.symbols.note_ranks(value, origin, run.statement)


def note_ranks_behind(condition: Condition, steps: tuple[Step, ...], run: Run) -> None:
    """Note what must hold behind ``if size != 4: exit``."""
    ends = [s for s in steps if isinstance(s, Leave) and s.how in ("exit", "abort", "raise")]
    value = condition.value
    if ends and value is not None:
        _ranks_from(_negated(value), f"line {condition.span.start_line}", run)


def note_ranks_asserted(node: cst.Assert, run: Run) -> None:
    """Note the number of ranks that an assertion states; what it computes is no work."""
    with run.block():
        found = evaluate(node.test, run)
    if isinstance(found, Number) and found.expr is not None:
        _ranks_from(found.expr, f"assert, line {run.statement.start_line}", run)


def _negated(condition: Expr) -> Expr:
    """Return what holds where a condition does not; a negation loses its sign."""
    if isinstance(condition, Equal) and condition.right == num(0):
        return condition.left
    return logical_not(condition)


def is_main_guard(test: cst.BaseExpression) -> bool:
    """Return whether a condition asks if the file is the program."""
    return (
        isinstance(test, cst.Comparison)
        and isinstance(test.left, cst.Name)
        and test.left.value == "__name__"
    )
