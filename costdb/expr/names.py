"""Names: which are allowed, which occur free, and replacing them without capture."""

from __future__ import annotations

import re
from collections.abc import Mapping

from costdb.expr.functions import Conditional, Reduction
from costdb.expr.nodes import Expr, ExprLike, Num, Sym, as_expr
from costdb.expr.numbers import ExprError
from costdb.wording import IDENTIFIER

NAME_PATTERN = rf"{IDENTIFIER}(?:\.{IDENTIFIER})*"
"""Names as Python has them, which may be Greek or Chinese; what is none after all is refused."""

_NAMED = re.compile(" +")
NOT_NUMBERS = frozenset({"nan", "inf", "infinity"})
OPERATOR_WORDS = frozenset({"div", "mod", "and", "or", "not"})


def check_name(name: str) -> str:
    """Return `name`, or refuse what the grammar could not read back."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ExprError(f"{name!r} is not a name")
    if len(name) > 200:
        raise ExprError(f"a name of {len(name)} characters is too long")
    if name in OPERATOR_WORDS:
        raise ExprError(f"{name!r} is an operator, not a name")
    if name.lower() in NOT_NUMBERS:
        raise ExprError(f"{name!r} is not a finite number")
    return name


def is_name(text: str) -> bool:
    """Return whether a symbol may be called so; some names of Python's mean something here."""
    try:
        check_name(text)
    except ExprError:
        return False
    return True


def name_like(text: str) -> str:
    """Return `text` with an underscore for each run of what names do not hold; dots stay."""
    parts = _NAMED.split("".join(c if c == "." or f"_{c}".isidentifier() else " " for c in text))
    return "_".join(parts)


def sym(name: str) -> Expr:
    """Return the symbol `name`: identifiers of Python, joined by dots."""
    return Sym(check_name(name))


CHANCE = "chance.line"
"""With a number behind it: the probability of a condition in that line that nothing tells."""


def chance(line: int) -> Expr:
    """Return the probability of a condition that nothing tells, by the line where it stands."""
    return sym(f"{CHANCE}{line}")


def free_symbols(expr: Expr) -> frozenset[str]:
    """Return the names that a value of `expr` depends on."""
    known = expr._free
    if known is not None:
        return known
    if isinstance(expr, Sym):
        found = frozenset({expr.name})
    elif isinstance(expr, Reduction):
        found = free_symbols(expr.low) | free_symbols(expr.high)
        found |= free_symbols(expr.body) - {expr.index}
    else:
        found = frozenset().union(*map(free_symbols, expr.children))
    object.__setattr__(expr, "_free", found)
    return found


def fresh_name(stem: str, taken: frozenset[str]) -> str:
    """Return `stem`, or `stem` with the first number that makes it differ from all `taken`."""
    name, count = stem, 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    return name


def substitute(expr: Expr, replacements: Mapping[str, ExprLike]) -> Expr:
    """Replace free symbols, renaming an index that would capture a replacement.

    Parameters
    ----------
    expr : Expr
    replacements : mapping of str to Expr or number
        All replaced at once; names that do not occur are ignored.
    """
    return _Replacing({name: as_expr(new) for name, new in replacements.items()}).replaced(expr)


class _Replacing:
    """One set of replacements; parts that occur several times are replaced once."""

    def __init__(self, replacements: dict[str, Expr]) -> None:
        self.replacements = replacements
        self.known: dict[Expr, Expr] = {}

    def replaced(self, expr: Expr) -> Expr:
        if free_symbols(expr).isdisjoint(self.replacements):
            return expr
        if isinstance(expr, Sym):
            return self.replacements[expr.name]
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = self._replaced(expr)
        return found

    def _replaced(self, expr: Expr) -> Expr:
        if isinstance(expr, Reduction):
            low, high = self.replaced(expr.low), self.replaced(expr.high)
            body = rename_index(expr, self.replacements)
            return body.rebuild((low, high, body.body))
        if isinstance(expr, Conditional):
            test = self.replaced(expr.test)
            if isinstance(test, Num):
                # the other branch may have no value here, which is what the test is for
                return self.replaced(expr.then if test.value else expr.orelse)
        return expr.rebuild(tuple([self.replaced(child) for child in expr.children]))


def rename_index(expr: Reduction, replacements: dict[str, Expr]) -> Reduction:
    """Return `expr` with `replacements` made in its body, under an index that captures none."""
    inner_names = free_symbols(expr.body) - {expr.index}
    inner = {name: replacements[name] for name in inner_names & replacements.keys()}
    index = expr.index
    incoming = frozenset().union(*map(free_symbols, inner.values()))
    if index in incoming:
        index = fresh_name(index, incoming | inner_names)
        inner[expr.index] = Sym(index)
    return type(expr)(index, expr.low, expr.high, _Replacing(inner).replaced(expr.body))


def replace_part(expr: Expr, part: Expr, new: Expr) -> Expr:
    """Return `expr` with `part` replaced, except in reductions: their index could hide a name."""
    if expr == part:
        return new
    if not expr.children or expr.size < part.size or isinstance(expr, Reduction):
        return expr
    return expr.rebuild(tuple([replace_part(child, part, new) for child in expr.children]))
