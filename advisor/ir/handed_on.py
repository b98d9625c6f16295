"""Which loops call a function, that their own was given, for one number after another.

What such a function does its callers know: it may take an array of all these numbers at once, as
what NumPy computes with does. Said of loops whose iterations do not wait for one another, and of
comprehensions and what else goes through numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from advisor.ir.changes import Function, Names
from advisor.ir.functions import file_of
from advisor.ir.waiting import names_in, what_waits
from advisor.source import walked
from costdb.records import dataclass

_SHORT = 16
"""A range that ends before is worth no array."""
_OPERATIONS = ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.expr_context
_NUMBERS = _OPERATIONS | ast.Name | ast.Constant | ast.Attribute
_GRIDS = frozenset({"arange", "linspace", "logspace", "geomspace"})


@dataclass(frozen=True, slots=True)
class HandedOn:
    """A call for each of many numbers.

    Attributes
    ----------
    function : str
        Where it stands.
    loop, call : ast.AST
    name, passed : str
        What is called, and with what each time.
    """

    function: str
    loop: ast.For | ast.expr
    call: ast.expr
    name: str
    passed: str


def handed_on(source: str) -> Iterator[HandedOn]:
    """Yield calls of functions that were given, one of each loop, in the order of the source."""
    file = file_of(source, reduces=True)
    for scope in file.scopes:
        if isinstance(scope, Function) and not scope.decorator_list:
            names = file.names_of(scope)
            given = {one for one in names.parameters if names.stored[one] == 1}
            for one in names.nodes if given else ():
                if isinstance(one, ast.For | ast.expr):
                    passed = _passed(one, names, given)
                    yield from () if passed is None else [HandedOn(scope.name, one, *passed)]


def _passed(one: ast.AST, names: Names, given: Collection[str]) -> tuple[ast.expr, str, str] | None:
    """Return the call of a loop, what it calls, and with what in words."""
    match one:
        case ast.For(target, numbers, body) if not what_waits(one, _Calls(names, given)):
            # what is called for its deeds alone gives no numbers
            alone = {part.value for part in walked(one) if isinstance(part, ast.Expr)}
            found = [part for part in walked(one) if part not in alone]
        case ast.ListComp(value, [ast.comprehension(target, numbers)]) | ast.GeneratorExp(
            value, [ast.comprehension(target, numbers)]
        ):
            found, body = [*walked(value)], []
        case ast.Call(ast.Name("map"), [ast.Name(name), numbers]) if name in given:
            known = _turning(ast.Name("each", ast.Store()), numbers, names) and not _is_range(
                numbers
            )
            return (one, name, f"`{ast.unparse(numbers)}`") if known else None
        case ast.Call(func, [ast.Name(name), _, vectors]) if name in given:
            known = names.imported(func) == "numpy.apply_along_axis"
            return (one, name, f"vectors of `{ast.unparse(vectors)}`") if known else None
        case _:
            return None
    turning = _turning(target, numbers, names)
    indices = set(turning) if _is_range(numbers) else set()
    for part in body if turning else ():
        match part:
            case ast.Assign([ast.Name(name)], value) if _is_other([value], turning, names):
                turning.add(name)
    for call in found:
        if _calls(call, given) and isinstance(call, ast.Call):
            texts = [ast.unparse(argument) for argument in call.args]
            if _is_other(call.args, turning, names) and not indices.issuperset(texts):
                return call, ast.unparse(call.func), f"`{', '.join(texts)}`"
    return None


def _calls(node: ast.AST, given: Collection[str]) -> bool:
    """Return whether something calls what was given, with numbers by their places."""
    match node:
        case ast.Call(ast.Name(name), [_, *_] as passed, []) if name in given:
            return not any(isinstance(one, ast.Starred) for one in passed)
    return False


def _is_range(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "range"


def _turning(target: ast.expr, given: ast.AST, names: Names) -> set[str]:
    """Return the names that go through the numbers of a range, or of a grid."""
    if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice):
        given = given.value
    if isinstance(given, ast.Name):
        given = names.once.get(given.id, given)
    match given:
        case ast.Call(ast.Name("enumerate"), [inner, *_]) if isinstance(target, ast.Tuple):
            return _turning(target.elts[-1], inner, names)
        case ast.Call(_, limits):
            ends = [one.value for one in limits if isinstance(one, ast.Constant)]
            short = len(ends) == len(limits) and all(one in range(_SHORT) for one in ends)
            grid = names.imported(given.func).removeprefix("numpy.") in _GRIDS
            if grid or (_is_range(given) and not short):
                return {*names_in(target, ast.Store)}
    return set()


def _is_other(parts: Sequence[ast.expr], turning: Collection[str], names: Names) -> bool:
    """Return whether some expressions are other numbers each time."""
    read = {name for part in parts for name in names_in(part)}
    return not read.isdisjoint(turning) and all(_is_number(one, turning, names) for one in parts)


def _is_number(node: ast.AST, turning: Collection[str], names: Names) -> bool:
    match node:
        case ast.Subscript(ast.Name() as grid, ast.Name(index)):
            return index in turning and bool(_turning(ast.Name(index, ast.Store()), grid, names))
        case ast.expr() if isinstance(node, _NUMBERS):
            return all(_is_number(one, turning, names) for one in ast.iter_child_nodes(node))
    return isinstance(node, _OPERATIONS)


class _Calls:
    """What calls do: those of functions that were given compute, as long as nobody says more."""

    def __init__(self, names: Names, given: Collection[str]) -> None:
        self.names, self.given, self.hidden = names, given, names.hidden

    def free(self, call: ast.Call) -> bool:
        """Return whether all that a call does is to compute."""
        return _calls(call, self.given) or self.names.free(call)
