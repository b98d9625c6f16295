"""Whether iterations of a loop wait for one another, by what stands in the source.

Said of loops that nothing here rewrites, so that it has to be understood by who reads it, and to be
right: an iteration may need an earlier one wherever that is not seen to be otherwise.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from advisor.ir.changes import Names
from advisor.ir.effects import DRAWS
from advisor.source import assigned_names, each_of, every, names_around, names_in, names_of, walked

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.If, ast.For, ast.Expr, ast.Pass, ast.Continue)
_COMMUTING = (ast.Add, ast.Sub, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor)


def what_waits(loop: ast.For, calls: Names) -> str:
    """Return why an iteration may need what an earlier one did; empty where none does."""
    hidden: set[str] = set()
    for one in walked(ast.Module(loop.body, [])):
        if isinstance(one, ast.stmt) and (not isinstance(one, _STATEMENTS) or _has_else(one)):
            return "it may be left early, or does more than assign"
        if isinstance(one, ast.Call):
            if not calls.free(one) and not _appends(one):
                owner = ast.unparse(getattr(one.func, "value", one.func))
                if owner.endswith("random"):
                    return f"each goes on with numbers of `{owner}`, and a compiler has its own"
                if isinstance(one.func, ast.Attribute) and one.func.attr in DRAWS:
                    return f"each goes on with numbers of `{owner}`"
                return f"nobody knows what `{ast.unparse(one.func)}` changes"
            hidden |= calls.hidden(one)
        match one:
            case ast.Attribute(ctx=ast.Store()) | ast.NamedExpr():
                return "it changes more than elements and numbers"
            case ast.Subscript(ctx=ast.Store()) if not isinstance(
                _places(one)[0], ast.Name | ast.Attribute
            ):
                return "it changes more than elements and numbers"
    left = hidden & {*assigned_names(ast.Module(loop.body, []))}
    if left:
        return f"`{min(left)}`, which a function reads, may be what the iteration before left"
    return _carried(loop) or _passed_by_elements(loop, hidden)


def _appends(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "append"


def _has_else(one: ast.stmt) -> bool:
    return isinstance(one, ast.For) and bool(one.orelse)


def carried(loop: ast.For | ast.While, grown: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names that an iteration may need as an earlier one left them.

    What an iteration binds before it needs it is none of them, nor is an array of which only
    elements change; what is `grown` may be.
    """
    changed = {*assigned_names(ast.Module(loop.body, [])), *grown}
    known = set(assigned_names(loop.target)) if isinstance(loop, ast.For) else set()
    return tuple(n for n in dict.fromkeys(_needed_first(loop.body, known)) if n in changed)


def _carried(loop: ast.For) -> str:
    combined = _combined(loop)
    waiting = (name for name in carried(loop) if name not in combined)
    return next((f"`{name}` is what the iteration before left" for name in waiting), "")


def _needed_first(body: Iterable[ast.stmt], known: set[str]) -> Iterator[str]:
    """Yield names that statements may use before they bind them; those bound become `known`."""

    def used(*nodes: ast.AST) -> Iterator[str]:
        for node in nodes:
            names = [one for one in names_of(node) if one.id not in known]
            yield from names_around(names, node) if names else ()

    for one in body:
        match one:
            case ast.If(test, then, orelse):
                yield from used(test)
                ways = set(known), set(known)
                yield from _needed_first(then, ways[0])
                yield from _needed_first(orelse, ways[1])
                known |= ways[0] & ways[1]
            case ast.For(target, given, inner):
                yield from used(given)
                yield from _needed_first(inner, known | set(assigned_names(target)))
            case ast.While(test, inner):
                yield from used(test)
                yield from _needed_first(inner, set(known))
            case ast.With(items, inner):
                yield from used(*items)
                yield from _needed_first(inner, known)
            case ast.Try(inner, handlers, orelse, last):  # it may end anywhere
                for way in ([*inner, *orelse], *(each.body for each in handlers)):
                    yield from _needed_first(way, set(known))
                yield from _needed_first(last, known)
            case ast.Match():  # nobody knows which way it goes
                yield from used(one)
            case _:
                yield from used(one)
                match one:
                    case ast.AugAssign(ast.Name(name)) if name not in known:
                        yield name
                known |= set(assigned_names(one))


def _combined(loop: ast.For) -> frozenset[str]:
    """Return names with which a loop does nothing but combine terms, in whatever order."""
    uses = Counter[str]()
    for one in walked(loop):
        name, node = _combination(one)
        if name:
            uses[name] += sum(part.id == name for part in every(ast.Name, node))
    everywhere = Counter(one.id for one in every(ast.Name, loop))
    return frozenset(name for name, count in uses.items() if everywhere[name] == count)


def _uses(node: ast.AST, name: str) -> int:
    return [*names_in(node)].count(name)


def _combination(node: ast.AST) -> tuple[str, ast.AST]:
    match node:
        case ast.AugAssign(ast.Name(name), operation, value) if isinstance(
            operation, _COMMUTING
        ) and name not in names_in(value):
            return name, node
        case ast.Assign([ast.Name(name)], ast.Call(ast.Name("max" | "min"), [one, other])):
            if name in (ast.unparse(one), ast.unparse(other)) and _uses(node, name) == 1:
                return name, node
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"))) | ast.Assign(
            [ast.Name(name)],
            ast.Call(
                ast.Attribute(ast.Name(), "append" | "concatenate" | "hstack" | "vstack"),
                [ast.Name() | ast.Tuple([ast.Name(), _]) | ast.List([ast.Name(), _]), *_],
            ),
        ) if _uses(node, name) == 1:
            # an array that grows is as good made of a list
            return name, node
        case ast.If(test, [ast.Assign([ast.Name(name)], value)], []):
            # an extreme, maybe of some terms only
            both = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
            tests = test.values if both and isinstance(test, ast.BoolOp) else [test]
            match tests[-1]:
                case ast.Compare(one, [ast.Lt() | ast.Gt()], [other]) if _uses(test, name) == 1:
                    if {ast.unparse(value), name} == {ast.unparse(one), ast.unparse(other)}:
                        return name, node
    return "", node


def _passed_by_elements(loop: ast.For, hidden: Collection[str]) -> str:
    """Return an element that another iteration may have changed; empty where there is none.

    What is called reads what is `hidden`.
    """
    changed, read, whole = _elements(loop)
    bound = {*names_in(loop, ast.Store)}
    indices = [_index(one) for one in every(ast.For, loop)]
    for array, stores in changed.items():
        if array in bound:
            return f"elements change through `{array}`, another name in each iteration"
        if any(one == array or array.startswith(f"{one}.") for one in (*whole, *hidden)):
            return f"`{array}` is changed, and needed as a whole"
        ways = {ast.Add if isinstance(how, ast.Sub) else type(how) for _, how in stores}
        plain = ways <= {type(None), *_COMMUTING}
        places = {place for place, _ in stores}
        moving = [place for place, how in stores if how is not None and _moves(place, bound)]
        if moving:
            return f"`{array}[{moving[0]}]` may overlap with that of another iteration"
        others = [place for place in read.get(array, ()) if place not in places]
        if others:
            return f"`{array}[{others[0]}]` may be what an earlier iteration stored"
        used = array in read
        own = len(places) == 1 and _is_own(next(iter(places)), indices)
        if not own and (used or len(ways) > 1 or not plain):
            return f"`{array}[{next(iter(places))}]` may be one place in several iterations"
    return ""


def _index(loop: ast.For) -> str:
    """Return the name that is another number in each iteration; empty where none surely is."""
    match loop.target, loop.iter:
        case (ast.Name(name), ast.Call(ast.Name("range"))) | (
            ast.Tuple([ast.Name(name), *_]),
            ast.Call(ast.Name("enumerate")),
        ) if name not in assigned_names(ast.Module(loop.body, [])):
            return name
    return ""


def _parts(place: str) -> list[ast.expr]:
    """Return what a subscript has for each axis, from its text."""
    return _places(ast.parse(f"_[{place}]", mode="eval").body)[1]


def _is_own(place: str, indices: Collection[str]) -> bool:
    """Return whether no two iterations have one place: all of their indices stand in it."""
    return set(indices) <= {one.id for one in _parts(place) if isinstance(one, ast.Name)}


def _moves(place: str, bound: Collection[str]) -> bool:
    """Return whether a slice goes by what an iteration binds."""
    slices = (one for one in _parts(place) if isinstance(one, ast.Slice))
    return any(name in bound for one in slices for name in names_in(one))


def _places(node: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """Return what an element is taken from, and where: ``a[i][j]`` is from ``a``, at ``i, j``."""
    if not isinstance(node, ast.Subscript):
        return node, []
    base, around = _places(node.value)
    return base, [*around, *(each_of(node.slice) or [node.slice])]


Stores = Mapping[str, list[tuple[str, ast.operator | None]]]


def _elements(loop: ast.For) -> tuple[Stores, Mapping[str, list[str]], Collection[str]]:
    """Return what elements change, and how, which are read, and what is used as a whole."""
    changed: dict[str, list[tuple[str, ast.operator | None]]] = {}
    read: dict[str, list[str]] = {}
    whole: set[str] = set()
    adding = {one.target: one.op for one in every(ast.AugAssign, loop)}

    def look(node: ast.AST) -> None:
        match node:
            case ast.Subscript(_, _, context):
                base, parts = _places(node)
                if not isinstance(base, ast.Name | ast.Attribute):
                    for one in (base, *parts):
                        look(one)
                    return
                name, text = ast.unparse(base), ", ".join(map(ast.unparse, parts))
                if isinstance(context, ast.Load):
                    read.setdefault(name, []).append(text)
                else:
                    changed.setdefault(name, []).append((text, adding.get(node)))
                for one in parts:
                    look(one)
                return
            case ast.Attribute(ast.Name() | ast.Attribute(), "shape" | "size" | "ndim"):
                return
            case ast.Call(ast.Name("len")):
                return
            case ast.Name() | ast.Attribute(ast.Name() | ast.Attribute()) if isinstance(
                node.ctx, ast.Load
            ):
                whole.add(ast.unparse(node))
                return
        for part in ast.iter_child_nodes(node):
            look(part)

    look(loop)
    return changed, read, whole
