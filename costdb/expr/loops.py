"""Sums and maxima over ranges, as loops of plain numbers.

Loops over one range are one loop, which evaluates what they share once. A loop is compiled when
its range is known and not empty; loops of one form (:mod:`costdb.expr.forms`) share their code.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from costdb.expr.arithmetic import MAX_ITERATIONS, reduction_bound
from costdb.expr.denominators import cleared, over_denominator
from costdb.expr.errors import ExprError
from costdb.expr.exact import Value
from costdb.expr.forms import form_of
from costdb.expr.functions import Conditional, Reduction, Sum
from costdb.expr.lower import (
    added_to,
    appended_to,
    assign,
    assign_all,
    binary,
    call,
    constant,
    first_of,
    is_exact,
    name,
    raised_to,
    returned,
    shared_parts,
)
from costdb.expr.names import free_symbols, fresh_name, substitute
from costdb.expr.nodes import Expr, Sym
from costdb.expr.pieces import PIECED_FROM, pieced
from costdb.expr.scalar_code import ScalarCode, divided

_AT: dict[str, Any] = {"lineno": 1, "col_offset": 0}

MOST_FORMS = 512
"""Loops that are kept compiled."""


class Scalar(ScalarCode):
    """Turns expressions into code for plain numbers, reductions into loops."""

    def function(self, expr: Expr, helpers: dict[str, object]) -> Callable[..., Value]:
        """Return the compiled function; loops over one range that are all needed are one loop."""
        together: dict[tuple[Expr, Expr], list[Reduction]] = {}
        for part in _needed(expr):
            together.setdefault((part.low, part.high), []).append(part)
        for (low, high), parts in together.items():
            if len(parts) > 1 and not free_symbols(expr) - self.scope.keys():
                code = self.looped(parts, low, high, False)
                targets = [f"r{self.reductions}_{place}" for place in range(len(parts))]
                self.statements.append(assign_all(targets, code))
                self.hoisted.update(zip([(part, False) for part in parts], targets, strict=True))
        return super().function(expr, helpers)

    def reduction(self, expr: Reduction, exact: bool) -> ast.expr:
        """Return code for a sum or maximum over a range."""
        return first_of(self.looped([expr], expr.low, expr.high, exact))

    def looped(self, parts: list[Reduction], low: Expr, high: Expr, exact: bool) -> ast.expr:
        """Return code for the values of reductions over one range, a tuple of them."""
        self.reductions += 1
        own = f"loop{self.reductions}"
        free = sorted(frozenset().union(*(free_symbols(p.body) - {p.index} for p in parts)))
        self.helpers[own] = reducer(tuple(parts), tuple(free), exact)
        given = [self.symbol(Sym(one), exact) for one in free]
        return call(own, self.lower(low, True), self.lower(high, True), *given)


def _needed(expr: Expr) -> list[Reduction]:
    """Return the reductions that are evaluated whatever is chosen."""
    found: dict[Expr, None] = {}
    pending = [expr]
    while pending:
        part = pending.pop()
        if part in found:
            continue
        found[part] = None
        if isinstance(part, Conditional):
            pending.append(part.test)
        elif not isinstance(part, Reduction):
            # divisions and comparisons are lowered in another mode
            pending += [] if is_exact(part) else part.children
    return [part for part in found if isinstance(part, Reduction)]


def reducer(
    parts: tuple[Reduction, ...],
    names: tuple[str, ...],
    exact: bool,
    known_whole: frozenset[str] = frozenset(),
) -> Callable[..., tuple[Value, ...]]:
    """Return a function of the ends of a range and of other symbols, a value for each part."""
    whole = [_over(part, exact) for part in parts]
    parts, below = tuple(part for part, _ in whole), tuple(number for _, number in whole)

    def reduced(low: Value, high: Value, *others: Value) -> tuple[Value, ...]:
        first, last = reduction_bound(low, "a loop"), reduction_bound(high, "a loop")
        if last < first:
            return (0,) * len(parts)
        if last - first >= PIECED_FROM:
            known = _in_pieces(parts, first, last, dict(zip(names, others, strict=True)))
            if known is not None:
                return tuple(map(divided, known, below))
        if last - first >= MAX_ITERATIONS:
            raise ExprError(f"a loop without a closed form has more than {MAX_ITERATIONS} steps")
        values = _loop(parts, names, exact, known_whole)(first, last, *others)
        return tuple(map(divided, values, below))

    return reduced


def lister(
    part: Reduction, names: tuple[str, ...], whole: frozenset[str]
) -> Callable[..., tuple[list[Value], int]]:
    """Return a function of the ends of a range that is not empty, and of other symbols.

    It returns the exact values of a body in the order of the range, before a division by a whole
    number, and that number.
    """
    over, below = _over(part, True)
    loop = _loop((over,), names, True, whole, listed=True)
    return lambda *given: (loop(*given)[0], below)


def _over(part: Reduction, exact: bool) -> tuple[Reduction, int]:
    """Return a reduction that decides over whole numbers, and what to divide it by."""
    if not exact:
        return type(part)(part.index, part.low, part.high, cleared(part.body)), 1
    body, below = over_denominator(part.body)
    return type(part)(part.index, part.low, part.high, body), below


def _in_pieces(
    parts: tuple[Reduction, ...], low: int, high: int, others: dict[str, Value]
) -> tuple[Value, ...] | None:
    found: list[Value] = []
    for part in parts:
        # what is exact decides where pieces end; floats, such as coefficients, only weigh them
        used = sorted(free_symbols(part.body) - {part.index})
        exact = tuple((n, v) for n in used if not isinstance(v := others[n], float))
        weights = pieced(part, low, high, exact)
        if weights is None:
            return None
        found.append(
            sum(w * math.prod(others[name] for name in names) for names, w in weights.items())
        )
    return tuple(found)


@lru_cache(maxsize=512)
def _loop(
    parts: tuple[Reduction, ...],
    names: tuple[str, ...],
    exact: bool,
    whole: frozenset[str],
    *,
    listed: bool = False,
) -> Callable[..., Any]:
    """Return a function of the ends of a range that is not empty, and of other symbols.

    It gives a value for each part, or where `listed`, the list of its terms.
    """
    form = form_of(parts, names)
    if form is None:
        return _Loop(("low", "high", *names), whole=whole).over(parts, exact, listed)
    key = form.key, tuple([name in whole for name in names]), exact, listed
    made = _forms.pop(key, None)
    if made is None:
        numbers = {number: f"n{place}" for place, number in enumerate(form.numbers)}
        made = _Loop(("low", "high", *names), numbers, whole).over(parts, exact, listed)
    _forms[key] = made
    while len(_forms) > MOST_FORMS:
        _forms.pop(next(iter(_forms)))
    return partial(made, *form.numbers) if form.numbers else made


_forms: dict[Hashable, Callable[..., Any]] = {}


class _Loop(Scalar):
    """Reductions over one range, as one loop that evaluates what they share once.

    Parameters
    ----------
    names : sequence of str
    numbers : mapping of int to str
        The first arguments.
    whole : frozenset of str
        Those of `names` that surely stand for an `int`.
    """

    def __init__(
        self,
        names: Sequence[str],
        numbers: Mapping[int, str] | None = None,
        whole: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(names)
        self.numbers = numbers or {}
        self.whole = whole

    def over(
        self, parts: tuple[Reduction, ...], exact: bool, listed: bool = False
    ) -> Callable[..., Any]:
        """Return the compiled loop, with a value for each part or the list of its terms."""
        low, high = self.scope.pop("low"), self.scope.pop("high")
        given = (*self.numbers.values(), low, high, *self.scope.values())
        arguments = [ast.arg(one, None, **_AT) for one in given]
        index = parts[0].index
        if any(part.index != index for part in parts) or index in self.scope:
            index = fresh_name("i", frozenset(self.scope))
        bodies = [(_indexed(part, index), exact) for part in parts]
        keys = shared_parts(bodies, self.mode, index)
        self.share(key for key in keys if index not in free_symbols(key[0]))
        totals = [f"total{place}" for place in range(len(parts))]
        starts = [_start(part, listed) for part in parts]
        before = [*self.statements, *map(assign, totals, starts)]
        self.statements = []
        self.scope[index] = "i"
        self.whole |= {index}
        self.share(key for key in keys if index in free_symbols(key[0]))
        for part, total, (body, _) in zip(parts, totals, bodies, strict=True):
            code = self.lower(body, exact)
            if listed:
                self.statements.append(appended_to(total, code))
            elif isinstance(part, Sum):
                self.statements.append(added_to(total, code))
            else:
                self.statements += raised_to(total, code)
        steps = call("range", name(low), binary(name(high), ast.Add(), constant(1)))
        loop = ast.For(ast.Name("i", ast.Store(), **_AT), steps, self.statements, [], **_AT)
        self.statements = [*before, loop, returned(totals)]
        return self.compiled(arguments, self.helpers)


def _start(part: Reduction, listed: bool) -> ast.expr:
    if listed:
        return ast.List([], ast.Load(), **_AT)
    return constant(0 if isinstance(part, Sum) else None)


def _indexed(part: Reduction, index: str) -> Expr:
    return part.body if part.index == index else substitute(part.body, {part.index: Sym(index)})
