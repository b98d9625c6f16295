"""Conditions, and loops that look for a number: the first divisor below a root.

Programs choose the mesh of their ranks so. What such a loop finds is known once the number of
ranks is; the loop itself is looked at, not run.
"""

from __future__ import annotations

import libcst as cst

from advisor.frontend.advise_comments.directives import Pragmas, spoken_of
from advisor.frontend.spmd.expressions import evaluate
from advisor.frontend.spmd.iteration import Iteration
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import NeighbourRank, Number, Opaque, Value
from advisor.ir.spmd.sizes import Search
from advisor.ir.spmd.steps import Condition, ConditionKind, Leave, Step
from advisor.source import Span
from costdb.expr import Expr, equal, free_symbols, logical_not, num, sym
from costdb.expr.functions import Equal
from costdb.expr.nodes import Num, Sym

_LAST = "the last `{}` for which `{}`, line {}"
_FIRST = "the first `{}` for which `{}`, line {}"


def note_found(node: cst.For, made: Iteration, run: Run) -> dict[str, Value]:
    """Note what a loop looks for; return the names that denote it behind the loop.

    The loop consists of ``if CONDITION: return ...``, of which the first index counts, or of
    ``if CONDITION: name = ...``, of which the last one does.
    """
    only = _only_statement(node.body)
    if not isinstance(only, cst.If) or only.orelse is not None or made.variable == "":
        return {}
    inner = _simple(only.body)
    if inner is None or made.stride is not None:
        return {}
    leaves = isinstance(inner[-1], cst.Return | cst.Break)
    assigns = [small for small in inner if isinstance(small, cst.Assign)]
    if len(assigns) + leaves != len(inner):
        return {}
    with run.block():
        test = evaluate(only.test, run)
        names = {
            target.target.value: evaluate(small.value, run)
            for small in assigns
            for target in small.targets
            if isinstance(target.target, cst.Name)
        }
    condition = test.expr if isinstance(test, Number) else None
    if condition is None or made.variable not in free_symbols(condition):
        return {}
    rule = Search(made.variable, made.low, made.high, made.step, condition, last=not leaves)
    shown = run.text(node.target)
    text = (_FIRST if leaves else _LAST).format(
        shown, run.text(only.test), f"{run.span(node.iter).start_line}{run.place}"
    )
    run.symbols.derive(made.variable, rule, text, run.span(node.iter))
    return {name: value for name, value in names.items() if isinstance(value, Number)}


def found_by_steps(node: cst.While, before: Value | None, run: Run) -> tuple[str, Value] | None:
    """Return the name that ``while CONDITION: name -= 1`` changes, and what it finds."""
    only = _simple(node.body)
    if only is None or len(only) != 1 or not isinstance(only[0], cst.AugAssign):
        return None
    change = only[0]
    if not isinstance(change.target, cst.Name) or not isinstance(change.value, cst.Integer):
        return None
    if change.value.evaluated_value != 1 or not isinstance(before, Number) or before.expr is None:
        return None
    down = isinstance(change.operator, cst.SubtractAssign)
    if not down and not isinstance(change.operator, cst.AddAssign):
        return None
    name = change.target.value
    symbol = run.symbols.unknown(name, f"`{name}` changes within a loop", run.span(node.test))
    saved = run.frame.names[name]
    run.frame.names[name] = Number(symbol)
    with run.block():
        test = evaluate(node.test, run)
    run.frame.names[name] = saved
    condition = test.expr if isinstance(test, Number) else None
    if condition is None or not isinstance(symbol, Sym):
        return None
    if symbol.name not in free_symbols(condition):
        return None
    high: Expr = num(0) if down else before.expr + _MOST_STEPS
    step = -1 if down else 1
    rule = Search(symbol.name, before.expr, high, step, logical_not(condition))
    text = _FIRST.format(name, f"not ({run.text(node.test)})", run.span(node.test).start_line)
    run.symbols.derive(symbol.name, rule, text, run.span(node.test))
    return name, Number(sym(symbol.name))


def changed_name(body: cst.BaseSuite) -> str | None:
    """Return the name that a block of one statement changes."""
    only = _simple(body)
    if only is None or len(only) != 1 or not isinstance(only[0], cst.AugAssign):
        return None
    return only[0].target.value if isinstance(only[0].target, cst.Name) else None


_MOST_STEPS = 10_000


def _only_statement(body: cst.BaseSuite) -> cst.CSTNode | None:
    return body.body[0] if len(body.body) == 1 else None


def _simple(body: cst.BaseSuite) -> list[cst.BaseSmallStatement] | None:
    """Return the small statements of a block that has no others."""
    found: list[cst.BaseSmallStatement] = []
    for statement in body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            found += statement.body
        elif isinstance(statement, cst.BaseSmallStatement):
            found.append(statement)
        else:
            return None
    return found or None


# Conditions of an SPMD program: on whom they depend, and how many ranks they state.


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
