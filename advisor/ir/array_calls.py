"""Functions of arrays that loops call with one number, point or row at a time.

One call with an array of all of them takes the place of these, where all are known before the loop:
they depend on what it goes through, and on what stays the same, alone.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from advisor.ir.changes import OWN, Names, is_opaque
from advisor.ir.effects import ASKED, BY_ROWS, MADE_KINDS, METHODS
from advisor.ir.functions import File
from advisor.ir.unchanging import Turning, turning_in
from advisor.numpy_functions import FUNCTIONS
from advisor.numpy_table import ELEMENTWISE
from advisor.source import COMPREHENSION, assigned_names, each_of, every, names_in, walked
from costdb.records import dataclass, only

SHORT = 16
"""A range that ends before is worth no array, and a list that does no dictionary."""
_GRIDS = frozenset({"arange", "linspace", "logspace", "geomspace"})
_OF_ROWS = frozenset(f"numpy.{one}" for one in ("array", "zeros", "ones", "empty", "full", "eye"))


@dataclass(frozen=True, slots=True)
class ArrayCall:
    """A call that one with arrays may take the place of.

    Attributes
    ----------
    node : ast.Call
    taken, rest : sequence of ast.expr
        What may be arrays, and what else it is given.
    kind : str
        What it is given one of: a number, a point, or a row.
    given : bool
        Whether it calls what the function was given.
    """

    node: ast.Call
    taken: Sequence[ast.expr]
    rest: Sequence[ast.expr]
    kind: str = "number"
    given: bool = False


def _call(node: ast.Call, names: Names, given: Collection[str]) -> ArrayCall | None:
    """Return what a call may be given many of; None where that is nothing known."""
    func, args, named = node.func, node.args, [one.value for one in node.keywords]
    if any(isinstance(one, ast.Starred) for one in args) or any(not k.arg for k in node.keywords):
        return None
    full, first, rest = names.imported(func), args[:1], [*args[1:], *named]
    module, _, name = full.rpartition(".")
    kind = MADE_KINDS.get(module, "") if full else names.kind(getattr(func, "value", func))
    if isinstance(func, ast.Name) and func.id in given and not named:
        return ArrayCall(node, args, [], given=True)
    if kind in ASKED and names.free(node):
        if kind == "distribution":
            return ArrayCall(node, [*args, *named], [])
        return ArrayCall(node, first, [func, *rest], "number" if kind == "curve" else "point")
    if module == "scipy.stats" and name in BY_ROWS:
        plain = {one.arg for one in node.keywords}.isdisjoint({"axis", "permutations"})
        return ArrayCall(node, args, named, "row") if plain else None
    if not full and isinstance(func, ast.Attribute) and func.attr == "searchsorted":
        return ArrayCall(node, first, [func.value, *rest])
    row = FUNCTIONS.get(full.removeprefix("numpy."))
    if row is None or full.startswith(("scipy.ndimage", "scipy.signal")):
        return None
    whole = [one for one in row.forms if one.results == (("...",),) and "..." in one.operands]
    places = whole[0].operands if whole else ()
    taken = [one for one, how in zip(args, places, strict=False) if how == "..."]
    return ArrayCall(node, taken, [one for one in (*args, *named) if one not in taken])


def called(
    loop: ast.For | ast.expr, names: Names, file: File, told: set[ast.AST]
) -> Iterator[tuple[ArrayCall, str, frozenset[str]]]:
    """Yield functions of arrays that a loop calls with one number, point or row at a time.

    Each once, with what it is given in words, and for each of what one call takes all.

    Parameters
    ----------
    loop : ast.For or ast.expr
    names : Names
    file : File
    told : set of ast.AST
        Calls of which somebody told; those that are found are added.
    """
    whole = loop if isinstance(loop, ast.For) else as_loop(loop)
    inner = {part for one in every(OWN, whole) for part in walked(one)}
    # what is called for its deeds alone gives no numbers
    inner |= {one.value for one in every(ast.Expr, loop)}
    given = {one for one in names.parameters if names.stored[one] == 1}
    nodes = [one for one in every(ast.Call, whole) if one not in inner | told]
    calls = [one for node in nodes if (one := _call(node, names, given)) and one.taken]
    ends = any(every(ast.Break | ast.Return, loop))
    if not calls or ends or is_opaque(whole):
        return
    known = {**names.kinds, **dict.fromkeys(given, "curve")}
    free = names.seen(lambda path: known.get(path, ""), unknown="")
    turns: dict[bool, _Turns] = {}
    shown = set[str]()
    for call in calls:
        if call.given not in turns:
            seen = free if call.given else names
            turns[call.given] = _Turns(whole, turning_in(whole, seen), names, file)
        if (found := turns[call.given].many(call)) is not None:
            name = ast.unparse(call.node.func)
            told.update(one for one in nodes if ast.unparse(one.func) == name)
            if name not in shown:
                yield call, *found
            shown.add(name)


def as_loop(node: ast.expr) -> ast.For:
    """Return a loop that computes what a comprehension does."""
    assert isinstance(node, COMPREHENSION)
    values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    body: list[ast.stmt] = [ast.Expr(one) for one in values]
    for one in reversed(node.generators):
        body = [ast.For(one.target, one.iter, [*map(ast.Expr, one.ifs), *body], [])]
    assert isinstance(body[0], ast.For)
    return body[0]


class _Turns:
    """What a loop goes through, and which expressions in it are one number, point or row.

    Attributes
    ----------
    loop : ast.For
    turning : Turning
    values : dict of str to ast.expr
        What is bound in it.
    arrays : set of str
        What is used as an array in it.
    spread : set of ast.AST
        Calls whose results are used as arrays.
    ranks : dict of str to int
        How many indices are seen behind names.
    """

    def __init__(self, loop: ast.For, turning: Turning, names: Names, file: File) -> None:
        self.loop, self.turning, self.names, self.file = loop, turning, names, file
        self.loops = [*every(ast.For, loop)]
        places = (one for one in every(ast.Name, loop) if one in names.values)
        self.values = {one.id: names.values[one] for one in places}
        self.spread = {part for one in walked(loop) for part in _used_as_arrays(one)}
        self.arrays = {one.id for one in only(ast.Name, self.spread)}
        bound = ((name, value) for name, value in self.values.items() if name in self.arrays)
        self.spread |= {value for _, value in bound}
        self.ranks: dict[str, int] = {}
        for one in names.nodes:
            match one:
                case ast.Subscript(ast.Name(name), ast.Tuple(parts)):
                    self.ranks[name] = max(len(parts), self.ranks.get(name, 1))

    def many(self, call: ArrayCall) -> tuple[str, frozenset[str]] | None:
        """Return the numbers that one call may be given, in words, and for each of what.

        None where they are not all known before the loop, or are few, or may be something else.
        """
        taken, rest = self.turning.of(*call.taken), self.turning.of(*call.rest)
        if taken is None or rest is None or self.turning.lost.changes.strange:
            return None
        # what one loop binds goes together
        whole = [{*assigned_names(one.target)} for one in self.loops]
        free = taken.difference(*(one for one in whole if rest & one))
        around = [one for one in self.loops if free & {*assigned_names(one.target)}]
        head = {*assigned_names(self.loop.target)}
        if free.isdisjoint(head) or all(is_few(one.iter, self.names, self.file) for one in around):
            return None
        others = [one for one in call.taken if self.turning.of(one)]
        if call.given:
            grids = [one for one in around if turning(one.target, one.iter, self.names)]
            ranges = (one.target for one in grids if _is_range(one.iter))
            indices = {name for one in ranges for name in names_in(one, ast.Store)}
            known = len(grids) == len(around) and not indices.issuperset(map(ast.unparse, others))
        else:
            known = call.kind != "number" or call.node not in self.spread
        alike = {"number": self._is_number, "point": self._is_point, "row": self._is_row}
        sure = call.given
        if not known or not all(alike[call.kind](one, sure) for one in others):
            return None
        return f"`{', '.join(map(ast.unparse, others))}`", rest

    def _is_number(self, node: ast.expr, sure: bool = False) -> bool:
        """Return whether an expression is one number, as far as shows; or else surely."""
        match node:
            case ast.Constant():
                return True
            case ast.Name(name):
                if name in self.arrays:
                    return False
                if name in self.values:
                    return self._is_number(self.values[name], sure)
                kinds = self.file.kinds(node, self.names)
                return name in self.turning.turning or kinds <= {"", "number", "None"}
            case ast.Attribute():
                return self.names.kind(node) in ("", "number")
            case ast.Subscript(ast.Name() as grid, ast.Name(index)) if sure:
                return bool(turning(ast.Name(index, ast.Store()), grid, self.names))
            case ast.Subscript(value, index) if not sure:
                parts = each_of(index)
                rank = self.ranks.get(value.id, 1) if isinstance(value, ast.Name) else 1
                return rank <= len(parts) and all(map(self._is_number, parts))
            case ast.BinOp(left, operation, right) if not isinstance(operation, ast.MatMult):
                return self._is_number(left, sure) and self._is_number(right, sure)
            case ast.UnaryOp(_, operand):
                return self._is_number(operand, sure)
            case ast.Call(func, args, []) if not sure:
                full = self.names.imported(func) or ast.unparse(func)
                plain = full.startswith("math.") or full in ("abs", "float", "int", "round")
                known = plain or full.removeprefix("numpy.") in ELEMENTWISE
                return known and all(map(self._is_number, args))
        return False

    def _is_point(self, node: ast.expr, sure: bool = False) -> bool:
        """Return whether an expression is one point: a list of numbers, or a row of an array."""
        match node:
            case ast.Call(func, [ast.List() as made]) if self.names.imported(func) in (
                "numpy.array",
                "numpy.asarray",
            ):
                return self._is_point(made)
            case ast.List(parts) | ast.Tuple(parts):
                return all(map(self._is_number, parts))
        return self._is_row(node)

    def _is_row(self, node: ast.expr, sure: bool = False) -> bool:
        """Return whether an expression is a row of an array, or the same part of each row."""
        match node:
            case ast.Name(name) if name in self.values:
                return self._is_row(self.values[name])
            case ast.Name(name):
                goes = [one for one in self.loops if name in assigned_names(one.target)]
                return any(not _is_range(one.iter) for one in goes)
            case ast.Subscript(value, index) if self.turning.of(value):
                return self._is_row(value) and not self.turning.of(index)
            case ast.Subscript(_, index):
                moving = [one for one in each_of(index) if self.turning.of(one)]
                return bool(moving) and all(isinstance(one, ast.Name) for one in moving)
        return False


def _used_as_arrays(node: ast.AST) -> Iterable[ast.AST]:
    """Return the parts of a piece of source that are no numbers, by what is done with them."""
    match node:
        case ast.Subscript(value) | ast.For(_, value) | ast.comprehension(_, value):
            return [value]
        case ast.Attribute(value, name) if name in METHODS or name in ("shape", "size", "T"):
            return [value]
        case ast.Call(ast.Name("len"), args):
            return args
        case ast.BinOp(left, ast.MatMult(), right):
            return [left, right]
        case ast.Assign([ast.Subscript(_, index)], value):
            sliced = any(isinstance(one, ast.Slice) for one in each_of(index))
            return walked(value) if sliced else []
    return []


def is_few(given: ast.expr | None, names: Names, file: File) -> bool:
    """Return whether a loop goes through few, as far as the file shows."""
    match given:
        case ast.Call(ast.Name("range"), [end] | [_, end, *_]):
            return _is_small(end, names, file)
        case ast.Call(ast.Name("enumerate" | "zip" | "reversed" | "sorted"), args):
            return any(is_few(one, names, file) for one in args)
    return given is not None and has_few(given, names, file)


def _is_small(node: ast.expr, names: Names, file: File) -> bool:
    """Return whether a number is seen to be small where it is bound, or in some call."""
    for one, around in file.leaves(node, names):
        if _is_few_of(one):
            return True
        match one:
            case ast.BinOp(left, _, right) if one is node:
                return _is_small(left, names, file) and _is_small(right, names, file)
            case (
                ast.Call(ast.Name("len"), [whole])
                | ast.Subscript(ast.Attribute(whole, "shape"))
                | ast.Attribute(whole, "size")
            ):
                return has_few(whole, around, file)
    return False


def has_few(node: ast.expr, names: Names, file: File) -> bool:
    """Return whether an array or a list is seen to have few rows where it is made."""
    whole = node.value if isinstance(node, ast.Subscript) else node
    for one, around in file.leaves(whole, names):
        made = one
        if isinstance(one, ast.Call) and around.imported(one.func) in _OF_ROWS and one.args:
            made = one.args[0]
        rows = made.elts[0] if isinstance(made, ast.Tuple) and made.elts else made
        if isinstance(made, ast.List) or made is one or isinstance(rows, ast.Tuple | ast.List):
            if 0 < len(getattr(made, "elts", ())) < SHORT:
                return True
        elif any(_is_few_of(x) for x, _ in file.leaves(rows, around)):
            return True
    return False


def _is_few_of(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in range(1, SHORT)


# --- functions that were given --------------------------------------------------------------------


def passed(one: ast.AST, names: Names) -> tuple[str, str] | None:
    """Return which function that was given is called on an array, and on what in words."""
    given = {name for name in names.parameters if names.stored[name] == 1}
    match one:
        case ast.Call(ast.Name("map"), [ast.Name(name), numbers]) if name in given:
            target = ast.Name("each", ast.Store())
            known = turning(target, numbers, names) and not _is_range(numbers)
            return (name, f"`{ast.unparse(numbers)}`") if known else None
        case ast.Call(func, [ast.Name(name), _, vectors]) if name in given:
            known = names.imported(func) == "numpy.apply_along_axis"
            return (name, f"vectors of `{ast.unparse(vectors)}`") if known else None
    return None


def _is_range(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "range"


def turning(target: ast.expr, given: ast.AST, names: Names) -> set[str]:
    """Return the names that go through the numbers of a range, or of a grid."""
    if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice):
        given = given.value
    if isinstance(given, ast.Name):
        given = names.once.get(given.id, given)
    match given:
        case ast.Call(ast.Name("enumerate"), [inner, *_]) if isinstance(target, ast.Tuple):
            return turning(target.elts[-1], inner, names)
        case ast.Call(func):
            grid = names.imported(func).removeprefix("numpy.") in _GRIDS
            short = all(getattr(one, "value", -1) in range(SHORT) for one in given.args)
            if grid or (_is_range(given) and not short):
                return {*names_in(target, ast.Store)}
    return set()
