"""Loops whose iterations do not wait for what others of them received: one call for all.

What calls bring is followed from name to name, twice round the loop. Where nothing of it comes to
what is sent, or decides, all that is sent can be made first, and all that is received be used last.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from advisor.ir.effects import DRAWS
from advisor.ir.functions import names_around
from advisor.ir.spmd.memory import PayloadKind, View
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.steps import (
    Call,
    Communicate,
    ConditionKind,
    Leave,
    Loop,
    Op,
    Step,
    Unknown,
    Visit,
    Wait,
    walk,
)
from advisor.ir.values import Point
from advisor.ir.waiting import carried
from advisor.source import Span, assigned_names, each_of, every
from costdb.expr import free_symbols, num, sym
from costdb.records import dataclass, field, replace
from transforms.kit.memory import disjoint, may_share, reads_of, written
from transforms.kit.names import (
    argument,
    bound_in,
    bound_names,
    is_name,
    loaded_names,
    meet_otherwise,
    occurrences,
    words,
)
from transforms.kit.ranks import is_exchange
from transforms.kit.rewrite import nodes_of, span_of, statement_at, tree_of

REDUCTIONS = frozenset({Op.REDUCE, Op.ALLREDUCE})
OPERATIONS = frozenset({"SUM", "PROD", "MAX", "MIN", "BAND", "BOR", "BXOR"})
REMOTE = frozenset({Op.PUT, Op.GET, Op.ACCUMULATE})
APART = REMOTE - {Op.PUT}
"""Of which each may have another target; of what is put twice in one place the last one stays."""
EPOCHS = frozenset({Op.LOCK, Op.UNLOCK, Op.FLUSH})
ENDS = frozenset({Op.SEND, Op.RECV})
_COLLECTIVES = ENDS | REDUCTIONS | {Op.BCAST, Op.GATHER, Op.ALLGATHER, Op.SENDRECV}
_GIVEN = ("sendobj", "obj", "sendbuf", "origin", "root", "dest", "source", "target_rank", "target")
_PARTNERS = ("root", "dest", "source", "target_rank")
_DRAWS = DRAWS | {"choice", "permutation", "permuted", "shuffle"}
_STATEMENTS = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.For, ast.If, ast.Pass,
)  # fmt: skip


_MAKING = (
    ast.Call, ast.Constant, ast.Tuple, ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.BinOp
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Talk:
    """What communicates in a loop: a call of MPI, or of a function that makes one.

    Attributes
    ----------
    step : Communicate
    at : Call or Communicate
        What stands in the loop.
    loops : tuple of Loop
        Around it, from the loop on.
    """

    step: Communicate
    at: Call | Communicate
    loops: tuple[Loop, ...]


@dataclass(slots=True)
class Parts:
    """A loop in parts.

    Attributes
    ----------
    node : ast.For
    loop : Loop
    talks : list of Talk
    before, behind : list of ast.stmt
        Its statements that nothing received comes to, and those with calls or behind them.
    whole : bool
        Whether these are all calls of the loop.
    mixed : bool
        Whether some of these hold statements of both kinds.
    given : dict of Span to frozenset of str
        The names that say what a call sends, and to whom.
    """

    node: ast.For
    loop: Loop
    talks: list[Talk]
    before: list[ast.stmt] = field(default_factory=list)
    behind: list[ast.stmt] = field(default_factory=list)
    whole: bool = True
    mixed: bool = False
    given: dict[Span, frozenset[str]] = field(default_factory=dict)

    @property
    def targets(self) -> frozenset[str]:
        """What the loop's header binds."""
        return bound_names([self.node.target])

    @property
    def header(self) -> str:
        """The header of a loop like this one."""
        return f"for {ast.unparse(self.node.target)} in {ast.unparse(self.node.iter)}"


class _Waits(Exception):
    """An iteration needs what an earlier one received, or may."""


def in_parts(program: Program, function: SpmdFunction, visit: Visit) -> Iterator[Parts]:
    """Yield the parts of a loop around all of its calls, or around each whose result stays."""
    loop = visit.step
    assert isinstance(loop, Loop)
    node = statement_at(loop.span, program.context) or _comprehended(loop.span, program)
    if not isinstance(node, ast.For) or node.orelse:
        return
    if not all(isinstance(one, _STATEMENTS) for one in _statements(node)):
        return
    if _is_tried(program, loop):
        return
    talks = _talks(program, loop, node)
    # what is in a window is followed by no name, and one end of messages does nothing alone
    single = [[one] for one in talks or () if one is not None and one.step.op not in REMOTE | ENDS]
    whole = [] if talks is None or None in talks else [[one for one in talks if one is not None]]
    if any(isinstance(one, Loop) for one in loop.body):
        single = []  # which do more than one call
    for group in (*whole, *(single if not whole or len(single) > 1 else ())):
        parts = Parts(node, loop, group, whole=group in whole)
        try:
            _Flow(program, function, parts).divide()
        except _Waits:
            continue
        yield parts
        if group in whole:
            return


def _comprehended(span: Span, program: Program) -> ast.For | None:
    """Return the loop that a list is made by, or a number, at the place of what gives its parts.

    None for any other.
    """
    lines = program.context.lines
    for one in nodes_of(program.context.source):
        match one:
            case (ast.ListComp(elt, [ast.comprehension(target, given, [], 0)]) as node) | ast.Call(
                ast.Name("sum" | "max" | "min"),
                [ast.GeneratorExp(elt, [ast.comprehension(target, given, [], 0)]) as node],
            ):
                if span_of(node, lines).contains(span) and span.contains(span_of(target, lines)):
                    body = ast.copy_location(ast.Expr(elt), elt)
                    return ast.copy_location(ast.For(target, given, [body], []), node)
    return None


def stored(program: Program, function: SpmdFunction, loop: Loop) -> Iterator[Parts]:
    """Yield the parts of a loop around each reduction whose result it only stores, as one of many.

    What else it does, and when it leaves out the call, is then all the same.
    """
    context, node = program.context, statement_at(loop.span, program.context)
    if not isinstance(node, ast.For) or _is_tried(program, loop):
        return
    inside = [one.id for one in every(ast.Name, node)]
    calls = {one.statement: one for one in loop.body if isinstance(one, Communicate)}
    for one in node.body:
        step = calls.get(span_of(one, context.lines))
        if step is None or step.op not in REDUCTIONS or not step.pickled or not _is_taken(step, []):
            continue
        match one:
            case ast.Assign([ast.Subscript(ast.Name(id=name), place)], value):
                kept = bool(loaded_names([place]) & bound_names([node.target]))
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(id=name), "append"), [value])):
                kept = True
            case _:
                continue
        alone = span_of(value, context.lines) == step.span and inside.count(name) == 1
        parts = Parts(node, loop, [Talk(step, step, (loop,))], whole=False)
        if kept and alone and _Flow(program, function, parts).is_stored(name):
            yield parts


def _is_tried(program: Program, loop: Loop) -> bool:
    """Return whether what was done before an exception stays done."""
    tries = every(ast.Try, tree_of(program.context.source))
    return any(span_of(one, program.context.lines).contains(loop.span) for one in tries)


def _statements(node: ast.For) -> Iterator[ast.stmt]:
    return every(ast.stmt, *node.body)


def _talks(program: Program, loop: Loop, node: ast.For) -> list[Talk | None] | None:
    """Return what communicates in a loop, None for what stays; None where the loop may end."""
    bound = [one for one in _statements(node) if isinstance(one, ast.Assign)]
    made = bound_names(bound) - bound_names(one for one in bound if not _is_new(one.value))
    found: list[Talk | None] = []
    every = [v.step for v in walk(loop.body, into_calls=True) if isinstance(v.step, Communicate)]
    receivers = {step.receiver for step in every}
    for visit in walk(loop.body):
        step = visit.step
        if isinstance(step, Leave | Unknown):
            return None
        inside = [one.step for one in walk((step,), into_calls=True)]
        calls = [one for one in inside if isinstance(one, Communicate)]
        if not isinstance(step, Call | Communicate) or not calls or calls[0].op in EPOCHS:
            continue
        if calls == [step] and calls[0].op is Op.BARRIER:
            if len(receivers) > 1 or meet_otherwise(program):
                return None  # others may wait there, or for something else
            continue
        plain = len(calls) == 1 and _is_taken(calls[0], every, made) and _is_guarded(program, visit)
        plain = plain and (calls == [step] or _keeps(step))
        plain = plain and all(one.trips is not None and not one.by_rank for one in visit.loops)
        found.append(Talk(calls[0], step, (loop, *visit.loops)) if plain else None)
    return found


def _is_new(value: ast.expr) -> bool:
    """Return whether an expression makes something each time."""
    if isinstance(value, ast.IfExp):
        return _is_new(value.body) and _is_new(value.orelse)
    return isinstance(value, _MAKING)


def _is_guarded(program: Program, visit: Visit) -> bool:
    """Return whether what is around a call in a loop is the same each time, and for its partner."""
    if not visit.branches:
        return True
    bound = bound_in(program, visit.loops[0]) if visit.loops else frozenset[str]()
    conditions = [branch.condition for branch, _ in visit.branches]
    alike = all(
        one.kind is ConditionKind.RANK and not words(one.text) & bound for one in conditions
    )
    return alike and isinstance(visit.step, Communicate) and visit.step.op in ENDS


def _is_taken(
    step: Communicate, every: list[Communicate], made: Collection[str] = frozenset()
) -> bool:
    """Return whether a call is of a kind of which one may do what many do.

    What names denote that are `made` in each iteration is another thing each time.
    """
    if not step.places.keys().isdisjoint(("status", "result")) or step.in_place or step.replaces:
        return False  # what was there before an addition is another number after each
    if step.op in ENDS:
        return any(_are_ends(*sorted((step, one), key=lambda s: s.op is Op.RECV)) for one in every)
    if not step.blocking:
        return False
    sent = step.send
    named = sent is not None and sent.kind is PayloadKind.OBJECT and is_name(sent.text)
    if named and sent is not None and sent.text not in made:
        return False  # it may change, and be another one for nobody
    if step.op is Op.SENDRECV:
        return is_exchange(step)
    if step.op in REDUCTIONS and step.operation not in OPERATIONS:
        return False
    return step.op in _COLLECTIVES | REMOTE


def _are_ends(send: Communicate, receive: Communicate) -> bool:
    """Return whether what all ranks send is what all receive."""
    if (send.op, receive.op) != (Op.SEND, Op.RECV) or not receive.blocking:
        return False
    alike = (send.tag, send.pickled) == (receive.tag, receive.pickled)
    return alike and is_exchange(replace(send, source=receive.source))


def _draws(node: ast.AST) -> bool:
    """Return whether numbers are drawn, which are others each time."""
    return any(isinstance(one, ast.Attribute) and one.attr in _DRAWS for one in ast.walk(node))


def _keeps(step: Step) -> bool:
    """Return whether a function that is called writes to nothing but memory of its own."""
    inside = [one.step for one in walk((step,), into_calls=True)]
    made = {one.span for one in inside}
    views = (view for one in inside for view in written(one) or ())
    return all(view.buffer.allocation.span in made for view in views)


class _Flow:
    """Where in a loop something stands that was received."""

    def __init__(self, program: Program, function: SpmdFunction, parts: Parts) -> None:
        self.program, self.function, self.parts = program, function, parts
        self.lines, self.behind = program.context.lines, dict[ast.stmt, None]()
        self.names = names_around(program.context.source, parts.node.lineno)
        numpy = str(program.context.array_module)
        self.joins = {f"{numpy}.{name}" for name in ("array", "concatenate", "hstack", "vstack")}
        self.given = parts.given = {one.at.span: self._given(one) for one in parts.talks}
        steps = (one.step for one in walk(parts.loop.body))
        around = [
            one.span
            for one in steps
            if isinstance(one, Wait)
            or (isinstance(one, Communicate) and one.op in EPOCHS | {Op.BARRIER})
        ]
        self.body = [
            one
            for one in _statements(parts.node)
            if not isinstance(one, ast.For | ast.If)
            and not any(span_of(one, self.lines).contains(span) for span in around)
        ]

    def _given(self, talk: Talk) -> frozenset[str]:
        """Return the names that say what is sent, and to whom."""
        step, text = talk.at, self.program.context.text
        if isinstance(step, Call):
            return words(text(step.span))
        names = [n for n in _GIVEN if talk.step.op is not Op.GET or n != "origin"]
        names += ["buf"] * (talk.step.op is Op.BCAST)
        return words(" ".join(text(step.places[n]) for n in names if n in step.places))

    def is_stored(self, name: str) -> bool:
        """Return whether other results each time are stored in what nothing else is."""
        return self._varies() and not self._is_another() and self._is_new(name)

    def divide(self) -> None:
        """Fill the parts of the loop.

        Raises
        ------
        _Waits
        """
        node, held = self.parts.node, frozenset[str]()
        if not self.given or not self._varies() or self._is_another():
            raise _Waits
        while (more := frozenset().union(*self._block(node.body, held, frozenset(), False))) > held:
            held = more
        for one in node.body:
            inner = [part for part in self.body if part in set(ast.walk(one))]
            late = [part in self.behind for part in inner]
            if inner:  # of barriers nothing is left
                (self.parts.behind if any(late) else self.parts.before).append(one)
            self.parts.mixed |= any(late) and not all(late)
        self._keeps_apart()

    def _varies(self) -> bool:
        """Return whether what is sent follows the loop: a repetition of the same measures it.

        Of what only changes from step to step numbers are kept, and what is kept as it comes, not
        all that is gathered.
        """
        node, body = self.parts.node, self.body
        stored = bound_names(one for one in body if isinstance(one, ast.Assign | ast.AugAssign))
        targets = bound_names(one.target for one in every(ast.For, node))
        found, changed, kept = {*targets}, {*carried(node)}, {*carried(node, stored)}
        kept |= bound_names(filter(_draws, body))
        for one in (*body, *body):
            for follow in (found, changed, kept):
                follow |= bound_names([one]) if loaded_names([one]) & follow else set()
        for talk in self.parts.talks:
            if talk.step.op is Op.RECV:
                continue
            names, sent = self.given[talk.at.span], talk.step.send
            number = talk.step.op in REDUCTIONS and sent is not None and sent.count == num(1)
            if number or self._is_kept(talk.step.result or ""):
                if not names & {*found, *changed, *kept}:
                    return False
            elif names & changed or not names & found:
                return False
        return True

    def _is_kept(self, name: str) -> bool:
        """Return whether all that a name gets in the loop is put in a list, or the parts of it."""
        for node in self.body:
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[given])):
                    if isinstance(given, ast.Call) and ast.unparse(given.func) in self.joins:
                        (given, *_) = (*given.args, given)
                    if isinstance(given, ast.Name) and given.id == name:
                        return True
        return False

    def _is_another(self) -> bool:
        """Return whether another partner, root or communicator may be meant each time."""
        bound = {*assigned_names(self.parts.node)}
        for step in (talk.step for talk in self.parts.talks):
            # of a reduction zeros may stand for what other roots have
            names = _PARTNERS[step.op in (Op.BCAST, Op.GATHER) :]
            # what is added up, or only read, may go to each rank by itself, if there are more
            target = words(argument(step, "target_rank", self.program) or "")
            many = step.op in APART and not target & self.parts.targets
            if many and not self._is_for_each_rank(step):
                names = ()
            text = " ".join(argument(step, name, self.program) or "" for name in names)
            if words(f"{text} {step.receiver}") & bound:
                return True
        return False

    def _is_for_each_rank(self, step: Communicate) -> bool:
        """Return whether the loop goes through the ranks of a communicator."""
        trips, size = self.parts.loop.trips, step.communicator.size
        return trips is None or not free_symbols(size).isdisjoint(free_symbols(trips))

    def _talks_in(self, node: ast.stmt | ast.expr) -> list[Span]:
        place = span_of(node, self.lines)
        return [span for span in self.given if place.contains(span)]

    def _block(
        self, nodes: Iterable[ast.stmt], old: frozenset[str], now: frozenset[str], decided: bool
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names of what came in an earlier iteration, and in this one.

        What came `decided` whether the statements run.
        """
        for node in nodes:
            if node in self.body:
                old, now = self._simple(node, old, now, decided)
            if not isinstance(node, ast.For | ast.If):
                continue
            header = node.iter if isinstance(node, ast.For) else node.test
            asks = decided or bool(loaded_names([header]) & (old | now))
            if self._talks_in(header) or (asks and self._talks_in(node)):
                raise _Waits
            for _ in range(2):
                old, now = self._block((*node.body, *node.orelse), old, now, asks)
        return old, now

    def _simple(
        self, node: ast.stmt, old: frozenset[str], now: frozenset[str], decided: bool
    ) -> tuple[frozenset[str], frozenset[str]]:
        talks = self._talks_in(node)
        if any(self.given[span] & old - self._by_index(old) for span in talks):
            raise _Waits
        ends = [one.at.span for one in self.parts.talks if one.step.op is Op.SEND]
        if any(self.given[span] & now - self._by_index(now) for span in talks if span in ends):
            raise _Waits  # messages are passed on from rank to rank
        targets = node.targets if isinstance(node, ast.Assign) else []
        again = bound_names(targets) if all(map(_is_whole, targets)) else frozenset[str]()
        uses = loaded_names([getattr(node, "value", node) if again else node])
        came = uses & old - self._by_index(old)
        if not (talks or decided or came or uses & now or self._reads_received(node)):
            return old - again, now - again
        self.behind[node] = None
        for call in every(ast.Call, node):
            sends = any(span.contains(span_of(call, self.lines)) for span in talks)
            grows = getattr(call.func, "attr", "") in ("append", "extend")
            pure = grows or (self.names.free(call) and self.names.known(call) is None)
            if not sends and not pure:
                raise _Waits  # what is printed, written or drawn comes in its order
        changed = self._changed(node)
        return (old | changed if came else old - again), now | changed

    def _reads_received(self, node: ast.stmt) -> bool:
        """Return whether a statement reads memory behind the call that receives into it."""
        place = span_of(node, self.lines)
        got = [
            view
            for talk in self.parts.talks
            if talk.at is talk.step and talk.step.span < place
            for view in (reads_of if talk.step.op is Op.BCAST else written)(talk.step) or ()
        ]
        steps = (one.step for one in walk(self.parts.loop.body) if place.contains(one.step.span))
        return any(may_share(one, view) for step in steps for one in reads_of(step) for view in got)

    def _changed(self, node: ast.stmt) -> frozenset[str]:
        """Return what a statement binds or changes; of a call alone what it receives into."""
        match node:
            case ast.Expr(value=ast.Call() as call) if span_of(call, self.lines) in self.given:
                talk = next(t for t in self.parts.talks if t.at.span == span_of(call, self.lines))
                got = talk.step.send if talk.step.op is Op.BCAST else talk.step.receive
                if got is None or talk.step.pickled:
                    return frozenset()
                return words(got.text.partition("[")[0])
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=grown, attr="append" | "extend"))
            ):
                return words(ast.unparse(grown))
        return bound_names([node])

    def _by_index(self, names: Iterable[str]) -> frozenset[str]:
        """Return arrays and dictionaries of which each iteration uses elements of its own.

        The loop's index stands at the same place of each subscript.
        """
        parts, found = [p for node in self.parts.node.body for p in ast.walk(node)], set[str]()
        for name in names:
            uses = [p for p in parts if isinstance(p, ast.Name) and p.id == name]
            own = [p for p in parts if isinstance(p, ast.Subscript)]
            own = [p for p in own if ast.unparse(p.value) == name]
            at = [
                set(enumerate(map(ast.unparse, getattr(p.slice, "elts", [p.slice])))) for p in own
            ]
            common = set.intersection(*at) if at else set()
            if len(own) == len(uses) and any(text in self.parts.targets for _, text in common):
                found.add(name)
        return frozenset(found)

    def _keeps_apart(self) -> None:
        """See to it that what comes before the calls has nothing to do with what is behind them."""
        used, got, seen = set[str](), set[str](), self._memory()
        own = words(" ".join(talk.step.receiver for talk in self.parts.talks))
        for node in self.behind:
            given = [self.given[span] for span in self._talks_in(node)]
            used |= loaded_names([node]) - own.union(*given)
            changed = self._changed(node)
            got |= changed if given and isinstance(node, ast.Expr) else set()
            # views tell which arrays share memory, and nothing tells it of lists and what has them
            targets = getattr(node, "targets", None) or [getattr(node, "target", node)]
            plain = all(isinstance(one, ast.Name | ast.Tuple) for one in targets)
            elsewhere = span_of(node, self.lines) in seen
            unsure = changed - self._by_index(changed)
            if not (plain or elsewhere or all(map(self._is_new, unsure))):
                raise _Waits
            later = [n for span, n in self.given.items() if span > span_of(node, self.lines)]
            self.parts.mixed |= (plain or not elsewhere) and any(n & changed for n in later)
        if bound_names(one for one in self.body if one not in self.behind) & used - got:
            raise _Waits

    def _memory(self) -> set[Span]:
        """See to the same of the memory of arrays; return the statements that write to some."""
        index, seen, taken = self.parts.loop.variable, set[Span](), list[View]()
        sides: tuple[list[View], ...] = ([], [], [], [])
        before, behind, made, stored = sides
        talks = self.parts.talks
        places = {span_of(node, self.lines): node in self.behind for node in self.body}
        for step in (visit.step for visit in walk(self.parts.loop.body)):
            place = next((one for one in places if one.contains(step.span)), None)
            if place is None or isinstance(step, Loop | Call):
                continue
            sends = any(one.at.span.contains(step.span) for one in self.parts.talks)
            reads, writes = reads_of(step), written(step) or ()
            if isinstance(step, Communicate) and sends:
                own = step.op is Op.BCAST and not step.pickled
                reads, writes = ((), reads) if own else (reads, writes)
                taken += writes
            elif getattr(step, "allocates", False):
                writes = ()
            # in one iteration, too, one call may send what another one received
            met = [(a, b) for a in reads for b in stored if sends and may_share(a, b)]
            mixed = any(not disjoint(a, b) for a, b in met)
            if mixed and any(t.step.op is Op.SEND and t.at.span.contains(step.span) for t in talks):
                raise _Waits  # it is passed on from rank to rank
            self.parts.mixed |= mixed
            (behind if places[place] and not sends else before).extend(reads)
            (stored if places[place] else made).extend(writes)
            seen |= {place} if writes else set()

        def is_own(one: View, other: View) -> bool:
            pairs = zip(one.region or (), other.region or (), strict=False)
            return bool(index) and (Point(sym(index)), Point(sym(index))) in pairs

        made = [one for one in made if not any(may_share(one, other) for other in taken)]
        for views, others in ((before, stored), (made, behind)):
            if any(may_share(a, b) and not is_own(a, b) for a in views for b in others):
                raise _Waits
        return seen

    def _is_new(self, name: str) -> bool:
        """Return whether a name is that of a list or an array which nothing else may be."""
        place = span_of(self.parts.node, self.lines)
        ahead = [p for p in occurrences(name, self.function, self.program) if p < place]
        pairs = (
            pair
            for one in every(ast.Assign, tree_of(self.program.context.source))
            for pair in zip(each_of(one.targets[0]), each_of(one.value), strict=False)
        )
        made = (value for target, value in pairs if span_of(target, self.lines) in ahead)
        kinds = ast.List | ast.Dict | ast.Call | ast.ListComp
        return len(ahead) == 1 and isinstance(next(made, None), kinds)


def _is_whole(target: ast.expr) -> bool:
    """Return whether an assignment leaves nothing of what a target was."""
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Name) and ast.unparse(target.slice) in (":", "...")
    return all(isinstance(one, ast.Name) for one in each_of(target))
