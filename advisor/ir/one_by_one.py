"""What loops ask for one at a time that one call, made before, gives for all of them.

A function that a loop's own was given is called for one number after another: what it does its
callers know, and it may take an array of all these numbers at once, as what NumPy computes with
does. Random numbers are drawn one by one, and lists are searched from their beginning each time.
None of that has a price: how often the loop runs, or how long the list is, seldom stands there.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from advisor.ir.changes import Names, heads_of, path_of
from advisor.ir.functions import File, file_of
from advisor.ir.waiting import names_in, what_waits
from advisor.numpy_functions import SIZE_AT
from advisor.numpy_table import ELEMENTWISE
from advisor.source import walked
from costdb.records import dataclass

_SHORT = 16
"""A range that ends before is worth no array, and a list that does no dictionary."""
_OPERATIONS = ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.expr_context
_NUMBERS = _OPERATIONS | ast.Name | ast.Constant | ast.Attribute
_GRIDS = frozenset({"arange", "linspace", "logspace", "geomspace"})
_OF_NUMBERS = frozenset({"int", "float", "abs", "min", "max", "round", "len", "range", "append"})
_COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Loop = ast.For | ast.While | _COMPREHENSION
_ENDING = ast.Break | ast.Continue | ast.Return | ast.While | ast.Try | ast.With
_GUARDED = ast.If | ast.IfExp | ast.BoolOp | _COMPREHENSION


@dataclass(frozen=True, slots=True)
class OneByOne:
    """What a loop does for one after another.

    Attributes
    ----------
    function : str
        Where it stands; empty outside of all.
    loop, place : ast.AST
    title, reason : str
    when : str
        What it is right for.
    again : bool
        Whether it is the same work again, and not work on elements.
    """

    function: str
    loop: ast.stmt | ast.expr
    place: ast.expr
    title: str
    reason: str
    when: str
    again: bool = False


def one_by_one(source: str) -> Iterator[OneByOne]:
    """Yield what loops do for one after another, by functions, in the order of the source."""
    file = file_of(source, reduces=True)
    for scope in file.scopes:
        if getattr(scope, "decorator_list", None):
            continue  # it may be compiled
        names, own = file.names_of(scope), getattr(scope, "name", "")
        given = {one for one in names.parameters if names.stored[one] == 1}
        drawn: set[ast.AST] = set()
        for one in names.nodes:
            if isinstance(one, ast.For | ast.expr) and given:
                passed = _passed(one, names, given)
                if passed is not None:
                    yield _of_function(own, one, *passed)
            if (
                isinstance(one, ast.For)
                and one not in drawn
                and (draws := _draws(one, names, file))
            ):
                drawn |= {*walked(one)}
                yield _of_draws(own, one, draws, names)
            if isinstance(one, _Loop):
                yield from _searches(own, one, names, file)


def _of_function(
    own: str, loop: ast.For | ast.expr, call: ast.expr, name: str, passed: str
) -> OneByOne:
    title = f"call `{name}` once, with an array of all {passed}"
    why = "each number costs a call of Python; in NumPy's words one call takes all of them"
    when = f"functions `{name}` that take arrays (`np.exp`, not `math.exp`)"
    return OneByOne(own, loop, call, title, why, when)


def _of_draws(own: str, loop: ast.For, draws: Sequence[ast.Call], names: Names) -> OneByOne:
    texts = list(dict.fromkeys(map(ast.unparse, draws)))
    shown = " and ".join(f"`{one}`" for one in texts[:2])
    title = f"draw the numbers of {shown} of all iterations at once, with a size"
    why = "each number costs a call of Python; one call with a size fills an array"
    foreign = names.imported(draws[0].func).startswith("random.")
    other = ", where other random numbers do" if foreign or len(texts) > 1 else ""
    return OneByOne(own, loop, draws[0], title, why, f"loops of ten iterations and more{other}")


# --- random numbers -------------------------------------------------------------------------------


def _draws(loop: ast.For, names: Names, file: File) -> list[ast.Call]:
    """Return the draws of a loop that does little else, each once in each iteration."""
    inside = [part for one in loop.body for part in walked(one)]
    if not _turning(loop.target, loop.iter, names) or any(isinstance(p, _ENDING) for p in inside):
        return []
    arrays = (isinstance(one, ast.Slice | ast.MatMult) for one in inside)
    calls = [one for one in inside if isinstance(one, ast.Call)]
    found = [one for one in calls if _is_draw(one, names, file)]
    others = (ast.unparse(one.func).rpartition(".")[2] for one in calls if one not in found)
    quick = all(one in _OF_NUMBERS or one in ELEMENTWISE for one in others)
    if not found or not quick or any(arrays):
        return []
    guarded = {part for one in inside if isinstance(one, _GUARDED) for part in walked(one)}
    tests = (one.test for one in inside if isinstance(one, ast.If))
    asked = {part for one in tests if isinstance(one, ast.Compare) for part in walked(one)}
    return found if all(one not in guarded or one in asked for one in found) else []


def _is_draw(call: ast.Call, names: Names, file: File) -> bool:
    """Return whether a call draws one random number, of a distribution without parameters.

    Data that programs make up for themselves mostly have others, and are few.
    """
    full, name = names.imported(call.func), ast.unparse(call.func).rpartition(".")[2]
    if call.args or call.keywords:
        return False
    if full.startswith("random."):
        return name == "random"
    if full.startswith("numpy.random."):
        return name in SIZE_AT or name in ("rand", "randn")
    if full or not isinstance(call.func, ast.Attribute):
        return False
    # a generator of Python's own takes no size
    made = (getattr(one, "func", None) for one, _ in file.origins(call.func.value, names))
    own = any(one is not None and names.imported(one) == "random.Random" for one in made)
    return not own and (name in SIZE_AT or name in ("rand", "randn"))


# --- lists ----------------------------------------------------------------------------------------


def _searches(own: str, loop: _Loop, names: Names, file: File) -> Iterator[OneByOne]:
    """Yield what searches a list that stays the same for something else in each iteration."""
    inside = list(walked(loop))
    bound = {x.id for x in inside if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    changed: set[str] | None = None
    for one in inside:
        match one:
            case ast.Call(ast.Attribute(listed, "index"), [sought], []):
                what, sure = "a dictionary", False
            case ast.Compare(sought, [ast.In() | ast.NotIn()], [listed]):
                what, sure = "a set", True
            case _:
                continue
        if changed is None:
            found = names.changes([loop])
            changed = bound | found.wholly | found.elements
        if not path_of(listed) or not changed.isdisjoint(heads_of(path_of(listed))):
            continue
        if changed.isdisjoint(names_in(sought)):
            continue
        origins = [value for value, _ in file.origins(listed, names)]
        lists = [value is not None and _is_list(value) for value in origins]
        if (lists and all(lists)) if sure else not any(map(_is_short, origins)):
            text, shown = ast.unparse(listed), ast.unparse(sought)
            title = f"look `{shown}` up in {what} of `{text}`, made once before the loop"
            why = "each search goes through the list from its beginning"
            when = f"lists `{text}` of more than ten elements, all hashable"
            yield OneByOne(own, loop, one, title, why, when, again=True)
            return


def _is_list(value: ast.expr) -> bool:
    """Return whether a value is a list that may be long."""
    match value:
        case ast.List(parts):
            return len(parts) > _SHORT
        case ast.Call(func):
            return ast.unparse(func).rpartition(".")[2] in ("list", "sorted", "split", "tolist")
    return isinstance(value, ast.ListComp)


def _is_short(value: ast.expr | None) -> bool:
    """Return whether a value is a text, or a list of few."""
    parts = getattr(value, "elts", None)
    short = parts is not None and len(parts) <= _SHORT
    return short or isinstance(value, ast.Constant | ast.JoinedStr)


# --- functions that were given --------------------------------------------------------------------


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
