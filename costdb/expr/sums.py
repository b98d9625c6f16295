"""Closed forms of sums over a range of whole numbers.

A body is a polynomial in the index, or holds *atoms*: comparisons, maxima and choices whose
outcome changes at one place of the range, which split it; and whole divisions and remainders,
which turn it into full periods and a rest. Every split range is clamped, so that an empty one
adds exactly 0.

Names in bounds, and beside the index in a division, stand for whole numbers.
"""

from __future__ import annotations

from dataclasses import replace

from costdb.expr.atoms import atoms_in, replace_atom
from costdb.expr.closing import Closing, NotClosed, Span, is_whole_by_contract, may_fail
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Equal,
    Extreme,
    LessEqual,
    Max,
    conditional,
    equal,
    less_equal,
    logical_and,
)
from costdb.expr.names import free_symbols
from costdb.expr.nodes import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Division,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Sym,
    add,
    ceil_div,
    floor_div,
    modulo,
    multiply,
)
from costdb.expr.polynomials import affine_in, at, coefficients_in, expand, sum_below, terms_of
from costdb.expr.residues import by_residue, common_period

MAX_CLOSED_SIZE = 4000
"""Parts of a closed form; a larger one is left to enumeration."""


def close_sum(span: Span, body: Expr, closing: Closing) -> Expr:
    """Return the sum of `body` over `span` without enumeration.

    Raises
    ------
    NotClosed
        Where no closed form is known; `closing` is then of no further use.
    """
    if not (is_whole_by_contract(span.low) and is_whole_by_contract(span.high)):
        raise NotClosed
    result = _sum(span, body, closing)
    if result.size > MAX_CLOSED_SIZE:
        raise NotClosed
    return result


def _sum(span: Span, body: Expr, closing: Closing) -> Expr:
    if not closing.facts.proves_at_least(span.high, span.low) and may_fail(
        body, span.index, closing.facts
    ):
        return conditional(less_equal(span.low, span.high), _guarded_sum(span, body, closing), ZERO)
    return _guarded_sum(span, body, closing)


def _guarded_sum(span: Span, body: Expr, closing: Closing) -> Expr:
    if span.index not in free_symbols(body):
        return body * closing.facts.largest((span.high - span.low + 1, ZERO))
    high = closing.facts.largest((span.high, span.low - 1))
    coefficients = coefficients_in(body, span.index)
    if coefficients is not None:
        return sum_below(coefficients, high + 1) - sum_below(coefficients, span.low)
    polynomial: list[Expr] = []
    total: list[Expr] = []
    for term in terms_of(expand(body)):
        if coefficients_in(term, span.index) is not None:
            polynomial.append(term)
            continue
        outside, inside = _factored(term, span.index)
        total.append(outside * _sum_with_atoms(span, inside, closing))
    if polynomial:
        total.append(_guarded_sum(span, add(polynomial), closing))
    return add(total)


def _factored(term: Expr, index: str) -> tuple[Expr, Expr]:
    outside: list[Expr] = []
    inside: list[Expr] = []
    if isinstance(term, Mul):
        outside.append(Num(term.coefficient))
    for factor in term.factors if isinstance(term, Mul) else (term,):
        (inside if index in free_symbols(factor) else outside).append(factor)
    return multiply(outside), multiply(inside)


def _sum_with_atoms(span: Span, body: Expr, closing: Closing) -> Expr:
    closing.spend()
    atoms = list(dict.fromkeys(atoms_in(body, span.index)))
    if not atoms:
        return _guarded_sum(span, body, closing)
    # Ranges are cut before periods are counted: a cut keeps the bounds simple.
    for atom in atoms:
        match atom:
            case Conditional(test=Conditional() as test):
                inner = conditional(test.then, atom.then, atom.orelse)
                other = conditional(test.orelse, atom.then, atom.orelse)
                rewritten = conditional(test.test, inner, other)
                return _sum(span, replace_atom(body, atom, rewritten), closing)
            case Conditional(test=Comparison() as test):
                then = replace_atom(body, atom, atom.then)
                orelse = replace_atom(body, atom, atom.orelse)
                if span.index not in free_symbols(test):
                    return conditional(test, _sum(span, then, closing), _sum(span, orelse, closing))
                return _cut(span, test, then, orelse, closing)
            case Comparison():
                then = replace_atom(body, atom, ONE)
                return _cut(span, atom, then, replace_atom(body, atom, ZERO), closing)
            case Extreme():
                return _cut_extreme(span, _innermost(atom, span.index), body, closing)
    return _sum_periods(span, atoms, body, closing)


def _innermost(atom: Extreme, index: str) -> Extreme:
    """Return an extreme within `atom` that holds no other, so that its sides can be compared.

    Where something else is within, `atom` itself: what is cut then may only grow.
    """
    found = atom
    inside = [inner for arg in atom.args for inner in atoms_in(arg, index)]
    while inside:
        if not all(isinstance(inner, Extreme) for inner in inside):
            return atom
        extremes = [inner for inner in inside if isinstance(inner, Extreme)]
        found = extremes[0]
        inside = [inner for one in extremes for arg in one.args for inner in atoms_in(arg, index)]
    return found


def _cut_extreme(span: Span, atom: Extreme, body: Expr, closing: Closing) -> Expr:
    first, second, *others = sorted(atom.args, key=lambda arg: span.index not in free_symbols(arg))
    below = LessEqual(first, second)
    kind = type(atom)
    smaller = atom.rebuild((first, *others))
    larger = atom.rebuild((second, *others))
    if kind is Max:
        smaller, larger = larger, smaller
    return _cut(
        span, below, replace_atom(body, atom, smaller), replace_atom(body, atom, larger), closing
    )


def _cut(span: Span, test: Comparison, then: Expr, orelse: Expr, closing: Closing) -> Expr:
    """Sum `then` where `test` holds and `orelse` where it does not."""
    if isinstance(test, Equal):
        return _sum(span, orelse, closing) + _sum_where_equal(span, test, then - orelse, closing)
    line = affine_in(test.right - test.left, span.index)
    if line is None:
        atoms = list(dict.fromkeys(atoms_in(test.left - test.right, span.index)))
        return _sum_periods(span, atoms, conditional(test, then, orelse), closing)
    slope, rest = line
    if slope == ZERO:
        fixed = test.rebuild((ZERO, rest))
        return conditional(fixed, _sum(span, then, closing), _sum(span, orelse, closing))
    strict = not isinstance(test, LessEqual)
    if closing.facts.proves_at_least(slope, ZERO):
        closing.require(slope, _least_step(slope))
        # slope*i >= -rest from the first index on that reaches it.
        start = floor_div(-rest, slope) + 1 if strict else ceil_div(-rest, slope)
        return _two(span, start, orelse, then, closing)
    if closing.facts.proves_at_least(-slope, ZERO):
        closing.require(-slope, _least_step(slope))
        stop = ceil_div(rest, -slope) - 1 if strict else floor_div(rest, -slope)
        return _two(span, stop + 1, then, orelse, closing)
    raise NotClosed


def _least_step(slope: Expr) -> Expr:
    # A constant slope only has to be positive; a symbolic one is a whole number.
    if isinstance(slope, Num):
        return slope if slope.value > 0 else Num(-slope.value)
    if not is_whole_by_contract(slope):
        raise NotClosed
    return ONE


def _two(span: Span, start: Expr, before: Expr, after: Expr, closing: Closing) -> Expr:
    """Sum `before` up to, and `after` from, index `start`."""
    facts = closing.facts
    head = span.replaced(span.low, facts.smallest((span.high, start - 1)))
    tail = span.replaced(facts.largest((span.low, start)), span.high)
    return _sum(head, before, closing) + _sum(tail, after, closing)


def _sum_where_equal(span: Span, test: Equal, body: Expr, closing: Closing) -> Expr:
    """Sum `body` over the indices where the sides of `test` are equal."""
    if body == ZERO:
        return ZERO
    line = affine_in(test.right - test.left, span.index)
    if line is not None and line[0] == ZERO:
        return conditional(equal(ZERO, line[1]), _sum(span, body, closing), ZERO)
    if line is not None:
        return _single(span, line, body)
    for side, other in ((test.left, test.right), (test.right, test.left)):
        if span.index in free_symbols(other):
            continue
        if isinstance(side, Mod) and span.index not in free_symbols(side.divisor):
            return _cyclic(span, side, other, body, closing)
        if isinstance(side, FloorDiv) and span.index not in free_symbols(side.divisor):
            return _block(span, side, other, body, closing)
    raise NotClosed


def _single(span: Span, line: tuple[Expr, Expr], body: Expr) -> Expr:
    slope, rest = line
    if not isinstance(slope, Num):
        raise NotClosed
    place = -rest / slope
    value = at(body, span.index, place)
    within = logical_and(less_equal(span.low, place), less_equal(place, span.high))
    if not is_whole_by_contract(place):
        within = logical_and(equal(modulo(place, ONE), ZERO), within)
    return conditional(within, value, ZERO)


def _cyclic(span: Span, side: Mod, owner: Expr, body: Expr, closing: Closing) -> Expr:
    """Sum over the indices ``i`` with ``(s*i + b) mod m == owner``, ``s`` being 1 or -1."""
    sign, shift = _unit_line(side.dividend, span.index)
    period = side.divisor
    _require_whole(shift, period, owner)
    closing.require(period, ONE)
    step = closing.fresh("k", body, side, owner, span.low, span.high)
    # s*i + b == m*k + owner
    index = (period * Sym(step) + owner - shift) * sign
    ends = [end * sign + shift - owner for end in (span.low, span.high)]
    first, last = ends if sign == ONE else ends[::-1]
    # The owner is below the period, as is asked below, so that from x = 0 on k = 0 is the first.
    low = ZERO if first == -owner else ceil_div(first, period)
    inner = Span(step, low, floor_div(last, period))
    picked = at(replace_atom(body, side, owner), span.index, index)
    total = _sum(inner, _settled(picked, period, step), closing)
    facts = closing.facts
    if facts.proves_at_least(owner, ZERO) and facts.proves_at_least(period - 1, owner):
        return total
    within = logical_and(less_equal(ZERO, owner), less_equal(owner, period - 1))
    return conditional(within, total, ZERO)


def _settled(expr: Expr, period: Expr, step: str) -> Expr:
    """Take whole multiples of `period` out of the divisions by it."""
    if step not in free_symbols(expr):
        return expr
    if isinstance(expr, Mod | FloorDiv) and expr.divisor == period:
        line = affine_in(expr.dividend, step)
        if line is not None and is_whole_by_contract(line[0] / period):
            if isinstance(expr, Mod):
                return modulo(line[1], period)
            return line[0] / period * Sym(step) + floor_div(line[1], period)
    if isinstance(expr, Add | Mul | Pow | Comparison | Extreme | Conditional):
        return expr.rebuild(tuple([_settled(child, period, step) for child in expr.children]))
    return expr


def _block(span: Span, side: FloorDiv, owner: Expr, body: Expr, closing: Closing) -> Expr:
    """Sum over the indices ``i`` with ``(s*i + b) div m == owner``, ``s`` being 1 or -1."""
    sign, shift = _unit_line(side.dividend, span.index)
    size = side.divisor
    _require_whole(shift, size, owner)
    closing.require(size, ONE)
    ends = [(owner * size - shift) * sign, ((owner + 1) * size - 1 - shift) * sign]
    first, last = ends if sign == ONE else ends[::-1]
    facts = closing.facts
    inner = span.replaced(
        facts.largest((span.low, expand(first))), facts.smallest((span.high, expand(last)))
    )
    return _sum(inner, replace_atom(body, side, owner), closing)


def _unit_line(dividend: Expr, index: str) -> tuple[Expr, Expr]:
    line = affine_in(dividend, index)
    if line is None or line[0] not in (ONE, MINUS_ONE):
        raise NotClosed
    return line


def _require_whole(*parts: Expr) -> None:
    if not all(map(is_whole_by_contract, parts)):
        raise NotClosed


def _sum_periods(span: Span, atoms: list[Expr], body: Expr, closing: Closing) -> Expr:
    """Sum a body over quotients and remainders of ``x = s*i + b`` by one period ``m``.

    With ``x = m*q + r``, the sum below x is that over all full periods before it and over the
    remainders that the last one has begun. As it telescopes, the difference of two such sums
    is the sum between, wherever zero lies.
    """
    index = span.index
    atom = atoms[0] if atoms else body
    if not isinstance(atom, Division) or index in free_symbols(atom.divisor):
        raise NotClosed
    period = atom.divisor
    line = affine_in(atom.dividend, index)
    if line is None:
        raise NotClosed
    sign, shift = line
    if sign not in (ONE, MINUS_ONE):
        return _sum_residues(span, body, closing)
    _require_whole(shift, period)
    closing.require(period, ONE)
    q = closing.fresh("q", body, span.low, span.high)
    r = closing.fresh("r", body, span.low, span.high)
    x = period * Sym(q) + Sym(r)
    try:
        turned = _by_quotient(body, index, (x - shift) * sign, period, (Sym(q), Sym(r)))
    except NotClosed:
        return _sum_residues(span, body, closing)
    if index in free_symbols(turned):
        raise NotClosed
    high = closing.facts.largest((span.high, span.low - 1))
    first, last = span.low, high
    if sign == MINUS_ONE:
        first, last = -high, -span.low
    start, stop = first + shift, last + shift + 1
    whole_period = _sum(Span(r, ZERO, period - 1), turned, closing)
    coefficients = coefficients_in(whole_period, q)
    if coefficients is None:
        raise NotClosed
    rest = closing.fresh("rest", body, span.low, span.high)
    outer_facts = closing.facts
    closing.facts = replace(outer_facts, nonnegative=outer_facts.nonnegative | {rest})
    begun = _sum(Span(r, ZERO, Sym(rest) - 1), turned, closing)
    closing.facts = outer_facts

    def below(bound: Expr) -> Expr:
        quotient = floor_div(bound, period)
        partial = at(at(begun, rest, modulo(bound, period)), q, quotient)
        return sum_below(coefficients, quotient) + partial

    return below(stop) - below(start)


def _by_quotient(
    expr: Expr, index: str, value: Expr, period: Expr, names: tuple[Expr, Expr]
) -> Expr:
    """Write `expr` over quotient and remainder, refusing divisions of any other kind."""
    if index not in free_symbols(expr):
        return expr
    if isinstance(expr, Sym):
        return value
    if isinstance(expr, Division):
        if expr.divisor != period:
            raise NotClosed
        quotient, remainder = names
        rest = expand(at(expr.dividend, index, value) - period * quotient)
        offset = rest - remainder
        if offset == ZERO:
            return _of_period(expr, quotient, remainder)
        raise NotClosed
    if not isinstance(expr, Add | Mul | Pow | Comparison | Extreme | Conditional):
        raise NotClosed
    return expr.rebuild(
        tuple([_by_quotient(child, index, value, period, names) for child in expr.children])
    )


def _of_period(expr: Expr, quotient: Expr, remainder: Expr) -> Expr:
    if isinstance(expr, Mod):
        return remainder
    if isinstance(expr, FloorDiv):
        return quotient
    return quotient + less_equal(ONE, remainder)


def _sum_residues(span: Span, body: Expr, closing: Closing) -> Expr:
    """Sum a body of divisions by constants, one residue of the common period at a time."""
    period = common_period(body, span.index)
    step = closing.fresh("k", body, span.low, span.high)
    total: list[Expr] = []
    for residue in range(period):
        value = Sym(step) * period + residue
        turned = by_residue(at(body, span.index, value), step)
        inner = Span(
            step,
            ceil_div(span.low - residue, Num(period)),
            floor_div(span.high - residue, Num(period)),
        )
        total.append(_sum(inner, turned, closing))
    return add(total)
