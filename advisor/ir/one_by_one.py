"""What loops ask for one at a time that one call, made before, gives for all of them.

And of what calls give several of, but nobody wants all.

A function of NumPy's or SciPy's, or one that a loop's own was given, is called for one number after
another, and takes an array of all these numbers at once. Arrays grow by one piece, random numbers
are drawn one by one, and lists are searched from their beginning each time. None of that has a
price: how often the loop runs, or how long the list is, seldom stands there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from enum import Enum, auto

from advisor.ir.array_calls import (
    SHORT,
    as_loop,
    called,
    has_few,
    is_few,
    passed,
    turning,
)
from advisor.ir.changes import Loop, Names, heads_of, is_opaque, path_of
from advisor.ir.effects import MAKING
from advisor.ir.functions import File, file_of, may_be_compiled
from advisor.ir.unchanging import Turning, turning_in
from advisor.numpy_functions import FUNCTIONS, SIZE_AT
from advisor.numpy_table import ELEMENTWISE
from advisor.source import COMPREHENSION, assigned_names, each_of, every, names_in, walked
from costdb.records import dataclass, grouped, only

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
_HALVES = {
    **{f"{of}.linalg.eig": ((1,), "eigvals") for of in ("numpy", "scipy")},
    **{f"{of}.linalg.eigh": ((1,), "eigvalsh") for of in ("numpy", "scipy")},
    **{f"{of}.linalg.svd": ((0, 2), "svd(..., compute_uv=False)") for of in ("numpy", "scipy")},
}
"""Functions that give several arrays; those without which another function is quicker."""
_EIG = ("numpy.linalg.eig", "scipy.linalg.eig")
_MOST_NAMES = 8
"""Names in turn that are followed to what a matrix is made of."""


class Kind(Enum):
    """What is done for one after another, with what is told of it.

    Attributes
    ----------
    PASSED
        A function that was given is called: its name, and what it is given.
    CALLED
        A function of arrays: its name, what it takes one of, what it is given, for each of what.
    DRAWN, REDRAWN
        Random numbers are drawn: by which calls. With a size these may draw other ones.
    SOUGHT, COMPARED
        A list, or an array, is searched: for what, what would find it, and where.
    GROWN
        Pieces are joined to arrays: their names.
    FACTORED
        Equations are solved: the matrix, what factorises it, and what that pays for.
    GROUPED
        Elements are taken by a mask: which.
    HALVED
        Vectors are computed that nobody uses: by what, and what computes the values alone.
    SYMMETRIC
        The eigenvalues of a symmetric matrix are computed as those of any: which, and by what not.
    """

    PASSED = auto()
    CALLED = auto()
    DRAWN = auto()
    REDRAWN = auto()
    SOUGHT = auto()
    COMPARED = auto()
    GROWN = auto()
    FACTORED = auto()
    GROUPED = auto()
    HALVED = auto()
    SYMMETRIC = auto()


_Found = tuple[ast.stmt | ast.expr, ast.expr, Kind, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class OneByOne:
    """What a loop does for one after another.

    Attributes
    ----------
    function : str
        Where it stands; empty outside of all.
    loop, place : ast.AST
    kind : Kind
    parts : tuple of str
        What is told of it.
    """

    function: str
    loop: ast.stmt | ast.expr
    place: ast.expr
    kind: Kind
    parts: tuple[str, ...]


def one_by_one(source: str) -> Iterator[OneByOne]:
    """Yield what loops do for one after another, by functions, in the order of the source."""
    file = file_of(source, reduces=True)
    for scope in file.scopes:
        if not may_be_compiled(scope):
            for found in _of_scope(file.names_of(scope), file):
                yield OneByOne(getattr(scope, "name", ""), *found)


def _of_scope(names: Names, file: File) -> Iterator[_Found]:
    done, told = set[ast.AST](), set[ast.AST]()
    for one in names.nodes:
        if isinstance(one, ast.Call):
            if found := passed(one, names):
                yield one, one, Kind.PASSED, found
            if ast.unparse(one.func) in ("all", "any", "next"):
                told.update(walked(one))  # it may end before
            if one not in told and _is_for_any(one, names, file):
                shown = ast.unparse(one.args[0]), f"{ast.unparse(one.func)}h"
                yield one, one, Kind.SYMMETRIC, shown
        elif isinstance(one, ast.Assign | ast.Subscript):
            if halved := _halved(one, names, file):
                told.add(halved[0])
                yield one, halved[0], Kind.HALVED, halved[1:]
        elif isinstance(one, _Loop):
            if not isinstance(one, ast.While):
                for call, texts, each in called(one, names, file, told):
                    name, kind = ast.unparse(call.node.func), call.kind
                    if call.given:
                        yield one, call.node, Kind.PASSED, (name, texts)
                    else:
                        yield one, call.node, Kind.CALLED, (name, kind, texts, *sorted(each))
                if one not in done and (draws := _draws(one, names, file)):
                    done |= {*walked(one)}
                    kinds = [ast.unparse(call) for call in draws]
                    foreign = names.imported(draws[0].func).startswith("random.")
                    others = foreign or len({*kinds}) > 1
                    yield one, draws[0], Kind.REDRAWN if others else Kind.DRAWN, (*kinds,)
            yield from _searches(one, names, file)
            if isinstance(one, Loop):
                yield from _growing(one, names, file, told)
            yield from _factored(one, names, file, told)
            if isinstance(one, ast.For) and one not in told:
                taken = mask_of_each(one)
                if taken is not None and turning_in(one, names).of(taken):
                    told.update(walked(one))
                    yield one, taken, Kind.GROUPED, (ast.unparse(taken),)


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
            index = each_of(one.slice)
            masks = (made.get(x.id, x) if isinstance(x, ast.Name) else x for x in index)
            plain = (x for x in masks if not any(every(COMPREHENSION, x)))
            if any(turning & {*names_in(x)} for x in every(ast.Compare, *plain)):
                return one
    return None


def _factored(loop: _Loop, names: Names, file: File, told: set[ast.AST]) -> Iterator[_Found]:
    """Yield the equations that a loop solves with a matrix that it leaves alone."""
    solving = [
        one
        for one in every(ast.Call, loop)
        if names.imported(one.func) in _SOLVING and len(one.args) > 1
    ]
    whole = as_loop(loop) if isinstance(loop, COMPREHENSION) else loop
    if not solving or is_opaque(whole) or is_few(getattr(whole, "iter", None), names, file):
        return
    turns = turning_in(whole, names)
    for one in solving:
        matrix, right = one.args[:2]
        again = turns.of(matrix) == frozenset() != turns.of(right)
        if one in told or not again or has_few(matrix, names, file):
            continue
        told.add(one)
        by = _SOLVING[names.imported(one.func)]
        yield loop, one, Kind.FACTORED, (ast.unparse(matrix), *by)


def _halved(
    one: ast.Assign | ast.Subscript, names: Names, file: File
) -> tuple[ast.Call, str, str] | None:
    """Return a call that computes vectors, too, of which nothing uses any; how, and by what not."""
    match one:
        case ast.Assign([ast.Tuple(parts)], ast.Call(func, [matrix, *_]) as call):
            read = {*names_in(names.node)}
            read.update(*(x.names for x in only(ast.Global | ast.Nonlocal, names.nodes)))
            inside = names.node is not file.tree
            left = {
                place
                for place, part in enumerate(parts)
                if isinstance(part, ast.Name)
                and part.id not in read
                and (inside or part.id.startswith("_"))
            }
        case ast.Subscript(ast.Call(func, [matrix, *_]) as call, ast.Constant(int(taken))):
            left = {0, 1, 2} - {taken}
        case _:
            return None
    full = names.imported(func)
    unneeded, by = _HALVES.get(full, ((), ""))
    asked = {"left", "right", "compute_uv", "eigvals_only"} & {one.arg for one in call.keywords}
    if not by or asked or not left.issuperset(unneeded) or has_few(matrix, names, file):
        return None
    by += "h" * _is_for_any(call, names, file)
    return call, ast.unparse(func), f"{ast.unparse(func).rpartition('.')[0]}.{by}"


def _is_for_any(call: ast.Call, names: Names, file: File) -> bool:
    """Return whether a call takes a symmetric matrix, which may be large, for any."""
    match call:
        case ast.Call(func, [matrix]) if names.imported(func) in _EIG:
            return _is_symmetric(matrix, names, file) and not has_few(matrix, names, file)
    return False


def _is_symmetric(node: ast.expr | None, names: Names, file: File, left: int = _MOST_NAMES) -> bool:
    """Return whether a matrix is seen to be a covariance, or a product with its transpose."""
    match node:
        case ast.Name() | ast.Attribute() if left:
            made = [(one, file.names_of(scope)) for one, scope in file.origins(node, names)]
            return bool(made) and all(_is_symmetric(*one, file, left - 1) for one in made)
        case ast.Call(func) if names.imported(func) in ("numpy.cov", "numpy.corrcoef"):
            return True
        case ast.BinOp(one, ast.Mult() | ast.Div() as op, other):
            sides = [one, other] if isinstance(op, ast.Mult) else [one]
            return any(_is_symmetric(side, names, file, left) for side in sides)
        case (
            ast.BinOp(one, ast.MatMult(), other)
            | ast.Call(ast.Attribute(_, "dot" | "matmul"), [one, other])
            | ast.Call(ast.Attribute(one, "dot"), [other])
        ):
            shown = ast.unparse(one), ast.unparse(other)
            return shown[0] == f"{shown[1]}.T" or shown[1] == f"{shown[0]}.T"
    return False


# --- random numbers -------------------------------------------------------------------------------


def _draws(one: ast.For | ast.expr, names: Names, file: File) -> list[ast.Call]:
    """Return the draws of a loop that does little else, each once in each iteration."""
    loop = one if isinstance(one, ast.For) else as_loop(one)
    ends = any(every(_ENDING, *loop.body))
    if ends or not turning(loop.target, loop.iter, names) or is_few(loop.iter, names, file):
        return []
    turns, calls = turning_in(loop, names), [*every(ast.Call, *loop.body)]
    found = [one for one in calls if _is_draw(one, names, file, turns)]
    others = (ast.unparse(one.func).rpartition(".")[2] for one in calls if one not in found)
    quick = all(one in _OF_NUMBERS or one in ELEMENTWISE for one in others)
    if not found or not quick or any(every(ast.Slice | ast.MatMult, *loop.body)):
        return []
    guarded = {*every(ast.AST, *every(_GUARDED, *loop.body))}
    tests = (one.test for one in every(ast.If, *loop.body))
    asked = {*every(ast.AST, *only(ast.Compare, tests))}
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


def _searches(loop: _Loop, names: Names, file: File) -> Iterator[_Found]:
    """Yield what searches a list that stays the same for something else in each iteration."""
    bound = {*names_in(loop, ast.Store)}
    changed: set[str] | None = None
    for one in walked(loop):
        match one:
            case ast.Call(ast.Attribute(listed, "index"), [sought], []):
                what = "a dictionary"
            case ast.Compare(sought, [ast.In() | ast.NotIn()], [listed]):
                what = "a set"
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
        if (many and what == "a set") or (made and all(made)):
            kind = Kind.COMPARED if many else Kind.SOUGHT
            yield loop, one, kind, (ast.unparse(sought), what, ast.unparse(listed))
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
        few = (0 < len(getattr(one, "elts", ())) <= SHORT for one in value.args)
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


# --- arrays that grow -----------------------------------------------------------------------------


def _growing(loop: Loop, names: Names, file: File, told: set[ast.AST]) -> Iterator[_Found]:
    """Yield the arrays to which a loop joins pieces, and with which it does nothing else."""
    inside = walked(loop)
    used = Counter(one.id for one in inside if isinstance(one, ast.Name))
    measured = Counter(map(_measured, inside))
    untold = (one for one in every(ast.Assign, loop) if one not in told)
    places = grouped((name, one) for one in untold if (name := _grown(one, names)))
    loops = every(Loop, loop)
    long = [x for x in loops if not is_few(getattr(x, "iter", None), names, file)]
    often = {*every(ast.AST, *long)}
    grown = {
        name: ours
        for name, ours in places.items()
        if used[name] == 2 * len(ours) + measured[name]
        if name not in names.captured and not often.isdisjoint(ours)
    }
    if grown:
        found = [one for ours in grown.values() for one in ours]
        told.update(found)
        yield loop, found[0].value, Kind.GROWN, (*grown,)


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
