"""What loops ask for one at a time that one call, made before, gives for all of them.

A function of NumPy's or SciPy's, or one that a loop's own was given, is called for one number after
another, and takes an array of all these numbers at once. Arrays grow by one piece, random numbers
are drawn one by one, and lists are searched from their beginning each time. None of that has a
price: how often the loop runs, or how long the list is, seldom stands there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from advisor.ir.changes import OWN, Loop, Names, heads_of, is_opaque, path_of
from advisor.ir.effects import ASKED, BY_ROWS, MADE_KINDS, MAKING, METHODS
from advisor.ir.functions import File, file_of
from advisor.ir.unchanging import Turning, turning_in
from advisor.ir.waiting import assigned_names, names_in
from advisor.numpy_functions import FUNCTIONS, SIZE_AT
from advisor.numpy_table import ELEMENTWISE
from advisor.source import walked
from costdb.records import dataclass

AGAIN, BY_ELEMENT, GROWN = "ADV506", "ADV401", "ADV507"
"""The rules that tell also of what has no kernel, and so no price."""
_SHORT = 16
"""A range that ends before is worth no array, and a list that does no dictionary."""
_GRIDS = frozenset({"arange", "linspace", "logspace", "geomspace"})
_OF_NUMBERS = frozenset({"int", "float", "abs", "min", "max", "round", "len", "range", "append"})
_OF_ROWS = frozenset(f"numpy.{one}" for one in ("array", "zeros", "ones", "empty", "full", "eye"))
_COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Loop = ast.For | ast.While | _COMPREHENSION
_ENDING = ast.Break | ast.Continue | ast.Return | ast.While | ast.Try | ast.With
_GUARDED = ast.If | ast.IfExp | ast.BoolOp | _COMPREHENSION
_ARRAYS = MAKING | {"sort", "unique", "flatnonzero", "setdiff1d", "intersect1d", "union1d"}
"""Functions of NumPy that give an array, beside those of the tables."""
_JOINING = frozenset(
    f"numpy.{name}"
    for name in ("append", "concatenate", "hstack", "vstack", "dstack", "column_stack", "row_stack")
)


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
    code : str
        The rule that tells of it.
    """

    function: str
    loop: ast.stmt | ast.expr
    place: ast.expr
    title: str
    reason: str
    when: str
    code: str = BY_ELEMENT


def one_by_one(source: str) -> Iterator[OneByOne]:
    """Yield what loops do for one after another, by functions, in the order of the source."""
    file = file_of(source, reduces=True)
    for scope in file.scopes:
        if getattr(scope, "decorator_list", None):
            continue  # it may be compiled
        names, own = file.names_of(scope), getattr(scope, "name", "")
        done: set[ast.AST] = set()
        told: set[ast.AST] = set()
        for one in names.nodes:
            if isinstance(one, ast.For | _COMPREHENSION):
                yield from _called(own, one, names, file, told)
            elif isinstance(one, ast.Call):
                if passed := _passed(one, names):
                    yield _of_function(own, one, one, *passed)
                if ast.unparse(one.func) in ("all", "any", "next"):
                    told.update(walked(one))  # it may end before
            if isinstance(one, ast.For) and one not in done and (draws := _draws(one, names, file)):
                done |= {*walked(one)}
                yield _of_draws(own, one, draws, names)
            if isinstance(one, _Loop):
                yield from _searches(own, one, names, file)
            if isinstance(one, Loop):
                yield from _growing(own, one, names, file, told)


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
        if changed.isdisjoint(names_in(sought)) or isinstance(sought, ast.List):
            continue
        origins = [(value, file.names_of(scope)) for value, scope in file.origins(listed, names)]
        values = [value for value, _ in origins]
        made = [value is not None and _is_list(value) for value in values]
        arrays = [value is not None and _is_many(value, names) for value, names in origins]
        many = bool(arrays) and all(arrays) and not isinstance(sought, ast.Tuple)
        if (many or (made and all(made))) if sure else not any(map(_is_short, values)):
            text, shown = ast.unparse(listed), ast.unparse(sought)
            held = f"{text}.tolist()" if many and sure else text
            title = f"look `{shown}` up in {what} of `{held}`, made once before the loop"
            why = "each search goes through the list from its beginning"
            when = f"lists `{text}` of more than ten elements, all hashable"
            if many and sure:
                why = "each search compares all elements"
                when = f"arrays `{text}` of more than ten elements, and numbers `{shown}`"
            yield OneByOne(own, loop, one, title, why, when, AGAIN)
            return


def _is_many(value: ast.expr, names: Names) -> bool:
    """Return whether a value is an array, which may be long, or random numbers of some size."""
    if isinstance(value, ast.Subscript):
        made = isinstance(value.value, ast.Call) and names.imported(value.value.func)
        return made in ("numpy.where", "numpy.nonzero")
    if not isinstance(value, ast.Call):
        return False
    name = ast.unparse(value.func).rpartition(".")[2]
    if names.imported(value.func) == f"numpy.{name}":
        few = (getattr(one, "elts", None) and _is_short(one) for one in value.args)
        known = name in _ARRAYS or name in FUNCTIONS or name in ELEMENTWISE
        return known and not any(few)
    sized = len(value.args) > SIZE_AT.get(name, 99) or any(k.arg == "size" for k in value.keywords)
    return (sized and (name in SIZE_AT or name == "choice")) or name == "permutation"


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


# --- arrays that grow -----------------------------------------------------------------------------


def _growing(
    own: str, loop: Loop, names: Names, file: File, told: set[ast.AST]
) -> Iterator[OneByOne]:
    """Yield the arrays to which a loop joins pieces, and with which it does nothing else."""
    inside = walked(loop)
    used = Counter(one.id for one in inside if isinstance(one, ast.Name))
    measured = Counter(map(_measured, inside))
    places: dict[str, list[ast.Assign]] = {}
    for one in inside:
        if isinstance(one, ast.Assign) and one not in told and (name := _grown(one, names)):
            places.setdefault(name, []).append(one)
    loops = (one for one in inside if isinstance(one, Loop))
    long = [x for x in loops if not _is_few(getattr(x, "iter", None), names, file)]
    often = {part for one in long for part in walked(one)}
    grown = {
        name: ours
        for name, ours in places.items()
        if used[name] == 2 * len(ours) + measured[name]
        if name not in names.captured and not often.isdisjoint(ours)
    }
    if grown:
        found = [one for ours in grown.values() for one in ours]
        told.update(found)
        shown = " and ".join(f"`{one}`" for one in grown)
        lists = "lists, and join them once" if len(grown) > 1 else "a list, and join it once"
        grow = "grow" if len(grown) > 1 else "grows"
        title = f"collect what {shown} {grow} by in {lists} behind the loop"
        why = "each iteration copies all that is there"
        when = "loops that join ten pieces and more"
        yield OneByOne(own, loop, found[0].value, title, why, when, GROWN)


def _grown(one: ast.AST, names: Names) -> str:
    """Return the name of an array that a statement joins something to; empty where it does not."""
    match one:
        case ast.Assign([ast.Name(name)], ast.Subscript(joining, ast.Tuple([first, _, *_]))):
            known = names.imported(joining) in ("numpy.r_", "numpy.c_")
        case ast.Assign([ast.Name(name)], ast.Call(joining, [first, *_])):
            known = names.imported(joining) in _JOINING
            if isinstance(first, ast.Tuple | ast.List) and len(first.elts) > 1:
                first = first.elts[0]
            elif ast.unparse(joining).rpartition(".")[2] != "append":
                return ""
        case _:
            return ""
    return name if known and isinstance(first, ast.Name) and first.id == name else ""


def _measured(one: ast.AST) -> str:
    """Return the name of what is asked how long it is; empty where nothing is."""
    match one:
        case ast.Call(ast.Name("len"), [ast.Name(name)]):
            return name
        case ast.Attribute(ast.Name(name), "shape" | "size"):
            return name
    return ""


# --- functions of arrays --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
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


def _call(node: ast.Call, names: Names, given: Collection[str]) -> _Call | None:
    """Return what a call may be given many of; None where that is nothing known."""
    func, args, named = node.func, node.args, [one.value for one in node.keywords]
    if any(isinstance(one, ast.Starred) for one in args) or any(not k.arg for k in node.keywords):
        return None
    full, first, rest = names.imported(func), args[:1], [*args[1:], *named]
    module, _, name = full.rpartition(".")
    kind = MADE_KINDS.get(module, "") if full else names.kind(getattr(func, "value", func))
    if isinstance(func, ast.Name) and func.id in given and not named:
        return _Call(node, args, [], given=True)
    if kind in ASKED and names.free(node):
        if kind == "distribution":
            return _Call(node, [*args, *named], [])
        return _Call(node, first, [func, *rest], "number" if kind == "curve" else "point")
    if module == "scipy.stats" and name in BY_ROWS:
        plain = {one.arg for one in node.keywords}.isdisjoint({"axis", "permutations"})
        return _Call(node, args, named, "row") if plain else None
    if not full and isinstance(func, ast.Attribute) and func.attr == "searchsorted":
        return _Call(node, first, [func.value, *rest])
    row = FUNCTIONS.get(full.removeprefix("numpy."))
    if row is None or full.startswith(("scipy.ndimage", "scipy.signal")):
        return None
    whole = [one for one in row.forms if one.results == (("...",),) and "..." in one.operands]
    places = whole[0].operands if whole else ()
    taken = [one for one, how in zip(args, places, strict=False) if how == "..."]
    return _Call(node, taken, [one for one in (*args, *named) if one not in taken])


def _called(
    own: str, loop: ast.For | ast.expr, names: Names, file: File, told: set[ast.AST]
) -> Iterator[OneByOne]:
    """Yield functions of arrays that a loop calls with one number, point or row at a time."""
    whole = loop if isinstance(loop, ast.For) else _as_loop(loop)
    inner = {part for one in walked(whole) if isinstance(one, OWN) for part in walked(one)}
    # what is called for its deeds alone gives no numbers
    inner |= {one.value for one in walked(loop) if isinstance(one, ast.Expr)}
    given = {one for one in names.parameters if names.stored[one] == 1}
    nodes = [one for one in walked(whole) if isinstance(one, ast.Call) and one not in inner | told]
    calls = [one for node in nodes if (one := _call(node, names, given)) and one.taken]
    ends = any(isinstance(one, ast.Break | ast.Return) for one in walked(loop))
    if not calls or ends or is_opaque(whole):
        return
    known = {**names.kinds, **dict.fromkeys(given, "curve")}
    free = names.seen(lambda path: known.get(path, ""), unknown="")
    turns: dict[bool, _Turns] = {}
    shown = dict[str, OneByOne]()
    for call in calls:
        if call.given not in turns:
            seen = free if call.given else names
            turns[call.given] = _Turns(whole, turning_in(whole, seen), names, file)
        if (found := turns[call.given].many(call)) is not None:
            name = ast.unparse(call.node.func)
            told.update(one for one in nodes if ast.unparse(one.func) == name)
            shown.setdefault(name, _of_call(own, loop, call, name, *found))
    yield from shown.values()


def _of_call(
    own: str, loop: ast.For | ast.expr, call: _Call, name: str, texts: str, each: Collection[str]
) -> OneByOne:
    if call.given:
        return _of_function(own, loop, call.node, name, texts)
    once = f"once for each {' and '.join(f'`{one}`' for one in sorted(each))}" if each else "once"
    many = {"number": "an array", "point": "an array of points", "row": "`axis=` and an array"}
    title = f"call `{name}` {once}, with {many[call.kind]} of all {texts}"
    why = f"each {call.kind} costs a call of Python; one call takes all of them"
    return OneByOne(own, loop, call.node, title, why, f"{call.kind}s {texts}")


def _as_loop(node: ast.expr) -> ast.For:
    """Return a loop that computes what a comprehension does."""
    assert isinstance(node, _COMPREHENSION)
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
        inside = walked(loop)
        self.loops = [one for one in inside if isinstance(one, ast.For)]
        places = (one for one in inside if isinstance(one, ast.Name) and one in names.values)
        self.values = {one.id: names.values[one] for one in places}
        self.spread = {part for one in inside for part in _used_as_arrays(one)}
        self.arrays = {one.id for one in self.spread if isinstance(one, ast.Name)}
        bound = ((name, value) for name, value in self.values.items() if name in self.arrays)
        self.spread |= {value for _, value in bound}
        self.ranks: dict[str, int] = {}
        for one in names.nodes:
            match one:
                case ast.Subscript(ast.Name(name), ast.Tuple(parts)):
                    self.ranks[name] = max(len(parts), self.ranks.get(name, 1))

    def many(self, call: _Call) -> tuple[str, frozenset[str]] | None:
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
        if free.isdisjoint(head) or all(_is_few(one.iter, self.names, self.file) for one in around):
            return None
        turning = [one for one in call.taken if self.turning.of(one)]
        if call.given:
            grids = [one for one in around if _turning(one.target, one.iter, self.names)]
            indices = {
                name
                for one in grids
                if _is_range(one.iter)
                for name in names_in(one.target, ast.Store)
            }
            known = len(grids) == len(around) and not indices.issuperset(map(ast.unparse, turning))
        else:
            known = call.kind != "number" or call.node not in self.spread
        alike = {"number": self._is_number, "point": self._is_point, "row": self._is_row}
        sure = call.given
        if not known or not all(alike[call.kind](one, sure) for one in turning):
            return None
        return f"`{', '.join(map(ast.unparse, turning))}`", rest

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
                return bool(_turning(ast.Name(index, ast.Store()), grid, self.names))
            case ast.Subscript(value, index) if not sure:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
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
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                moving = [one for one in parts if self.turning.of(one)]
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
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            return walked(value) if any(isinstance(one, ast.Slice) for one in parts) else []
    return []


def _is_few(given: ast.expr | None, names: Names, file: File) -> bool:
    """Return whether a loop goes through few, as far as the file shows."""
    match given:
        case ast.Call(ast.Name("range"), [end] | [_, end, *_]):
            return _is_small(end, names, file)
        case ast.Call(ast.Name("enumerate" | "zip" | "reversed" | "sorted"), args):
            return any(_is_few(one, names, file) for one in args)
    return given is not None and _has_few(given, names, file)


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
                return _has_few(whole, around, file)
    return False


def _has_few(node: ast.expr, names: Names, file: File) -> bool:
    """Return whether an array or a list is seen to have few rows where it is made."""
    whole = node.value if isinstance(node, ast.Subscript) else node
    for one, around in file.leaves(whole, names):
        made = one
        if isinstance(one, ast.Call) and around.imported(one.func) in _OF_ROWS and one.args:
            made = one.args[0]
        rows = made.elts[0] if isinstance(made, ast.Tuple) and made.elts else made
        if isinstance(made, ast.List) or made is one or isinstance(rows, ast.Tuple | ast.List):
            if 0 < len(getattr(made, "elts", ())) < _SHORT:
                return True
        elif any(_is_few_of(x) for x, _ in file.leaves(rows, around)):
            return True
    return False


def _is_few_of(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in range(1, _SHORT)


# --- functions that were given --------------------------------------------------------------------


def _passed(one: ast.AST, names: Names) -> tuple[str, str] | None:
    """Return which function that was given is called on an array, and on what in words."""
    given = {name for name in names.parameters if names.stored[name] == 1}
    match one:
        case ast.Call(ast.Name("map"), [ast.Name(name), numbers]) if name in given:
            target = ast.Name("each", ast.Store())
            known = _turning(target, numbers, names) and not _is_range(numbers)
            return (name, f"`{ast.unparse(numbers)}`") if known else None
        case ast.Call(func, [ast.Name(name), _, vectors]) if name in given:
            known = names.imported(func) == "numpy.apply_along_axis"
            return (name, f"vectors of `{ast.unparse(vectors)}`") if known else None
    return None


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
        case ast.Call(func):
            grid = names.imported(func).removeprefix("numpy.") in _GRIDS
            if grid or (
                _is_range(given)
                and not all(getattr(one, "value", -1) in range(_SHORT) for one in given.args)
            ):
                return {*names_in(target, ast.Store)}
    return set()
