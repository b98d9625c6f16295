"""Loops that do the same with another index: in steps of 1, or cut where a shift turns round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from advisor.analysis.sizes.facts import Facts
from advisor.ir.rebuilt import rebuilt
from advisor.ir.statements import Choice, Loop, Statement, walk
from costdb.expr import Expr, ceil_div, free_symbols, num, substitute, sym

ZERO, ONE = num(0), num(1)


def with_unit_steps(loop: Loop) -> Loop:
    """Return a loop that counts its iterations from 0."""
    if loop.step == 1:
        return loop
    index = {loop.variable: loop.low + sym(loop.variable) * loop.step}
    body = _body(loop, index)
    trips = ceil_div(loop.high - loop.low, num(loop.step))
    return replace(loop, low=ZERO, high=trips, step=1, body=body)


def cut_where_it_turns(loop: Loop, shift: Expr, facts: Facts) -> tuple[Statement, ...] | None:
    """Return a loop as the iterations before, at and after the one whose shift is 0.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    shift : Expr
        Which grows or falls by 1 from one iteration to the next.
    facts : Facts
        What is known outside the loop.

    Returns
    -------
    tuple of Statement, or None
        None where it is not shown that one of the iterations has no shift.
    """
    turn = _turn(loop, shift)
    inner = {each.variable for each in walk(loop.body) if isinstance(each, Loop)}
    if turn is None or free_symbols(turn) & inner:
        return None
    before, after = turn - loop.low, loop.high - 1 - turn
    if not (facts.non_negative(before) and facts.non_negative(after)):
        return None
    index = sym(loop.variable)
    earlier = _iterations(replace(loop, high=turn))
    at_turn = _body(loop, {loop.variable: turn})
    body = _body(loop, {loop.variable: index + turn})
    later = _iterations(replace(loop, low=ONE, high=after + 1, body=body))
    return (*earlier, *at_turn, *later)


def _iterations(loop: Loop) -> tuple[Statement, ...]:
    """Return a loop without what is surely one iteration, or none, being called a loop."""
    trips = loop.high - loop.low
    if trips == ZERO:
        return ()
    return _body(loop, {loop.variable: loop.low}) if trips == ONE else (loop,)


def _turn(loop: Loop, shift: Expr) -> Expr | None:
    """Return the index at which a shift is 0; None where it is not the index and a constant."""
    name = loop.variable
    at_zero = substitute(shift, {name: ZERO})
    growth = substitute(shift, {name: ONE}) - at_zero
    if growth not in (ONE, num(-1)) or shift != at_zero + growth * sym(name):
        return None
    return -at_zero if growth == ONE else at_zero


def _body(loop: Loop, index: Mapping[str, Expr]) -> tuple[Statement, ...]:
    return _without_what_never_runs(rebuilt(loop.body, lambda part: substitute(part, index)))


def _without_what_never_runs(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    made: list[Statement] = []
    for statement in body:
        match statement:
            case Choice(probability=probability, then=then) if probability == ONE:
                made.extend(_without_what_never_runs(then))
            case Choice(probability=probability, orelse=orelse) if probability == ZERO:
                made.extend(_without_what_never_runs(orelse))
            case Loop():
                made.append(replace(statement, body=_without_what_never_runs(statement.body)))
            case _:
                made.append(statement)
    return tuple(made)
