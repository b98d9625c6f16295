"""What a program computes again, by what stands in the source: in each iteration, or in one block.

An expression stays the same where all it does is to compute, and nothing in between can change what
it reads. Whether that pays is for others to know.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from advisor.ir.changes import (
    OWN,
    Changes,
    Loop,
    Lost,
    Names,
    is_opaque,
    root_of,
    turned,
)
from advisor.ir.effects import MAKING, PURE, THROUGH, Deed
from advisor.ir.functions import file_of
from advisor.source import assigned_names, each_of, every, names_in, walked
from costdb.records import dataclass, field, grouped, only, replace


@dataclass(frozen=True, slots=True)
class Same:
    """What is computed again from some statement on, a loop or the first of a block.

    Attributes
    ----------
    values : tuple of tuple of ast.expr
        Places of each expression that stays the same; of a loop, the largest ones.
    moved : tuple of ast.stmt
        Statements of a loop's body that come to the same in each iteration, in order.
    name : str
        What the statement calls the value, if that is all that it does.
    read : frozenset of str
        Names that all these are computed from.
    stored : frozenset of str
        What is stored to on the way, and is not surely an array of its own.
    runs_unknown : bool
        Whether code runs on the way that nobody knows.
    repeats : bool
        Whether it is a loop that repeats it.
    """

    values: tuple[tuple[ast.expr, ...], ...]
    read: frozenset[str]
    stored: frozenset[str]
    runs_unknown: bool
    repeats: bool
    moved: tuple[ast.stmt, ...] = ()
    name: str = ""


LEAVING = ast.Break | ast.Continue | ast.Return | ast.Raise
COMPUTING = ast.BinOp | ast.Call | ast.Compare | ast.UnaryOp | ast.Subscript
Place = tuple[int, int]


@lru_cache(maxsize=4)
def computed_again(source: str) -> Mapping[Place, Sequence[Same]]:
    """Return what a file computes again, by the line of a statement and the column in bytes."""
    file = file_of(source)
    found = (pair for one in file.scopes for pair in _of_scope(one, file.names_of(one)))
    return grouped(((start.lineno, start.col_offset), same) for start, same in found)


def _of_scope(scope: ast.AST, names: Names) -> Iterator[tuple[ast.stmt, Same]]:
    """Yield what loops compute again, each in one, and then what blocks do."""
    taken, parts = set[ast.AST](), [scope, *names.nodes]
    for loop in (one for one in only(Loop, parts) if not is_opaque(one)):
        moved, values, lost = settled(heads_of_loop(loop), loop.body, loop.orelse, names, taken)
        if len(moved) < len(loop.body) and (moved or values):
            taken.update(every(ast.AST, *moved, *values))
            yield loop, _same(values, lost.changes, names, repeats=True, moved=tuple(moved))
    for part in parts:
        for body in only(list, (getattr(part, "body", ()), getattr(part, "orelse", ()))):
            for start, same in list(_of_block(body, names, taken)):
                yield start, same
                taken.update(same.values[0])


def is_work(node: ast.AST) -> bool:
    """Return whether an expression surely does more than Python does with a few numbers."""
    many = ast.MatMult | ast.ListComp | ast.SetComp | ast.GeneratorExp
    return bool(called_in(node)) or any(every(many, node))


def called_in(node: ast.AST) -> set[str]:
    """Return what an expression calls that does more than Python does with a few numbers."""
    calls = (one.func for one in every(ast.Call, node))
    names = {ast.unparse(one).rpartition(".")[2] for one in calls} - MAKING
    return names - PURE | names & THROUGH


def is_made(node: ast.AST) -> bool:
    """Return whether an expression is an array that only is made, of numbers or of nothing."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in MAKING


# --- loops ----------------------------------------------------------------------------------------


def heads_of_loop(loop: Loop) -> list[ast.AST]:
    """Return what a loop does ahead of its body, each time."""
    if isinstance(loop, ast.While):
        return [loop.test]
    # going on may run code of what it goes through
    return [loop.target, ast.comprehension(ast.Name("_", ast.Store()), loop.iter, [], 0)]


def settled(
    heads: Sequence[ast.AST],
    body: Sequence[ast.stmt],
    orelse: Sequence[ast.stmt],
    names: Names,
    taken: Collection[ast.AST] = (),
    others: Changes | None = None,
) -> tuple[list[ast.stmt], list[ast.expr], Lost]:
    """Return the statements and values of a block that are the same each time that it runs.

    Parameters
    ----------
    heads : sequence of ast.AST
        What is computed ahead of it, each time; of a loop of ``while`` that counts too.
    body, orelse : sequence of ast.stmt
    names : Names
    taken : collection of ast.AST
        What is not asked about.
    others : Changes or None
        What else is another thing each time.
    """
    certain, everything = _certain(body), [*heads, *body, *orelse]
    uses = (
        Counter(name for part in everything for name in assigned_names(part)),
        Counter(name for part in everything for name in names_in(part)),
    )
    moved = [one for one in certain if _is_movable(one, names) and one not in taken]
    while True:
        rest = [one for one in everything if one not in moved]
        lost = names.lost(names.changes(rest), others)
        kept = [one for one in moved if _stays(one, moved, (*heads, *body), rest, uses, lost)]
        if len(kept) == len(moved):
            break
        moved = kept
    computed = list(_parts(heads[0], names)) if len(heads) == 1 else []
    computed += [one for part in certain if part not in moved for one in _surely(part, names)]
    alike = (one for one, sure in computed if sure and not lost.has(one))
    return moved, [*_outermost(alike, taken)], lost


def _outermost(found: Iterable[ast.expr], taken: Collection[ast.AST] = ()) -> Iterator[ast.expr]:
    """Yield of expressions those that stand in no other one, nor in what is taken."""
    inside = set(taken)
    for one in found:
        if one not in inside:
            inside.update(walked(one))
            yield one


def computed_alike(
    node: ast.stmt,
    names: Names,
    lost: Lost,
    other: Collection[str] = (),
    taken: Collection[ast.AST] = (),
) -> Iterator[ast.expr]:
    """Yield what a statement surely computes alike each time, where some names are others."""
    parts = [one for one, sure in _surely(node, names) if sure]
    match node:
        case ast.Assign([ast.Name() as target], value) if names.only(value):
            if isinstance(value, COMPUTING) and names.stays(target):
                parts.insert(0, value)
    found = (one for one in parts if not lost.has(one) and {*names_in(one)}.isdisjoint(other))
    yield from _outermost(found, taken)


def settled_in_turn(
    body: Sequence[ast.stmt], names: Names, others: Changes, around: Lost | None = None
) -> Iterator[tuple[ast.expr, frozenset[str]]]:
    """Yield values that come to the same each time that a block runs, and for each of which names.

    Loops go through the same if what they go through is the same, and what they bind once and
    only compute from that is the same in turn.

    Parameters
    ----------
    body : sequence of ast.stmt
        Of a function, whose names are new in each call: what binds one further down changes
        nothing. Or of a loop.
    names : Names
    others : Changes
        What is another thing in each call.
    around : Lost or None
        Of a loop what it changes.
    """
    changes, before = names.changes(body), set[str]()
    # what follows a break is computed in every iteration but the last
    for part in _certain(body, ast.Continue) if around else _certain(body):
        turns = list(_turns(part, names)) if isinstance(part, Loop) else []
        own = {*assigned_names(part)} if isinstance(part, Loop) else set()
        bound = around.changes.bound if around else before | own
        found = replace(around.changes if around else changes, bound=bound)
        turning, each, lost = _in_turn(turns, found, names, others)
        taken = set[ast.AST]()
        for target, ends, loops in turns:
            made = [*assigned_names(target)]
            groups = [names.groups.get(name, frozenset({name})) for name in made]
            if loops or not each.keys() >= {*made}:
                continue
            if not any(_escapes(group, [part], names) for group in groups):
                taken.update(walked(ends[0]))
                yield ends[0], each[made[0]]
        for one in computed_alike(part, names, lost, turning - each.keys(), taken):
            yield one, frozenset[str]().union(*(each[n] for n in turning & {*names_in(one)}))
        before.update(assigned_names(part))


_Turns = Sequence[tuple[ast.expr, Sequence[ast.expr], bool]]


def _in_turn(
    turns: _Turns, changes: Changes, names: Names, others: Changes
) -> tuple[set[str], dict[str, frozenset[str]], Lost]:
    """Return the names that turn, for each that comes to the same the loops it goes by, and what
    is lost."""
    turning = {name for target, _, _ in turns for name in assigned_names(target)}
    lost = names.lost(replace(changes, bound=changes.bound - turning), others)
    each = dict[str, frozenset[str]]()
    for target, ends, loops in turns:
        same = [one for one in ends if not lost.has(one)]
        inside = [{*names_in(one)} & turning for one in same]
        inner = next((one for one in inside if one <= each.keys()), None)
        if inner is not None:
            of = frozenset[str]().union(*map(each.__getitem__, inner))
            each.update((name, of | {name} if loops else of) for name in assigned_names(target))
    return turning, each, lost


@dataclass(frozen=True, slots=True)
class Turning:
    """What expressions of a loop go by, where they come to the same each time that it is run.

    Attributes
    ----------
    names : Names
    turning : set of str
        What loops in it bind once, and what is computed from that.
    each : mapping of str to frozenset of str
        Those that go by loops alone, with the names that these loops bind.
    lost : Lost
    """

    names: Names
    turning: set[str]
    each: Mapping[str, frozenset[str]]
    lost: Lost

    def of(self, *nodes: ast.expr) -> frozenset[str] | None:
        """Return the names of loops that some expressions go by; None where by anything else."""
        read = {name for one in nodes for name in names_in(one)} & self.turning
        known = read <= self.each.keys() and all(map(self.names.only, nodes))
        if not known or self.lost.has(*nodes):
            return None
        return frozenset[str]().union(*(self.each[one] for one in read))


def turning_in(loop: Loop, names: Names) -> Turning:
    """Return what expressions of a loop go by."""
    turns, changes = list(_turns(loop, names)), names.changes([loop])
    found = replace(changes, bound={*assigned_names(loop)})
    return Turning(names, *_in_turn(turns, found, names, Changes()))


def _turns(loop: Loop, names: Names) -> Iterator[tuple[ast.expr, Sequence[ast.expr], bool]]:
    """Yield what loops in a loop bind once, from what, and whether to one after another of it.

    It is the same in turn if any of these is the same.
    """
    inside = list(walked(loop))
    if isinstance(loop, ast.For):
        pairs = [
            (target, given)
            for target, given in turned(loop.target, loop.iter)
            if names.only(given) and names.kind(given) != "function"
        ]
        for target, given in pairs:
            if all(_times(name, inside) == 1 for name in assigned_names(target)):
                yield target, _ends(given), True
    for part in _certain(loop.body):
        match part:
            case ast.For() | ast.While():
                yield from _turns(part, names)
            case ast.Assign([whole], value):
                parts = each_of(whole)
                values = value.elts if isinstance(value, ast.Tuple) else [value] * len(parts)
                made = [one.id for one in parts if isinstance(one, ast.Name)]
                if not len(parts) == len(values) == len(made) or {*made} & {*names_in(value)}:
                    continue
                for target, name, one in zip(parts, made, values, strict=True):
                    uses = (x.lineno for x in inside if isinstance(x, ast.Name) and x.id == name)
                    if _times(name, inside) == 1 and min(uses) == part.lineno and names.only(one):
                        yield target, [one], False


def _times(name: str, nodes: Iterable[ast.AST]) -> int:
    """Return how often a name is bound."""
    bound = (one.id for one in only(ast.Name, nodes) if not isinstance(one.ctx, ast.Load))
    return sum(one == name for one in bound)


def _ends(given: ast.expr) -> Sequence[ast.expr]:
    """Return what a loop goes through, or of a range its ends: from one on it meets all again."""
    match given:
        case ast.Call(ast.Name("range"), [_]):
            return [ast.Constant(0)]
        case ast.Call(ast.Name("range"), [low, high]):
            return [low, high]
    return [given]


def _same(
    values: Sequence[ast.expr],
    changes: Changes,
    names: Names,
    *,
    repeats: bool,
    moved: tuple[ast.stmt, ...] = (),
    name: str = "",
) -> Same:
    read = {root_of(path) for one in (*moved, *values) for path, _ in names.reads(one)}
    read -= {made for one in moved for made in assigned_names(one)}
    stored = frozenset(root_of(one) for one in changes.elements if not names.is_own(one))
    places = tuple(map(tuple, grouped((ast.unparse(one), one) for one in values).values()))
    return Same(places, frozenset(read), stored, changes.unknown, repeats, moved, name)


def _surely(one: ast.stmt, names: Names) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what a statement computes, and what loops in it surely do where they run."""
    yield from _parts(one, names)
    if isinstance(one, Loop):
        for part in _certain(one.body):
            yield from _surely(part, names)


def _is_movable(one: ast.stmt, names: Names) -> bool:
    match one:
        case ast.Assign([ast.Name()], value):
            return names.only(value)
        case ast.Assign([ast.Tuple(parts)], value):
            return all(isinstance(part, ast.Name) for part in parts) and names.only(value)
        case ast.Assign([ast.Subscript(ast.Name(), index)], value) | ast.AugAssign(
            ast.Subscript(ast.Name(), index), _, value
        ):
            return names.only(value) and names.only(index)
    return False


def _stays(
    one: ast.stmt,
    moved: Sequence[ast.stmt],
    block: Sequence[ast.AST],
    rest: Sequence[ast.AST],
    uses: tuple[Mapping[str, int], Mapping[str, int]],
    lost: Lost,
) -> bool:
    """Return whether a statement of a block does the same each time, before others."""
    names = lost.names
    made = {name for part in moved[: moved.index(one)] for name in assigned_names(part)}
    everywhere, loads = uses
    read = {path for path, _ in names.reads(one)}
    if lost.has(one) or any(path in everywhere for path in read - made):
        return False
    # what it stores to is its own, new in each iteration
    reached = names.reached(names.changes([one]).elements)
    if not all(path in made and names.is_own(path) for path in reached):
        return False
    ahead = block[: block.index(one)]
    before = {path for part in ahead for path, _ in names.reads(part)}
    # what stays, and stands before it, sees what is there before it stores
    seen = (path for part in ahead if part in rest for path, _ in names.reads(part))
    if not {*map(root_of, reached)}.isdisjoint(map(root_of, seen)):
        return False
    for name in assigned_names(one):
        use = ast.Name(name, ast.Load())
        if everywhere[name] > 1 or name in before or lost.has(use):
            return False
        # a loop that does not run leaves it as it was
        if names.loads[name] > loads[name]:
            return False
        if _escapes(names.groups.get(name, frozenset({name})), rest, names):
            return False
    return True


def _escapes(group: Collection[str], rest: Sequence[ast.AST], names: Names) -> bool:
    """Return whether what some names denote is kept by others, which might change it."""
    for one in (part for node in rest for part in walked(node)):
        plain = isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
        given = one.value if isinstance(one, ast.Assign) and plain else one
        if isinstance(one, ast.stmt) and any(
            kept and isinstance(part, ast.Name) and part.id in group
            for part, _, kept in _flow(given, names, True, False)
            if isinstance(getattr(part, "ctx", None), ast.Load)
        ):
            return True
    return False


# --- parts ----------------------------------------------------------------------------------------


def _parts(node: ast.AST, names: Names, sure: bool = True) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what a piece of source computes, outermost first, and whether it surely does.

    Without what something gets hold of that might change it.
    """
    if node not in names.parts:
        names.parts[node] = _parts_of(node, names)
    return ((one, certain and sure) for one, certain in names.parts[node])


def _parts_of(node: ast.AST, names: Names) -> list[tuple[ast.expr, bool]]:
    found: list[tuple[ast.expr, bool]] = []
    for one, certain, kept in _flow(node, names, sure=True, kept=False):
        number = isinstance(getattr(one, "operand", None), ast.Constant)
        number |= not isinstance(getattr(one, "ctx", None), ast.Load | None)
        hidden = certain is None or kept or number
        if isinstance(one, COMPUTING) and not hidden and names.only(one):
            found.append((one, certain is True))
    return found


def _flow(
    node: ast.AST, names: Names, sure: bool | None, kept: bool
) -> Iterator[tuple[ast.expr, bool | None, bool]]:
    """Yield expressions outermost first, with what becomes of them.

    Yields
    ------
    ast.expr
    bool or None
        Whether it is surely computed; None where its names may be others each time.
    bool
        Whether something gets hold of its value, and might change it.
    """
    if isinstance(node, ast.expr):
        yield node, sure, kept
    inner: list[tuple[ast.AST, bool | None, bool]] = []
    perhaps = None if sure is None else False
    match node:
        case ast.BoolOp(_, [first, *others]):
            inner = [(first, sure, kept), *((one, perhaps, kept) for one in others)]
        case ast.IfExp(test, body, orelse):
            inner = [(test, sure, False), (body, perhaps, kept), (orelse, perhaps, kept)]
        case ast.Compare(left, _, [right, *others]):
            inner = [(left, sure, False), (right, sure, False)]
            inner += [(one, perhaps, False) for one in others]
        case ast.Call(func):
            held = not names.free(node) and names.deed(node) is not Deed.SENDS
            given = [func.value] if isinstance(func, ast.Attribute) else []
            inner = [(one, sure, held) for one in (*given, *node.args, *node.keywords)]
        case ast.Subscript(value, index):
            own = isinstance(value, ast.Name) and not names.roots(node)
            inner = [(value, sure, kept and not own), (index, sure, False)]
        case ast.Tuple() | ast.List() | ast.Starred() | ast.keyword() | ast.Attribute():
            inner = [(one, sure, kept) for one in ast.iter_child_nodes(node)]
        case ast.Assign([ast.Tuple(targets) as whole], ast.Tuple(values)) if len(targets) == len(
            values
        ):
            pairs = zip(targets, values, strict=True)
            inner = [(one, sure, not names.stays(target)) for target, one in pairs]
            inner += [(whole, sure, True)]
        case ast.Assign(targets, value):
            inner = [(value, sure, not all(map(names.is_array, targets)))]
            inner += [(one, sure, True) for one in targets]
        case ast.AugAssign(target, _, value):
            inner = [(value, sure, False), (target, sure, True)]
        case ast.If(test) | ast.While(test):
            inner = [(test, sure, False)]
        case ast.Expr(value) | ast.Return(value) | ast.For(_, value) | ast.AnnAssign(value=value):
            inner = [(value, sure, True)] if value is not None else []
        case ast.expr() if isinstance(node, ast.Dict | ast.Set | OWN):
            inner = [(one, None, True) for one in ast.iter_child_nodes(node)]
        case ast.expr() | ast.comprehension():
            inner = [(one, sure, False) for one in ast.iter_child_nodes(node)]
    for one, certain, held in inner:
        yield from _flow(one, names, certain, held)


# --- blocks ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Uses:
    """Where a block computes a value, as long as it stays the same.

    What changes since the first of these is `changed` as far as another one follows.
    """

    start: ast.stmt
    name: str
    places: list[ast.expr] = field(default_factory=list)
    since: list[ast.stmt] = field(default_factory=list)
    changed: list[ast.stmt] = field(default_factory=list)


def _of_block(
    body: Sequence[ast.stmt], names: Names, taken: Collection[ast.AST]
) -> Iterator[tuple[ast.stmt, Same]]:
    """Yield what stands more than once in a block and is the same, and from which statement on."""
    known, ended = dict[str, _Uses](), list[_Uses]()
    computed = [list(_computed(one, names)) for one in body]
    times = Counter(ast.unparse(part) for parts in computed for part, _ in parts)
    if all(count < 2 for count in times.values()):
        return
    for one, parts in zip(body, computed, strict=True):
        lost, compound = names.lost(names.changes([one])), hasattr(one, "body")
        if compound and (is_opaque(one) or not isinstance(one, Loop | ast.If)):
            ended += known.values()
            known = {}
            continue
        if compound:
            known = _kept(known, lost, one, ended)
        # what it calls may change what it computes with
        calls = every(ast.Call | ast.NamedExpr, one)
        during = lost if compound else names.lost(names.changes(calls))
        bound = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        for part, sure in parts:
            text, gone = ast.unparse(part), during.has(part)
            whole = isinstance(one, ast.Assign) and part is one.value
            if part in taken or times[text] < 2:
                continue
            if text in known and not (gone or (whole and isinstance(bound, ast.Name))):
                uses = known[text]
                uses.places.append(part)
                uses.changed = [*uses.since, *([one] if compound else [])]
            elif text not in known and sure and not gone:
                name = bound.id if whole and isinstance(bound, ast.Name) else ""
                if not name or names.is_own(name):
                    known[text] = _Uses(one, name, [part])
        for uses in known.values():
            uses.since.append(one)
        if not compound:
            known = _kept(known, lost, one, ended)
    found = [uses for uses in (*ended, *known.values()) if len(uses.places) > 1]
    inside = [{*walked(part)} - {part} for uses in found for part in uses.places]
    for uses in found:
        if not all(any(part in other for other in inside) for part in uses.places):
            changed = names.changes(uses.changed)
            yield uses.start, _same(uses.places, changed, names, repeats=False, name=uses.name)


def _computed(one: ast.stmt, names: Names) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what a statement of a block computes, and whether it surely does."""
    match one:
        case ast.Assign([ast.Name()], value) if isinstance(value, COMPUTING) and names.only(value):
            yield value, True
    yield from _parts(one, names)
    for inner in walked(one) if isinstance(one, Loop | ast.If) else ():
        if isinstance(inner, ast.stmt) and inner is not one:
            yield from _parts(inner, names, sure=False)


def _kept(
    known: Mapping[str, _Uses], lost: Lost, one: ast.stmt, ended: list[_Uses]
) -> dict[str, _Uses]:
    """Return what a statement leaves as it is, and note the others."""
    kept: dict[str, _Uses] = {}
    for text, uses in known.items():
        held = [ast.Name(uses.name, ast.Load())] if uses.name and uses.start is not one else []
        if lost.has(uses.places[0], *held):
            ended.append(uses)
        else:
            kept[text] = uses
    return kept


def _certain(body: Sequence[ast.stmt], leaving: Any = LEAVING) -> list[ast.stmt]:
    """Return the statements of a block that surely run where it does."""
    ends = (at for at, one in enumerate(body) if any(every(leaving, one)))
    return list(body[: next(ends, len(body)) + 1])
