"""Long formulas in readable form: what occurs again gets a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from costdb.expr import Expr, free_symbols, sym, to_text
from costdb.expr.functions import Reduction

_SHORTEST_NAMED = 14
"""Parts with fewer characters are read as quickly as a name is looked up."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Formulas over names for their common parts.

    Attributes
    ----------
    formulas : tuple of Expr
        In the order given.
    definitions : tuple of (str, Expr)
        Each over the sizes, the coefficients and earlier definitions.
    """

    formulas: tuple[Expr, ...]
    definitions: tuple[tuple[str, Expr], ...]


def share(formulas: Sequence[Expr], stem: str = "q") -> Shared:
    """Name the parts that occur more than once in formulas taken together.

    Parameters
    ----------
    formulas : sequence of Expr
    stem : str
        Names are this and a number; those that the formulas use are passed over.
    """
    sharing = _Sharing(stem, _taken(formulas))
    for formula in formulas:
        sharing.count(formula)
    shown = tuple(sharing.shortened(formula) for formula in formulas)
    return Shared(shown, tuple(sharing.definitions))


def wrapped(name: str, formula: Expr, width: int, indent: int) -> list[str]:
    """Return lines ``name = formula``, broken at blanks, the later ones indented further."""
    import textwrap

    return textwrap.wrap(
        f"{name} = {to_text(formula)}",
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _taken(formulas: Iterable[Expr]) -> frozenset[str]:
    kept = tuple(formulas)
    return _indices(kept).union(*map(free_symbols, kept))


def _indices(formulas: Sequence[Expr]) -> frozenset[str]:
    """Return the indices of all reductions; each distinct part is looked at once."""
    seen, pending = set(formulas), list(formulas)
    while pending:
        for child in pending.pop().children:
            if child not in seen:
                seen.add(child)
                pending.append(child)
    return frozenset(part.index for part in seen if isinstance(part, Reduction))


@dataclass(slots=True)
class _Sharing:
    stem: str
    taken: frozenset[str]
    uses: Counter[Expr] = field(default_factory=Counter)
    definitions: list[tuple[str, Expr]] = field(default_factory=list)
    done: dict[Expr, Expr] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    number: int = 0

    def count(self, expr: Expr) -> None:
        """Count how often each part is used by distinct parts around it."""
        self.uses[expr] += 1
        if self.uses[expr] > 1:
            return
        if isinstance(expr, Reduction):
            self.bound |= {expr.index}
        for child in expr.children:
            self.count(child)

    def shortened(self, expr: Expr) -> Expr:
        """Return `expr` with names for its common parts, which become definitions."""
        if expr not in self.done:
            self.done[expr] = self._shortened(expr)
        return self.done[expr]

    def _shortened(self, expr: Expr) -> Expr:
        if not expr.children:
            return expr
        short = expr.rebuild(tuple(map(self.shortened, expr.children)))
        # what holds the index of a reduction means nothing outside it
        if self.uses[expr] < 2 or free_symbols(expr) & self.bound:
            return short
        if len(to_text(short)) < _SHORTEST_NAMED:
            return short
        name = self._name()
        self.definitions.append((name, short))
        return sym(name)

    def _name(self) -> str:
        self.number += 1
        while (name := f"{self.stem}{self.number}") in self.taken:
            self.number += 1
        return name
