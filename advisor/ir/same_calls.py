"""What calls of functions of a file compute again, which a loop repeats.

A loop that calls a function with some arguments as they were computes the same again from these,
as long as nothing in it changes what is read: neither its statements nor what it calls, by
whatever name. So a function is read as the body of that loop, with what differs between the calls
as something else each time.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from advisor.ir.changes import (
    Changes,
    Loop,
    Lost,
    Names,
    is_opaque,
    path_of,
    root_of,
    whole_of,
)
from advisor.ir.effects import ALIKE, MAKING, PURE, THROUGH
from advisor.ir.functions import File, file_of, may_be_compiled
from advisor.ir.unchanging import (
    COMPUTING,
    LEAVING,
    called_in,
    computed_again,
    computed_alike,
    heads_of_loop,
    is_work,
    settled,
    settled_in_turn,
)
from advisor.numpy_table import ELEMENTWISE, REDUCTIONS
from advisor.source import COMPREHENSION, each_of, every, walked
from costdb.records import dataclass, field, only, replace

_MOST_CALLS = 200
_SHARE = 0.05
"""Part of what a function, or a loop in it, computes from which on it is told."""
_GRIDS = frozenset({"indices", "hanning", "hamming", "blackman", "vander", "tri", "triu_indices"})
_NUMBERS = frozenset({"bool", "complex", "float", "int", "isinstance", "len", "repr", "str"})
"""Of an array they make something that is none."""
_VIEWS = frozenset({"reshape", "ravel", "transpose", "squeeze", "astype", "copy", "flatten"})


@dataclass(frozen=True, slots=True)
class Again:
    """What is the same each time that a loop calls a function, or comes to it.

    Attributes
    ----------
    function : str
        Where it stands.
    found : tuple of ast.stmt and ast.expr
    texts : tuple of str
        What takes some work of it.
    line : int
        Of the loop; 0 of what one block computes several times.
    calls : bool
        Whether it stands in a function that the loop calls.
    own : bool
        Whether it calls no function of the file, so that it may have a price.
    each : frozenset of str
        Names for whose values, the same in turn each time, some of it is computed.
    """

    function: str
    found: tuple[ast.stmt | ast.expr, ...]
    texts: tuple[str, ...]
    line: int
    calls: bool
    own: bool
    each: frozenset[str]


@dataclass(slots=True)
class _State:
    """How the calls in a loop come to a function: with which arguments, and what differs."""

    given: dict[str, str]
    others: Changes = field(default_factory=Changes)

    def joined(self, given: Mapping[str, str], others: Changes) -> bool:
        """Take another call in; return whether that tells something new."""
        before = len(self.others.wholly), len(self.others.elements)
        differ = {one for one in given.keys() | self.given if given.get(one) != self.given.get(one)}
        self.others.and_also(others).wholly.update(differ)
        return before != (len(self.others.wholly), len(self.others.elements))


@lru_cache(maxsize=4)
def same_in_calls(source: str) -> Sequence[Again]:
    """Return what loops of a file compute again by what they call, in the order of the source.

    And what they or blocks compute again by themselves, which may have no price.
    """
    reader, found = _Reader(file_of(source, reduces=True)), dict[ast.AST, Again]()
    for again in sorted(reader.all_found(source), key=lambda one: one.own):
        if not any(part in found for part in again.found):
            found.update(dict.fromkeys(again.found, again))
    return tuple(sorted(set(found.values()), key=lambda one: one.found[0].lineno))


class _Reader:
    def __init__(self, file: File) -> None:
        self.file = file
        self.order, self.is_array = cache(self._order), cache(self._is_array)

    def all_found(self, source: str) -> Iterator[Again]:
        """Yield what loops compute again, then blocks."""
        for one, names in self.file.everywhere(Loop | COMPREHENSION):
            yield from () if is_opaque(one) else self.of_loop(one, names)
        for same in (one for each in computed_again(source).values() for one in each):
            for uses in () if same.repeats else same.values:
                names = self.file.names_of(self.file.scope_at(uses[0].lineno))
                # without a price one pass more over elements is worth no word, nor are few of many
                passes = _passes(uses[0])
                around = [x for x in every(Loop, names.node) if uses[0] in walked(x)]
                others = _passes(around[-1] if around else names.node)
                many = passes > 1 and passes * (len(uses) - 1) >= _SHARE * others
                many = many or bool(called_in(uses[0]) - {*ELEMENTWISE, *REDUCTIONS})
                if many and not may_be_compiled(names.node):
                    for again in self._told(None, names, uses[:1], names.node.body, own=True):
                        yield replace(again, found=uses)

    def of_loop(self, loop: Loop | ast.expr, names: Names) -> Iterator[Again]:
        """Yield what is the same each time that the loop goes round."""
        heads, body, orelse, repeated = _parts(loop)
        changes = names.changes([*heads, *body, *orelse])
        if changes.strange:
            return
        moved, values, lost = settled(heads, body, orelse, names)
        rest = [one for one in body if one not in moved]
        found: list[ast.stmt | ast.expr] = [*moved, *values]
        if not isinstance(loop, Loop):
            body = [ast.Expr(one) for one in repeated if isinstance(one, ast.expr)]
            found = [one for part in body for one in computed_alike(part, names, lost)]
        called = [one for one in found if self._is_called(one, names)]
        yield from self._told(loop, names, called, body)
        if not may_be_compiled(names.node):
            others = (one for one in found if one not in called)
            yield from self._told(loop, names, others, body, own=True)
            # no edit moves it, as it may never be computed
            under = (computed_alike(part, names, lost) for part in _now_and_then(body))
            seldom = (one for each in under for one in each)
            yield from self._told(loop, names, filter(is_work, seldom), body)
            inside = {part for one in found for part in walked(one)}
            turns = settled_in_turn(body, names, Changes(), lost)
            tables = {one: turning for one, turning in turns if turning and one not in inside}
            yield from self._told(loop, names, tables, body, tables)
        states: dict[ast.FunctionDef, _State] = {}
        pending = list(self._reached((*repeated, *rest), names, lost, {}))
        for _ in range(_MOST_CALLS):
            if not pending:
                break
            node, given, other = pending.pop()
            if node not in states:
                states[node] = _State({**given}, other)
            elif not states[node].joined(given, other):
                continue
            pending += self._followed(node, states[node])
        else:
            return
        for node, state in states.items():
            differing = state.others
            if not self._differs(node, differing):
                # of calls that are all alike the result is told, if somebody wants that
                continue
            moved, values, _ = self._settled(node, state)
            own, each = self.file.names_of(node), dict[ast.expr, frozenset[str]]()
            within = {part for one in (*moved, *values) for part in walked(one)}
            for one, turning in settled_in_turn(node.body, own, differing):
                if one not in within:
                    each[one] = turning
            yield from self._told(loop, own, (*moved, *values, *each), node.body, each, calls=True)

    def _differs(self, node: ast.FunctionDef, others: Changes) -> bool:
        """Return whether a function may read something that differs from call to call."""
        done = self.file.done(node)
        read = {root_of(path) for path, _ in done.reads} if done else set()
        differing = {*map(root_of, (*others.wholly, *others.elements))}
        return done is None or bool(others.fields) or not read.isdisjoint(differing)

    def _settled(
        self, node: ast.FunctionDef, state: _State
    ) -> tuple[list[ast.stmt], list[ast.expr], Lost]:
        return settled([], node.body, [], self.file.names_of(node), (), state.others)

    def _followed(
        self, node: ast.FunctionDef, state: _State
    ) -> Iterator[tuple[ast.FunctionDef, dict[str, str], Changes]]:
        """Yield the calls in a function where it does most."""
        names = self.file.names_of(node)
        moved, _, lost = self._settled(node, state)
        most = max(self.order(one, names) for one in node.body)
        rest = [one for one in node.body if one not in moved and self.order(one, names) >= most]
        yield from self._reached(rest, names, lost, state.given)

    def _reached(
        self, nodes: Iterable[ast.AST], names: Names, lost: Lost, around: Mapping[str, str]
    ) -> Iterator[tuple[ast.FunctionDef, dict[str, str], Changes]]:
        """Yield which functions of the file are called, with what, and what differs."""
        own = {*names.nodes}
        for call in (one for part in nodes for one in walked(part) if one in own):
            found = self.file.called(call, names) if isinstance(call, ast.Call) else None
            if found is None or not isinstance(call, ast.Call):
                continue
            node, given = found
            if node.decorator_list or any(map(is_opaque, node.body)):
                continue
            inner, others = self.file.names_of(node), Changes(fields={*lost.changes.fields})
            every = ((lost.wholly[0], others.wholly), (lost.elements[0], others.elements))
            for name, value in given.items():
                path = path_of(value)
                for paths, into in every if path else ():
                    into |= {name for one in paths if f"{path}.".startswith(f"{one}.")}
                    rests = (one[len(path) :] for one in paths if one.startswith(f"{path}."))
                    into |= {name + rest for rest in rests}
                other = not lost.changes.fields.isdisjoint(path.split(".")[1:])
                if other or (not path and (not names.only(value) or lost.has(value))):
                    others.wholly.add(name)
            shown = self.file.bound - inner.bound
            shown -= frozenset() if names.node is self.file.tree else names.bound
            for paths, into in every:
                into |= {one for one in paths if root_of(one) in shown}
            texts = {name: _text(value, names, around) for name, value in given.items()}
            yield node, texts, others

    # --- what is worth a word ---------------------------------------------------------------------

    def _order(self, node: ast.AST, names: Names) -> int:
        """Return how many loops stand in one another, with those of calls and of arrays."""
        match node:
            case ast.For() | ast.While():
                return 1 + max(self.order(one, names) for one in (*node.body, *node.orelse))
            case ast.ListComp(value) | ast.SetComp(value) | ast.GeneratorExp(value):
                # the parts of all ranks together are one array
                again = not self._is_of_mpi(node.generators[0].iter, names)
                again &= any(every(COMPUTING, value))
                return again + self.order(value, names)
            case ast.Subscript(_, index) if not self.is_array(node, names):
                return self.order(index, names)
            case ast.expr() if self.is_array(node, names):
                inner = [1]
            case _:
                inner = [0]
        inner += [self.order(one, names) for one in ast.iter_child_nodes(node)]
        found = self.file.called(node, names) if isinstance(node, ast.Call) else None
        if found is not None and found[0] not in self.file.busy:
            self.file.busy.add(found[0])
            own = self.file.names_of(found[0])
            inner += [self.order(one, own) for one in found[0].body]
            self.file.busy.remove(found[0])
        return max(inner)

    def _is_of_mpi(self, node: ast.AST | None, names: Names) -> bool:
        """Return whether something is a communicator, its size, or goes through its ranks."""
        match node:
            case (ast.Call(ast.Name("range"), [inner]) | ast.Attribute(inner, "size")) | ast.Call(
                ast.Attribute(inner, "Get_size")
            ):
                return self._is_of_mpi(inner, names)
            case ast.Name():
                names_of, origins = self.file.names_of, self.file.origins(node, names)
                return self._unless_again(
                    node, origins, lambda one: self._is_of_mpi(one[0], names_of(one[1]))
                )
        return isinstance(node, ast.Attribute) and names.imported(node).startswith("mpi4py.")

    def _told(
        self,
        loop: Loop | ast.expr | None,
        names: Names,
        found: Iterable[ast.AST],
        body: Sequence[ast.stmt],
        each: Mapping[Any, frozenset[str]] | None = None,
        *,
        own: bool = False,
        calls: bool = False,
    ) -> Iterator[Again]:
        """Yield what takes as much as anything else there."""
        most = max((self.order(one, names) for one in body), default=0)
        loops = [{*walked(one)} for one in every(Loop, *body)]
        kept, texts = list[Any](), dict[str, None]()
        plain = own and most == 0
        # numbers take long only among numbers
        alone = plain and not {*chain(*map(called_in, body))} - ELEMENTWISE.keys()
        for one in found:
            order = self.order(one, names) + sum(one in inside for inside in loops)
            asked = alone or (plain and bool(called_in(one) - ELEMENTWISE.keys()))
            works = order >= most and (
                self._is_work(one, names)
                or (asked and (loop is not None or self._asks_numpy(one, names)))
            )
            # what is kept of each takes as long to read as a sum to make
            works &= is_work(one) or not (own or one in (each or ()))
            if works or (kept and order >= most and isinstance(one, ast.stmt)):
                kept.append(one)
            if works and not _stores(one):
                value = getattr(one, "value", one) if isinstance(one, ast.stmt) else one
                texts[ast.unparse(value)] = None
        if texts:
            where, turning = self.file.name_of(names.node), frozenset[str]()
            turning = turning.union(*((each or {}).get(one, ()) for one in kept))
            line = getattr(loop, "lineno", 0)
            yield Again(where, tuple(kept), tuple(texts), line, calls, own, turning)

    def _asks_numpy(self, node: ast.AST, names: Names) -> bool:
        """Return whether a function of the file is called that calls NumPy's."""
        called = self.file.called(node, names) if isinstance(node, ast.Call) else None
        if called is None:
            return False
        own = self.file.names_of(called[0])
        asked = (own.imported(one.func) for one in only(ast.Call, own.nodes))
        return any(x.startswith("numpy.") and x.rpartition(".")[2] not in MAKING for x in asked)

    def _is_called(self, node: ast.AST, names: Names) -> bool:
        """Return whether functions of the file are called, or all ranks."""
        return any(
            self.file.called(one, names) or getattr(one.func, "attr", "") in ALIKE
            for one in every(ast.Call, node)
        )

    def _is_work(self, node: ast.AST, names: Names) -> bool:
        """Return whether something goes through arrays, or through loops."""

        def works(one: ast.AST) -> bool:
            match one:
                case ast.Call() if found := self.file.called(one, names):
                    own = self.file.names_of(found[0])
                    loops = any(isinstance(part, Loop) for part in own.nodes)
                    loops |= self.order(one, names) > 1
                    return loops or self._unless_again(
                        found[0], found[0].body, lambda part: self._is_work(part, own)
                    )
                case ast.Call(func, args):
                    full = names.imported(func)
                    name = (full or ast.unparse(func)).rpartition(".")[2]
                    given = [*args, *([func.value] if isinstance(func, ast.Attribute) else [])]
                    quick = name in MAKING or name in _VIEWS or name in PURE - THROUGH
                    arrays = (self.is_array(part, names) for part in (one, *given))
                    # nobody asks a number for its sum
                    rows = not full and any(self.is_array(whole_of(x), names) for x in given[-1:])
                    summed = name in REDUCTIONS and (full.startswith("numpy.") or rows)
                    return name in ALIKE or summed or (not quick and any(arrays))
                case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                    return self.order(one, names) > 0
                case (
                    ast.BinOp()
                    | ast.Compare()
                    | ast.UnaryOp()
                    | ast.Subscript(ast.Attribute(_, "mgrid"))
                ):
                    return self.is_array(one, names)
            return False

        return any(map(works, walked(node)))

    def _is_array(self, node: ast.AST | None, names: Names) -> bool:
        """Return whether something is seen to be an array, so that work on it counts."""

        def any_of(nodes: Iterable[ast.AST | None]) -> bool:
            return any(self.is_array(one, names) for one in nodes)

        match node:
            case ast.BinOp(left, _, right):
                return any_of((left, right))
            case ast.UnaryOp(operand=value) | ast.Attribute(value, "T" | "real" | "imag"):
                return any_of((value,))
            case ast.Compare(left, _, others):
                return any_of((left, *others))
            case ast.Tuple(parts):
                return any_of(parts)
            case ast.Subscript(ast.Attribute(_, "mgrid" | "ogrid")):
                return True
            case ast.Subscript(ast.Call() as value, ast.Constant()) | ast.Subscript(
                ast.Subscript() as value, ast.Constant()
            ):
                return any_of((value,))
            case ast.Subscript(value, index):
                each = each_of(index)
                return any(isinstance(one, ast.Slice) for one in each) or any_of(each)
            case ast.Call(func, args, words):
                full = names.imported(func)
                name = (full or ast.unparse(func)).rpartition(".")[2]
                given = [*args, *([] if full else [getattr(func, "value", None)])]
                if found := self.file.called(node, names):
                    own = self.file.names_of(found[0])
                    returned = [one for one in own.nodes if isinstance(one, ast.Return)]
                    return self._unless_again(
                        found[0], returned, lambda one: self.is_array(one.value, own)
                    )
                if name in _NUMBERS and isinstance(func, ast.Name):
                    return False
                if name in REDUCTIONS:
                    return any(one.arg == "axis" for one in words) and any_of(given)
                if name in ELEMENTWISE or not full.startswith("numpy."):
                    return any_of(given)
                return name in MAKING or name in _GRIDS or full.count(".") > 1 or any_of(given)
            case ast.Name() | ast.Attribute() if not names.imported(node):
                origins = self.file.origins(node, names)
                return self._unless_again(
                    node, origins, lambda one: self.is_array(one[0], self.file.names_of(one[1]))
                )
        return False

    def _unless_again(
        self, key: ast.AST, parts: Iterable[Any], holds: Callable[[Any], bool]
    ) -> bool:
        """Return whether something holds of some part, where that is not being asked already."""
        if key in self.file.busy:
            return False
        self.file.busy.add(key)
        found = any(map(holds, parts))
        self.file.busy.remove(key)
        return found


def _passes(node: ast.AST) -> int:
    return sum(1 for _ in every(COMPUTING, node))


def _stores(node: ast.AST) -> bool:
    """Return whether a statement stores to an array that others make."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return isinstance(node, ast.AugAssign) or any(isinstance(t, ast.Subscript) for t in targets)


def _parts(
    loop: Loop | ast.expr,
) -> tuple[list[ast.AST], list[ast.stmt], list[ast.stmt], list[ast.AST]]:
    """Return what stands ahead in a loop, its body, what follows, and what else is repeated."""
    match loop:
        case ast.For(body=body, orelse=orelse):
            return heads_of_loop(loop), body, orelse, []
        case ast.While(test, body, orelse):
            return heads_of_loop(loop), body, orelse, [test]
    assert isinstance(loop, COMPREHENSION)
    # what the first goes through is computed once
    first, *others = loop.generators
    made = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
    return [loop, loop], [], [], [*made, *first.ifs, *others]


def _now_and_then(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield what a loop does where some number is large or small, or where it goes on."""
    goes_on = False
    for one in body:
        if goes_on:
            yield one
        if isinstance(one, Loop):
            yield from _now_and_then(one.body)
        elif isinstance(one, ast.If) and not any(every(LEAVING, one)):
            # what asks for anything else may be done once
            asked = getattr(one.test, "ops", ())
            if asked and all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in asked):
                yield from (*one.body, *one.orelse)
                yield from _now_and_then((*one.body, *one.orelse))
        elif isinstance(one, ast.If) and not one.orelse:
            goes_on |= isinstance(one.body[-1], ast.Break | ast.Continue)


def _text(node: ast.AST, names: Names, around: Mapping[str, str]) -> str:
    """Return an argument by what the loop calls things; of a function's own by that."""
    own = {one: f"{one}@{getattr(names.node, 'name', '')}" for one in names.bound}
    known = {**own, **around}
    tree = ast.parse(ast.unparse(node), mode="eval")
    for one in every(ast.Name, tree):
        one.id = known.get(one.id, one.id)
    return ast.unparse(tree)
