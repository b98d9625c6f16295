"""Conditions, and loops that look for a number: the first divisor below a root.

Programs choose the mesh of their ranks so. What such a loop finds is known once the number of
ranks is; the loop itself is looked at, not run.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from advisor.frontend.directives import spoken_of
from advisor.frontend.spmd.expressions import evaluate
from advisor.frontend.spmd.indexing import Iteration
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import NeighbourRank, Number, Opaque, Value
from advisor.ir.spmd.program import Search
from advisor.ir.spmd.steps import Condition, ConditionKind, Leave, Step
from advisor.source import Span
from costdb.expr import Expr, equal, free_symbols, logical_not, num
from costdb.expr.functions import Equal
from costdb.expr.nodes import Num, Sym

_MOST_STEPS = 10_000


def note_found(node: cst.For, made: Iteration, run: Run) -> dict[str, Value]:
    """Note what a loop looks for; return the names that denote it behind the loop.

    The loop consists of ``if CONDITION: return ...``, of which the first index counts, or of
    ``if CONDITION: name = ...``, of which the last one does.
    """
    only = node.body.body[0] if len(node.body.body) == 1 else None
    if not isinstance(only, cst.If) or only.orelse is not None:
        return {}
    inner = _simple(only.body)
    if not inner or not made.variable or made.stride is not None:
        return {}
    leaves = isinstance(inner[-1], cst.Return | cst.Break)
    assigns = [small for small in inner if isinstance(small, cst.Assign)]
    if len(assigns) + leaves != len(inner):
        return {}
    with run.block():
        condition = _holds(only.test, made.variable, run)
        names = {
            target.target.value: evaluate(small.value, run)
            for small in assigns
            for target in small.targets
            if isinstance(target.target, cst.Name)
        }
    if condition is None:
        return {}
    rule = Search(made.variable, made.low, made.high, made.step, condition, last=not leaves)
    told = f"`{run.text(node.target)}` for which `{run.text(only.test)}`"
    _derive(rule, told, run.span(node.iter), run)
    return {name: value for name, value in names.items() if isinstance(value, Number)}


def _holds(test: cst.BaseExpression, variable: str, run: Run) -> Expr | None:
    """Return a condition on a symbol; None for any other."""
    with run.block():
        found = evaluate(test, run)
    known = found.expr if isinstance(found, Number) else None
    return known if known is not None and variable in free_symbols(known) else None


def _derive(rule: Search, told: str, span: Span, run: Run) -> None:
    which = "last" if rule.last else "first"
    where = f"line {span.start_line}{run.place}"
    run.symbols.derive(rule.variable, rule, f"the {which} {told}, {where}", span)


def found_by_steps(node: cst.While, names: Mapping[str, Value], run: Run) -> None:
    """Bind the name that ``while CONDITION: name -= 1`` changes to what the loop finds.

    Parameters
    ----------
    node : While
    names : mapping of str to Value
        What names denote before the loop.
    run : Run
    """
    match _simple(node.body):
        case [
            cst.AugAssign(
                target=cst.Name(value=name),
                operator=cst.SubtractAssign() | cst.AddAssign() as operator,
                value=cst.Integer(value="1"),
            )
        ]:
            before = names.get(name)
        case _:
            return
    if not isinstance(before, Number) or before.expr is None:
        return
    span = run.span(node.test)
    symbol = run.symbols.unknown(name, f"`{name}` changes within a loop", span)
    assert isinstance(symbol, Sym)
    saved = run.frame.names[name]
    run.frame.names[name] = Number(symbol)
    condition = _holds(node.test, symbol.name, run)
    run.frame.names[name] = saved
    if condition is None:
        return
    down = isinstance(operator, cst.SubtractAssign)
    high = num(0) if down else before.expr + _MOST_STEPS
    rule = Search(symbol.name, before.expr, high, -1 if down else 1, logical_not(condition))
    _derive(rule, f"`{name}` for which `not ({run.text(node.test)})`", span, run)
    run.bind(name, Number(symbol))


def _simple(body: cst.BaseSuite) -> list[cst.BaseSmallStatement]:
    """Return the small statements of a block; none of one that has others."""
    if isinstance(body, cst.SimpleStatementSuite):
        return list(body.body)
    lines = [line for line in body.body if isinstance(line, cst.SimpleStatementLine)]
    return [] if len(lines) < len(body.body) else [small for line in lines for small in line.body]


# Conditions of an SPMD program: on whom they depend, and how many ranks they state.


def condition_of(test: cst.BaseExpression, lines: range, run: Run) -> Condition:
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
    probability = spoken_of(run.file.pragmas.probabilities, lines)
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
        # a negation loses its sign
        match value:
            case Equal(left=otherwise, right=right) if right == num(0):
                pass
            case _:
                otherwise = logical_not(value)
        _ranks_from(otherwise, f"line {condition.span.start_line}", run)


def note_ranks_asserted(node: cst.Assert, run: Run) -> None:
    """Note the number of ranks that an assertion states; what it computes is no work."""
    with run.block():
        found = evaluate(node.test, run)
    if isinstance(found, Number) and found.expr is not None:
        _ranks_from(found.expr, f"assert, line {run.statement.start_line}", run)


def is_main_guard(test: cst.BaseExpression) -> bool:
    """Return whether a condition asks if the file is the program."""
    return (
        isinstance(test, cst.Comparison)
        and isinstance(test.left, cst.Name)
        and test.left.value == "__name__"
    )
