"""What loops ask for one at a time that one call, made before, gives for all of them.

A function of NumPy's or SciPy's, or one that a loop's own was given, is called for one number after
another, and takes an array of all these numbers at once. Arrays grow by one piece, random numbers
are drawn one by one, and lists are searched from their beginning each time. None of that has a
price: how often the loop runs, or how long the list is, seldom stands there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from advisor.ir.array_calls import (
    COMPREHENSION,
    SHORT,
    ArrayCall,
    as_loop,
    called,
    has_few,
    is_few,
    passed,
    turning,
)
from advisor.ir.changes import Loop, Names, heads_of, is_opaque, path_of
from advisor.ir.effects import MAKING
from advisor.ir.functions import File, file_of
from advisor.ir.unchanging import Turning, turning_in
from advisor.ir.waiting import assigned_names, names_in
from advisor.numpy_functions import FUNCTIONS, SIZE_AT
from advisor.numpy_table import ELEMENTWISE
from advisor.source import walked
from costdb.records import dataclass

AGAIN, BY_ELEMENT, GROWN, FACTORED = "ADV506", "ADV401", "ADV507", "ADV505"
"""The rules that tell also of what has no kernel, and so no price."""
_OF_NUMBERS = frozenset({"int", "float", "abs", "min", "max", "round", "len", "range", "append"})
_Loop = ast.For | ast.While | COMPREHENSION
_ENDING = ast.Break | ast.Continue | ast.Return | ast.While | ast.Try | ast.With
_GUARDED = ast.If | ast.IfExp | ast.BoolOp | COMPREHENSION
_ARRAYS = MAKING | {"sort", "unique", "flatnonzero", "setdiff1d", "intersect1d", "union1d"}
"""Functions of NumPy that give an array, beside those of the tables."""
_JOINING = frozenset(
    f"numpy.{name}"
    for name in ("append", "concatenate", "hstack", "vstack", "dstack", "column_stack", "row_stack")
)
_SOLVING = {
    "numpy.linalg.solve": ("scipy.linalg.lu_factor", "matrices of 60 rows and more"),
    "scipy.linalg.solve": ("scipy.linalg.lu_factor", "matrices of ten rows and more"),
    "scipy.sparse.linalg.spsolve": ("scipy.sparse.linalg.splu", "loops of three and more"),
    "numpy.linalg.lstsq": ("np.linalg.pinv", "well-conditioned matrices of ten rows and more"),
    "scipy.linalg.lstsq": ("scipy.linalg.pinv", "well-conditioned matrices of ten rows and more"),
}
"""Functions that solve equations; what does their larger part once, and where that pays."""


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
            if isinstance(one, ast.For | COMPREHENSION):
                for call, texts, each in called(one, names, file, told):
                    yield _of_call(own, one, call, texts, each)
            elif isinstance(one, ast.Call):
                if found := passed(one, names):
                    yield _of_function(own, one, one, *found)
                if ast.unparse(one.func) in ("all", "any", "next"):
                    told.update(walked(one))  # it may end before
            if (
                isinstance(one, ast.For | COMPREHENSION)
                and one not in done
                and (draws := _draws(one, names, file))
            ):
                done |= {*walked(one)}
                yield _of_draws(own, one, draws, names)
            if isinstance(one, _Loop):
                yield from _searches(own, one, names, file)
            if isinstance(one, Loop):
                yield from _growing(own, one, names, file, told)
            if isinstance(one, _Loop):
                yield from _factored(own, one, names, file, told)
            if isinstance(one, ast.For) and one not in told:
                yield from _groups(own, one, names, told)


def _of_function(
    own: str, loop: ast.For | ast.expr, call: ast.expr, name: str, passed: str
) -> OneByOne:
    title = f"call `{name}` once, with an array of all {passed}"
    why = "each number costs a call of Python; in NumPy's words one call takes all of them"
    when = f"functions `{name}` that take arrays (`np.exp`, not `math.exp`)"
    return OneByOne(own, loop, call, title, why, when)


def _of_call(
    own: str, loop: ast.For | ast.expr, call: ArrayCall, texts: str, each: Collection[str]
) -> OneByOne:
    name = ast.unparse(call.node.func)
    if call.given:
        return _of_function(own, loop, call.node, name, texts)
    once = f"once for each {' and '.join(f'`{one}`' for one in sorted(each))}" if each else "once"
    many = {"number": "an array", "point": "an array of points", "row": "`axis=` and an array"}
    title = f"call `{name}` {once}, with {many[call.kind]} of all {texts}"
    why = f"each {call.kind} costs a call of Python; one call takes all of them"
    return OneByOne(own, loop, call.node, title, why, f"{call.kind}s {texts}")


def _of_draws(
    own: str, loop: ast.For | ast.expr, draws: Sequence[ast.Call], names: Names
) -> OneByOne:
    texts = list(dict.fromkeys(map(ast.unparse, draws)))
    shown = " and ".join(f"`{one}`" for one in texts[:2])
    title = f"draw the numbers of {shown} of all iterations at once, with a size"
    why = "each number costs a call of Python; one call with a size fills an array"
    foreign = names.imported(draws[0].func).startswith("random.")
    other = ", where other random numbers do" if foreign or len(texts) > 1 else ""
    return OneByOne(own, loop, draws[0], title, why, f"loops of ten iterations and more{other}")


def mask_of_each(loop: ast.For) -> ast.expr | None:
    """Return what a loop takes of an array where that is equal to, or near, what it goes through.

    None where it does not compare all of an array in each iteration.
    """
    turning, inside = {*assigned_names(loop.target)}, walked(loop)
    made = {
        one.targets[0].id: one.value
        for one in inside
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }
    for one in inside:
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load):
            index = one.slice.elts if isinstance(one.slice, ast.Tuple) else [one.slice]
            masks = (made.get(x.id, x) if isinstance(x, ast.Name) else x for x in index)
            tests = (x for mask in masks for x in walked(mask) if isinstance(x, ast.Compare))
            if any(turning & {*names_in(x)} for x in tests):
                return one
    return None


def _groups(own: str, loop: ast.For, names: Names, told: set[ast.AST]) -> Iterator[OneByOne]:
    """Yield what a loop takes by a mask for each group."""
    taken = mask_of_each(loop)
    if taken is None or not turning_in(loop, names).of(taken):
        return
    told.update(walked(loop))
    title = f"take `{ast.unparse(taken)}` of all groups at once, by one sort or `np.bincount`"
    why = "each iteration compares all elements with what it goes through"
    yield OneByOne(own, loop, taken, title, why, "hundreds of groups")


def _factored(
    own: str, loop: _Loop, names: Names, file: File, told: set[ast.AST]
) -> Iterator[OneByOne]:
    """Yield the equations that a loop solves with a matrix that it leaves alone."""
    solving = [
        one
        for one in walked(loop)
        if isinstance(one, ast.Call) and names.imported(one.func) in _SOLVING and len(one.args) > 1
    ]
    whole = as_loop(loop) if isinstance(loop, COMPREHENSION) else loop
    if not solving or is_opaque(whole) or is_few(getattr(whole, "iter", None), names, file):
        return
    turns = turning_in(whole, names)
    for one in solving:
        matrix, right = one.args[:2]
        small = has_few(matrix, names, file)
        if (
            one in told
            or small
            or turns.of(matrix) != frozenset()
            or turns.of(right) == frozenset()
        ):
            continue
        told.add(one)
        by, when = _SOLVING[names.imported(one.func)]
        title = f"factorise `{ast.unparse(matrix)}` once, before the loop, by `{by}`"
        why = "each iteration factorises it again, which takes by far the most of solving"
        yield OneByOne(own, loop, one, title, why, when, FACTORED)


# --- random numbers -------------------------------------------------------------------------------


def _draws(one: ast.For | ast.expr, names: Names, file: File) -> list[ast.Call]:
    """Return the draws of a loop that does little else, each once in each iteration."""
    loop = one if isinstance(one, ast.For) else as_loop(one)
    inside = [part for one in loop.body for part in walked(one)]
    if not turning(loop.target, loop.iter, names) or any(isinstance(p, _ENDING) for p in inside):
        return []
    if is_few(loop.iter, names, file):
        return []
    turns = turning_in(loop, names)
    arrays = (isinstance(one, ast.Slice | ast.MatMult) for one in inside)
    calls = [one for one in inside if isinstance(one, ast.Call)]
    found = [one for one in calls if _is_draw(one, names, file, turns)]
    others = (ast.unparse(one.func).rpartition(".")[2] for one in calls if one not in found)
    quick = all(one in _OF_NUMBERS or one in ELEMENTWISE for one in others)
    if not found or not quick or any(arrays):
        return []
    guarded = {part for one in inside if isinstance(one, _GUARDED) for part in walked(one)}
    tests = (one.test for one in inside if isinstance(one, ast.If))
    asked = {part for one in tests if isinstance(one, ast.Compare) for part in walked(one)}
    return found if all(one not in guarded or one in asked for one in found) else []


def _is_draw(call: ast.Call, names: Names, file: File, turns: Turning) -> bool:
    """Return whether a call draws one random number, of a distribution without parameters, or one
    of what stays the same.

    Data that programs make up for themselves mostly have others, and are few.
    """
    full, name = names.imported(call.func), ast.unparse(call.func).rpartition(".")[2]
    among = full == "numpy.random.choice" and len(call.args) == 1 and not call.keywords
    if among and turns.of(call.args[0]) == frozenset():
        return True
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
            return len(parts) > SHORT
        case ast.Call(func):
            return ast.unparse(func).rpartition(".")[2] in ("list", "sorted", "split", "tolist")
    return isinstance(value, ast.ListComp)


def _is_short(value: ast.expr | None) -> bool:
    """Return whether a value is a text, or a list of few."""
    parts = getattr(value, "elts", None)
    short = parts is not None and len(parts) <= SHORT
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
    long = [x for x in loops if not is_few(getattr(x, "iter", None), names, file)]
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
