"""Terms of the process algebra: who does what, in which order, on which resource.

The algebra is that of the symbolic performance compilers (PAMELA and its descendants): a
program is a term over delays and resource usage, composed in sequence and in parallel.
Everything a term says about time is symbolic, so one term serves every problem size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from costdb.expr import ONE, ZERO, Expr, free_symbols, num
from costdb.expr.functions import Extreme, Sum
from costdb.expr.nodes import (
    Add,
    CeilDiv,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Rational,
    Sym,
    is_reciprocal,
)
from costdb.work import Work


@dataclass(frozen=True, slots=True)
class Resource:
    """One first-come-first-served server of an indexed array of them.

    Attributes
    ----------
    index : Expr
        Which server; resources of one array are the same server when their indices are equal.
    multiplicity : Expr
        How many requests it serves at once (heads of a disk, links of a switch).
    array : str
        Servers of different arrays are different, whatever their indices.
    """

    index: Expr
    multiplicity: Expr
    array: str = "fcfs"


@dataclass(frozen=True, slots=True)
class Delay:
    """Time that passes without holding anything others want."""

    microseconds: Expr


@dataclass(frozen=True, slots=True)
class Use:
    """Hold `resource` for some time; others who want it queue."""

    resource: Resource
    microseconds: Expr


@dataclass(frozen=True, slots=True)
class Sequential:
    """Parts one after the other; no parts is the process that does nothing."""

    parts: tuple[Process, ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    """Parts side by side, done when the last one is."""

    parts: tuple[Process, ...]


@dataclass(frozen=True, slots=True)
class SeqLoop:
    """`body` for each `variable` in ``low..high`` (inclusive; may be empty), in order."""

    variable: str
    low: Expr
    high: Expr
    body: Process


@dataclass(frozen=True, slots=True)
class ParLoop:
    """`body` for each `variable` in ``low..high`` (inclusive; may be empty), side by side."""

    variable: str
    low: Expr
    high: Expr
    body: Process


@dataclass(frozen=True, slots=True)
class Branch:
    """`then` with probability `condition`, else `orelse`.

    A comparison is a probability that happens to be 0 or 1.
    """

    condition: Expr
    then: Process
    orelse: Process


@dataclass(frozen=True, slots=True)
class Leaf:
    """Work of one of the other models, whose price a machine has yet to say."""

    work: Work


Process: TypeAlias = Delay | Use | Sequential | Parallel | SeqLoop | ParLoop | Branch | Leaf

NOTHING = Sequential(())
"""The process that takes no time."""


def repeated(times: Expr, body: Process) -> Process:
    """Return `body` so many times in order."""
    return body if times == num(1) else SeqLoop("pass", num(1), times, body)


def names_of_sizes(term: Process) -> frozenset[str]:
    """Return the names that bound a loop of `term` or choose a server; these are whole."""
    names: frozenset[str] = frozenset()
    pending: list[Process] = [term]
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        match part:
            case Use(resource, _):
                names |= free_symbols(resource.index) | free_symbols(resource.multiplicity)
            case Sequential(parts) | Parallel(parts):
                pending.extend(parts)
            case SeqLoop(_, low, high, body) | ParLoop(_, low, high, body):
                names |= free_symbols(low) | free_symbols(high)
                pending.append(body)
            case Branch(_, then, orelse):
                pending.extend((then, orelse))
            case Delay() | Leaf():
                pass
    return names


# What the occupancy analysis needs to know about the form of an expression.


def linear_in(expr: Expr, variable: str) -> tuple[Expr, Expr] | None:
    """Return ``(a, b)``, free of `variable`, with ``expr == a * variable + b``, if visible."""
    slope, rest = ZERO, ZERO
    terms = (*expr.terms, num(expr.constant)) if isinstance(expr, Add) else (expr,)
    for term in terms:
        if variable not in free_symbols(term):
            rest = rest + term
            continue
        factor = _slope(term, variable)
        if factor is None:
            return None
        slope = slope + factor
    return slope, rest


def _slope(term: Expr, variable: str) -> Expr | None:
    if isinstance(term, Sym):
        return ONE
    if not isinstance(term, Mul):
        return None
    slope = num(term.coefficient)
    found = False
    for factor in term.factors:
        if variable not in free_symbols(factor):
            slope = slope * factor
        elif isinstance(factor, Sym) and not found:
            found = True
        else:
            return None
    return slope


def constant_of(expr: Expr) -> Rational | None:
    """Return the value of a constant, else None."""
    return expr.value if isinstance(expr, Num) else None


def is_whole(expr: Expr) -> bool:
    """Tell whether `expr` is whole, given that sizes and loop variables are."""
    return expr.is_whole(free_symbols(expr))


def is_positive(expr: Expr) -> bool:
    """Tell whether `expr` is positive, given that sizes (bare symbols) are."""
    if isinstance(expr, Num):
        return expr.value > 0
    if isinstance(expr, Sym):
        return True
    if isinstance(expr, Mul):
        return expr.coefficient > 0 and all(isinstance(f, Sym) for f in expr.factors)
    return False


def divides_by_sizes_only(expr: Expr) -> bool:
    """Tell whether every divisor in `expr` is visibly positive."""
    if isinstance(expr, FloorDiv | CeilDiv | Mod):
        safe = is_positive(expr.divisor)
    elif isinstance(expr, Pow):
        safe = not is_reciprocal(expr) or is_positive(expr.base)
    else:
        safe = True
    return safe and all(map(divides_by_sizes_only, expr.children))


def is_monotone(expr: Expr, variable: str) -> bool:
    """Tell whether `expr` visibly only rises, or only falls, as `variable` grows."""
    if variable not in free_symbols(expr):
        return True
    if linear_in(expr, variable) is not None:
        return True
    if isinstance(expr, Sum):
        return expr.index not in free_symbols(expr.body) and grows_by_its_range(expr, variable)
    if isinstance(expr, FloorDiv | CeilDiv):
        fixed = variable not in free_symbols(expr.divisor)
        return fixed and is_monotone(expr.dividend, variable)
    if isinstance(expr, Add | Mul | Extreme):
        varying = [child for child in expr.children if variable in free_symbols(child)]
        return len(varying) == 1 and is_monotone(varying[0], variable)
    return False


def grows_by_its_range(expr: Expr, variable: str) -> bool:
    """Tell whether `variable` moves just one end, in one direction, of the range of a sum.

    Such a sum is monotone in `variable` when its summands all have one sign.
    """
    if not isinstance(expr, Sum) or expr.index == variable:
        return False
    if variable in free_symbols(expr.body):
        return False
    ends = [end for end in (expr.low, expr.high) if variable in free_symbols(end)]
    return len(ends) == 1 and is_monotone(ends[0], variable)
