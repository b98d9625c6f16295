"""The symbols of a program: what they stand for, what binds them, which differ by rank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from advisor.ir.spmd.program import RANK, RANKS, Derived, SizeFact
from advisor.source import Span
from costdb.expr import Expr, ExprError, evaluate, free_symbols, sym
from costdb.expr.functions import NOT_NUMBERS, OPERATOR_WORDS, name_like
from costdb.expr.nodes import Num

COMMAND_LINE = "an argument of the command line"
"""Why the value of a symbol is not known."""

BROADCAST = "what a broadcast gives to those who sent nothing"
"""Why an object is not known that the root of a broadcast knows."""

RECEIVED = "what a pickled receive gives"
"""Why an object is not known that another rank sends."""

_RESERVED = frozenset({RANK, RANKS}) | NOT_NUMBERS | OPERATOR_WORDS


@dataclass(slots=True)
class Symbols:
    """Symbols by the variable and the place that they were made for.

    Attributes
    ----------
    facts : dict of str to SizeFact
    by_rank : set of str
    module : str
        The file beside the program that is followed, ``""`` for the program itself.
    """

    facts: dict[str, SizeFact] = field(default_factory=dict)
    by_rank: set[str] = field(default_factory=lambda: {RANK})
    module: str = ""
    _places: dict[tuple[str, Span | None, int | float | None, str], str] = field(
        default_factory=dict
    )
    _taken: set[str] = field(default_factory=lambda: set(_RESERVED))

    def known(self, name: str, value: int | float, origin: str, span: Span) -> Expr:
        """Return a symbol for a variable with a usual value."""
        return sym(self.made(name, span, value, SizeFact(value, origin, span)))

    def unknown(self, name: str, why: str, span: Span | None, *, varies: bool = False) -> Expr:
        """Return a symbol for something that nothing binds."""
        symbol = self.made(name, span, None, SizeFact(None, why, span))
        if varies:
            self.vary(symbol)
        return sym(symbol)

    def derive(self, symbol: str, rule: Derived, why: str, span: Span | None) -> None:
        """Note how the program works a symbol's value out."""
        self.facts[symbol] = SizeFact(None, why, span, rule)

    def index(self, name: str, span: Span) -> str:
        """Return the symbol of a loop's index."""
        return self.made(name, span, None, None)

    def made(
        self, name: str, span: Span | None, value: int | float | None, fact: SizeFact | None
    ) -> str:
        """Return a symbol, with what is said of it unless something is known already."""
        symbol = self._symbol(name, span, value)
        if fact is not None:
            self.facts.setdefault(symbol, fact)
        return symbol

    def vary(self, symbol: str) -> None:
        """Note that a symbol may differ from rank to rank."""
        self.by_rank.add(symbol)

    def _symbol(self, name: str, span: Span | None, value: int | float | None) -> str:
        key = (name, span, value, self.module if span is not None else "")
        if key not in self._places:
            base = _identifier(name)
            symbol, number = base, 2
            while symbol in self._taken or symbol.lower() in NOT_NUMBERS:
                symbol, number = f"{base}_{number}", number + 1
            self._places[key] = symbol
            self._taken.add(symbol)
        return self._places[key]

    def varies(self, expr: Expr | None) -> bool:
        """Return whether an expression may differ from rank to rank."""
        return expr is not None and not self.by_rank.isdisjoint(free_symbols(expr))

    def value(self, expr: Expr | None) -> int | None:
        """Return the whole number that an expression has with the values that are known."""
        if expr is None:
            return None
        if isinstance(expr, Num):
            return int(expr.value) if expr.value == int(expr.value) else None
        bound = {
            name: fact.value
            for name in free_symbols(expr)
            if (fact := self.facts.get(name)) is not None and fact.value is not None
        }
        try:
            found = evaluate(expr, bound)
        except (ExprError, ArithmeticError, ValueError):
            return None
        return int(found) if found == int(found) else None

    def note_ranks(self, value: int, origin: str, span: Span | None) -> None:
        """Note how many ranks there are, unless something said so before."""
        known = self.facts.get(RANKS)
        if value >= 1 and (known is None or known.value is None):
            self.facts[RANKS] = SizeFact(value, origin, span)

    def bind(self, names: Iterable[tuple[str, int | float]], origin: str, span: Span) -> None:
        """Let a comment bind symbols, over whatever else does."""
        for name, value in names:
            self.facts[name] = SizeFact(value, origin, span)


def _identifier(name: str) -> str:
    """Return a name of the expression language that resembles a piece of source."""
    parts = [part.strip("_") or "_" for part in name_like(name).split(".") if part]
    made = ".".join(p if p.isidentifier() else f"_{p}" for p in parts)
    made = made.removeprefix("self.")[:40].strip(".") or "size"
    return f"{made}_" if made.lower() in _RESERVED - {RANK, RANKS} else made
