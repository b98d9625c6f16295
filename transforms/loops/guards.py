"""Conditions on indices as values: what an iteration does under one is what it chooses by it.

``if i != j: s[i] += a[i, j]`` adds ``np.where(i != j, a[i, j], 0)``, so that either index may
become an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import is_

from advisor.ir.concrete import symbols
from advisor.ir.kernel import Kernel
from advisor.ir.nests import index_name
from advisor.ir.statements import Choice, Loop, Statement, Store
from advisor.ir.values import Elementwise, Read, Scalar, Value
from advisor.numpy_table import PYTHON_INTEGER
from costdb.expr import ZERO, Expr, free_symbols
from costdb.expr.functions import Equal, Less, LessEqual
from costdb.expr.nodes import Add, Mul, Num, Sym
from transforms.loops.lift import NotRaised

_SIGNS = {Equal: "equal", Less: "less", LessEqual: "less_equal"}


def chosen_by_index(loop: Loop, indices: Sequence[str], kernel: Kernel) -> Loop:
    """Return a loop with choices between values in the place of those between stores.

    Indices are those of the loop, and of all around it. Choices on anything else stay.
    """
    inside = (*indices, loop.variable)
    body = tuple(made for one in loop.body for made in _chosen(one, inside, kernel))
    same = len(body) == len(loop.body) and all(map(is_, body, loop.body))
    return loop if same else replace(loop, body=body)


def _chosen(one: Statement, indices: Sequence[str], kernel: Kernel) -> tuple[Statement, ...]:
    if isinstance(one, Loop):
        return (chosen_by_index(one, indices, kernel),)
    if not isinstance(one, Choice) or not free_symbols(one.probability) & {*indices}:
        return (one,)
    try:
        test = _test(one.probability, indices, kernel)
        no = Elementwise("logical_not", (test,))
        ways = ((one.then, test), (one.orelse, no))
        return tuple(_under(s, way, indices, one, kernel) for body, way in ways for s in body)
    except NotRaised:
        return (one,)


def _under(
    one: Statement, test: Value, indices: Sequence[str], choice: Choice, kernel: Kernel
) -> Statement:
    """Return a statement of which only iterations that pass a test change anything."""
    match one:
        case Loop():
            within = (*indices, one.variable)
            return replace(
                one, body=tuple(_under(s, test, within, choice, kernel) for s in one.body)
            )
        case Store(array, region, Elementwise("add" | "subtract", (own, term)) as sum_) if (
            own == Read(array, region)
            and free_symbols(choice.probability) & {*indices} - symbols(region)
        ):
            # the sum of all terms needs no element where there is none
            term = Elementwise("where", (test, term, Scalar("0", PYTHON_INTEGER)))
            return replace(one, value=replace(sum_, operands=(own, term)), held=())
        case Store(array, region, value):
            return replace(
                one, value=Elementwise("where", (test, value, Read(array, region))), held=()
            )
    raise NotRaised


def _test(test: Expr, indices: Sequence[str], kernel: Kernel) -> Value:
    match test:
        case Equal(Equal() | Less() | LessEqual() as inner, Num(0)):
            operation, sides = _SIGNS[type(inner)], inner
            if isinstance(inner, Equal):
                operation = "not_equal"
            else:
                return Elementwise("logical_not", (_test(inner, indices, kernel),))
        case Equal() | Less() | LessEqual():
            operation, sides = _SIGNS[type(test)], test
        case _:
            raise NotRaised
    # each side as it stands before the terms were brought together
    moved = sides.right - sides.left
    falling = [t for t in (moved.terms if isinstance(moved, Add) else (moved,)) if _falls(t)]
    left = -sum(falling, ZERO)
    parts = tuple(Scalar(_text(e, indices, kernel), PYTHON_INTEGER) for e in (left, moved + left))
    return Elementwise(operation, parts)


def _falls(term: Expr) -> bool:
    return isinstance(term, Mul) and term.coefficient < 0


def _text(expr: Expr, indices: Sequence[str], kernel: Kernel) -> str:
    """Return a whole number in the words of numbers that are computed."""
    match expr:
        case Num(int(value)):
            return str(value)
        case Sym(name) if name in indices:
            return index_name(name)
        case Sym(name) if kernel.context.scalar_texts.get(name, "").isidentifier():
            return kernel.context.scalar_texts[name]
        case Mul((factor,), int(coefficient)):
            return f"multiply({coefficient}, {_text(factor, indices, kernel)})"
        case Add(terms, int(constant)):
            texts = [_text(one, indices, kernel) for one in terms]
            if constant:
                texts.append(str(constant))
            return reduce("add({}, {})".format, texts)
    raise NotRaised
