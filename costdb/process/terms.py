"""Terms of the process algebra: who does what, in which order, on which resource.

The algebra is that of the symbolic performance compilers (PAMELA and its descendants): a
program is a term over delays and resource usage, composed in sequence and in parallel.
Everything a term says about time is symbolic, so one term serves every problem size.
"""

from __future__ import annotations

from typing import TypeAlias

from costdb.expr import Expr, free_symbols, num
from costdb.expr.nodes import Num, Rational
from costdb.records import dataclass
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


def constant_of(expr: Expr) -> Rational | None:
    """Return the value of a constant, else None."""
    return expr.value if isinstance(expr, Num) else None
