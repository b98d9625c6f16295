"""The writer of collectives: upper-case calls in the place of messages and of pickled objects.

A collective takes one rank's part, or every rank's; where the shape of a part is told first, parts
may have different ones. What comes is a row for each rank, one array of all parts, one array that
parts are combined to, or a list.
"""

from __future__ import annotations

import ast
import re

from advisor.ir.spmd.memory import Payload, PayloadKind, View, elements, extent_of
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import (
    Allocate,
    Branch,
    Communicate,
    Compute,
    Copy,
    Interpret,
    Loop,
    Op,
    Step,
    walk,
)
from advisor.ir.values import Point, Subscript
from costdb.expr import Expr, free_symbols, num, sym
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    by_rank,
    is_stretch,
    may_be_written,
    may_share,
    new_array,
    payload_of,
    plain_array,
    same_memory,
    symbols_of,
)
from transforms.kit.names import BASE, argument, bound_in, is_name, is_uniform, keywords, words
from transforms.kit.programs import collective
from transforms.kit.rewrite import fresh_name, statement_at
from transforms.messages.patterns import End, Kind, Pattern, arms

ROOTED = frozenset({Op.REDUCE, Op.GATHER})
LISTS = frozenset({Op.SCATTER, Op.ALLTOALL})
"""Collectives that take a list with an object for each rank."""
_FROM_EACH = frozenset({Op.GATHER, Op.ALLGATHER, Op.ALLTOALL})
_ONE_WAY = frozenset({Op.BCAST, Op.SEND})
_INTERPRETED = 8
"""Operations of the interpreter for each rank's shape and array."""


# --- as steps -----------------------------------------------------------------------------------


def carried(
    step: Communicate, op: Op, dtype: str | None, shape: tuple[Expr, ...], *, varying: bool = False
) -> Communicate:
    """Return the upper-case call that carries parts of one type and shape."""
    size, name = step.communicator.size, step.result or "received"
    one = payload_of(new_array(name, dtype, shape, step.span), step.span)
    every = payload_of(new_array(name, dtype, (size, *shape), step.span), step.span)
    return replace(
        step,
        op=op,
        method=f"{op.value.capitalize()}{'v' * varying}",
        pickled=False,
        varying=varying,
        send=every if op in LISTS else one,
        receive=every if op in _FROM_EACH else None if op in _ONE_WAY else one,
        root=step.root if op in (*ROOTED, Op.BCAST, Op.SCATTER) else None,
    )


def as_buffers(
    step: Communicate, view: View, op: Op | None = None, operation: str | None = None
) -> tuple[Step, ...]:
    """Return the steps of a call that takes memory as it is, a copy of what is strided first."""
    call = carried(step, op or step.op, view.dtype, view.shape or ())
    call = replace(call, operation=operation or step.operation)
    staging: tuple[Step, ...] = ()
    if is_stretch(view):
        call = replace(call, send=step.send)
    elif call.send is not None and call.send.view is not None:
        staging = (Copy(call.send.view, view, step.span, allocates=True),)
    memory = call.receive or call.send
    assert memory is not None and memory.view is not None
    return *staging, Allocate(memory.view.buffer, step.span, filled=False), call


def told_first(step: Communicate, op: Op, part: Payload) -> tuple[Step, ...]:
    """Return the steps of a call that is told the shapes of its parts before it."""
    size, span = step.communicator.size, step.span
    call = carried(step, op, part.dtype, (elements(part),), varying=op is not Op.BCAST)
    shapes = shapes_of(call)
    packed: tuple[Step, ...] = ()
    if op in LISTS and call.send is not None and call.send.view is not None:
        other = new_array("others", part.dtype, call.send.view.shape or (), span)
        packed = (Copy(call.send.view, other, span, allocates=True),)
    ranks = num(1) if op in (Op.BCAST, Op.SCATTER) else size
    work = Interpret(ranks * _INTERPRETED, span)
    return shapes, work, *packed, call


def shapes_of(call: Communicate) -> Communicate:
    """Return the call that tells the shapes of what another one carries."""
    span, size = call.span, call.communicator.size
    shape = Payload(PayloadKind.SCALAR, "shape", span, dtype="int", count=num(1))
    if call.op in LISTS:
        shape = Payload(PayloadKind.OBJECT, "shapes", span, parts=(shape,), length=size)
    return replace(call, pickled=True, varying=False, send=shape, method=call.op.value)


# --- as source ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes calls on the communicator, and to the root, of a step that they replace."""

    program: Program
    step: Communicate
    op: Op
    dtype: str | None = None

    @property
    def numpy(self) -> str:
        """What NumPy is imported as."""
        return self.program.context.array_module or "numpy"

    @property
    def root(self) -> str:
        """The rank that all parts go to, or come from."""
        return argument(self.step, "root", self.program) or "0"

    @property
    def is_root(self) -> str:
        """The condition that the own rank is that."""
        return f"{self.step.receiver}.Get_rank() == {self.root}"

    def name(self, wanted: str) -> str:
        """Return a name that the file does not have."""
        return fresh_name(wanted, self.program.context.identifiers)

    def call(self, method: str, *given: str) -> str:
        """Return a call, with the root where the collective has one."""
        rooted = self.op in (*ROOTED, Op.BCAST, Op.SCATTER)
        root = [f"root={self.root}"] if rooted else []
        return f"{self.step.receiver}.{method}({', '.join([*filter(None, given), *root])})"

    def made(self, name: str, memory: str) -> str:
        """Return the statement that makes memory where something is received."""
        return f"{name} = {memory}{f' if {self.is_root} else None' * (self.op in ROOTED)}"

    def branch(self, root: list[str], others: list[str]) -> list[str]:
        """Return what the root does, and what all others do."""
        inner = self.program.context.indent
        return [
            f"if {self.is_root}:",
            *(inner + line for line in root),
            "else:",
            *(inner + line for line in others),
        ]

    # --- parts of one shape

    def alike(self, view: View, target: str, form: str, ended: list[str]) -> list[str] | None:
        """Return a call whose parts all have the shape of the own one.

        Parameters
        ----------
        view : View
            The own part.
        target : str
            The name of what comes.
        form : str
            ``"same"`` where it has the shape of a part, ``"rows"`` where it has a row for each
            rank.
        ended : list of str
            What follows.
        """
        program, step = self.program, self.step
        text = argument(step, "sendobj", program) or argument(step, "obj", program)
        if text is None or program.context.array_module is None:
            return None
        ahead, sent, size = [], " ".join(text.split()), f"{step.receiver}.Get_size()"
        if not is_name(text) or not is_stretch(view):
            own, sent = sent, self.name("sent")
            ahead = [
                f"{sent} = {own if is_stretch(view) else f'{self.numpy}.ascontiguousarray({own})'}"
            ]
        # memory that is sent cannot be received into
        name = self.name(f"{sent}_received") if target == sent else target
        memory = {
            "same": f"empty_like({sent})",
            "rows": f"empty(({size}, *{sent}.shape), dtype={sent}.dtype)",
        }[form]
        given, method = [sent, name], self.op.value.capitalize()
        if self.op is Op.SENDRECV:
            names = ("dest", "sendtag", "source", "recvtag")
            given = [sent, *keywords(step, names, program), f"recvbuf={name}"]
        elif form == "same":
            given += keywords(step, ("op",), program) or [f"op={program.mpi_module}.SUM"] * (
                step.operation is None
            )
        rest = [f"{target} = {name}"] if name != target else []
        made = self.made(name, f"{self.numpy}.{memory}")
        return [*ahead, made, self.call(method, *given), *rest, *ended]

    # --- parts whose shapes are told first

    def told(self, own: str, name: str) -> tuple[list[str], list[str]]:
        """Return what the root does, or every rank, and what all others do.

        Parameters
        ----------
        own : str
            The own part, or the list of all; its text is used more than once.
        name : str
            Of what comes.
        """
        np, op, call = self.numpy, self.op, self.call
        shapes, sizes, flat = (self.name(n) for n in ("shapes", "sizes", "joined"))
        upper = f"{op.value.capitalize()}{'v' * (op is not Op.BCAST)}"
        dtype, mine = f"dtype={self.dtype!r}", f"{np}.ascontiguousarray({own})"
        packed = f"({np}.concatenate([one.ravel() for one in {own}]), [one.size for one in {own}])"
        of_each = f"[one.shape for one in {own}]"
        memory = [
            f"{sizes} = [int({np}.prod(one)) for one in {shapes}]",
            f"{flat} = {np}.empty(sum({sizes}), {dtype})",
        ]
        parts = f"zip({np}.split({flat}, {np}.cumsum({sizes})[:-1]), {shapes})"
        taken = f"{name} = [one.reshape(shape) for one, shape in {parts}]"
        into = f"({flat}, {sizes})"
        match op:
            case Op.BCAST:
                kept = mine if name == own else f"{np}.array({own}, order='C')"
                ended, empty = call("Bcast", name), f"{np}.empty({call('bcast', 'None')}, {dtype})"
                return (
                    [call("bcast", f"{own}.shape"), f"{name} = {kept}", ended],
                    [f"{name} = {empty}", ended],
                )
            case Op.SCATTER:
                received = f"{name} = {np}.empty({{}}, {dtype})"
                return (
                    [received.format(call("scatter", of_each)), call(upper, packed, name)],
                    [received.format(call("scatter", "None")), call(upper, "None", name)],
                )
            case Op.GATHER:
                others = [call("gather", f"{own}.shape"), call(upper, mine, "None")]
                root = [f"{shapes} = {others[0]}", *memory, call(upper, mine, into), taken]
                return root, [f"{name} = None", *others]
        sent = (of_each, packed) if op is Op.ALLTOALL else (f"{own}.shape", mine)
        first = f"{shapes} = {call(op.value, sent[0])}"
        return [first, *memory, call(upper, sent[1], into), taken], []


# --- collectives ----------------------------------------------------------------------------------
# Which collective a pattern of messages stands for: by what is sent, and where it comes to.


@dataclass(frozen=True, slots=True)
class Instead:
    """The collective that a pattern stands for.

    Attributes
    ----------
    call : Communicate
    texts : tuple of str
        Its arguments, at the root and elsewhere, or everywhere; none where they cannot be written.
    handled : Step or None
        What a root does with each piece, which the collective does as well.
    """

    call: Communicate
    texts: tuple[str, ...] = ()
    handled: Compute | Copy | None = None


def _call(pattern: Pattern, op: Op, send: Payload | None, receive: Payload | None) -> Communicate:
    call = replace(collective(pattern.send.step, op, send, receive), blocking=True, places={})
    operation = "SUM" if op is Op.REDUCE else None
    rooted = pattern.kind is not Kind.EACH
    return replace(call, mode="", root=pattern.root if rooted else None, operation=operation)


def for_each(program: Program, pattern: Pattern) -> Instead | None:
    """Return what exchanges of each rank with each come to.

    ======= ======== ===========
    sent    received collective
    ======= ======== ===========
    a piece a piece  `Alltoall`
    same    a piece  `Allgather`
    ======= ======== ===========
    """
    sent, got = pattern.send.step.send, pattern.take.step.receive
    given, taken = plain_array(sent), plain_array(got)
    if sent is None or got is None or given is None or taken is None:
        return None
    pieces, into = _pieces(pattern.send, given), _pieces(pattern.take, taken)
    if into is None or sent.dtype != got.dtype or sent.count != got.count:
        return None
    if may_share(given, taken):
        return None
    if pattern.send.spares and not _own_is_copied(pattern, given, taken):
        return None
    text = _whole_text(pattern.take, got, into)
    received = replace(got, view=into, count=into.count, text=text or got.text)
    if pieces is not None:
        own = _whole_text(pattern.send, sent, pieces)
        whole = replace(sent, view=pieces, count=pieces.count, text=own or sent.text)
        call = _call(pattern, Op.ALLTOALL, whole, received)
    elif not _varies(program, pattern.send, sent):
        own, call = sent.text, _call(pattern, Op.ALLGATHER, sent, received)
    else:
        return None
    written = own and text and not _of_own_rank(pattern)
    return Instead(call, (f"{own}, {text}",) if written else ())


def _own_is_copied(pattern: Pattern, sent: View, taken: View) -> bool:
    """Return whether a rank copies its own piece, for a loop that leaves it out."""
    block, first = pattern.visit.block, pattern.visit.position
    rank, last = pattern.communicator.rank, first + len(pattern.steps)
    regions: list[tuple[Subscript, ...] | None]
    own = [
        replace(view, region=(Point(rank), *(view.region or ())[1:]))
        if _pieces(end, view) is not None
        else view
        for end, view in ((pattern.send, sent), (pattern.take, taken))
    ]
    index = sym(pattern.send.loop.variable if pattern.send.loop is not None else "")
    for copy in _of_own_rank(pattern):
        # the loop's index is that rank
        regions = [
            tuple(Point(rank) if part == Point(index) else part for part in view.region or ())
            for view in (copy.source, copy.target)
        ]
        same = same_memory(copy.source, own[0]) and same_memory(copy.target, own[1])
        return same and regions == [view.region for view in own]
    for steps in (block[last:], block[:first][::-1]):
        for step in steps:
            if isinstance(step, Copy) and not step.allocates and same_memory(step.target, own[1]):
                regions = [step.source.region, step.target.region]
                return same_memory(step.source, own[0]) and regions == [v.region for v in own]
            if any(may_be_written(step, view) for view in own) or isinstance(step, Loop | Branch):
                break
    return False


def _of_own_rank(pattern: Pattern) -> list[Copy]:
    """Return the copies that stand where a loop over ranks leaves out the own one."""
    loops = [one for one in pattern.steps if isinstance(one, Loop)]
    guards = [one for loop in loops for one in loop.body if isinstance(one, Branch)]
    return [step for one in guards for step in arms(one) if isinstance(step, Copy)]


def at_root(program: Program, pattern: Pattern) -> Instead | None:
    """Return what messages between a root and all others come to.

    ========================================= =========
    root                                      collective
    ========================================= =========
    receives the piece that its rank tells    `Gather`
    receives pieces whose senders tell counts `Gatherv`
    receives a buffer, copied to such a piece `Gather`
    receives a buffer, added to another       `Reduce`
    sends the piece that the rank tells       `Scatter`
    sends the same to all                     `Bcast`
    ========================================= =========
    """
    if pattern.inner.step.pickled:
        return _of_objects(program, pattern)
    gathers = pattern.kind is Kind.FROM_ALL
    sent, got = pattern.send.step.send, pattern.take.step.receive
    given, taken = plain_array(sent), plain_array(got)
    if sent is None or got is None or given is None or taken is None or sent.dtype != got.dtype:
        return None
    if sent.count != got.count:
        return _uneven(program, pattern, got, sent) if gathers else None
    mpi, inner, view = f"{program.mpi_module}.IN_PLACE", pattern.inner, taken if gathers else given
    pieces, payload = _pieces(inner, view), got if gathers else sent
    handled: Compute | Copy | None = None
    if gathers and pieces is None:
        handled = _handled(inner)
        target = None if handled is None else handled.target
        if target is None or (target.count, target.dtype) != (sent.count, sent.dtype):
            handled = None
        if isinstance(handled, Compute) and handled.target is not None:
            total, more = replace(got, view=handled.target), f"op={program.mpi_module}.SUM"
            node = statement_at(handled.span, program.context)
            texts: tuple[str, ...] = ()
            if isinstance(node, ast.AugAssign) and is_stretch(handled.target):
                texts = (f"{mpi}, {ast.unparse(node.target)}, {more}", f"{sent.text}, None, {more}")
            return Instead(_call(pattern, Op.REDUCE, sent, total), texts, handled)
        if isinstance(handled, Copy):
            payload = replace(got, view=handled.target, text=handled.target.text)
            pieces = _pieces(inner, handled.target)
    if pieces is None:
        if gathers or inner.loop is None or inner.loop.variable in symbols_of(given):
            return None
        if _varies(program, inner, sent):
            return None
        return Instead(_call(pattern, Op.BCAST, sent, None), (sent.text, got.text))
    text = _whole_text(inner, payload, pieces)
    whole = replace(payload, view=pieces, count=pieces.count)
    if gathers:
        texts = (f"{mpi}, {text}", f"{sent.text}, None") if text else ()
        return Instead(_call(pattern, Op.GATHER, sent, whole), texts, handled)
    texts = (f"{text}, {mpi}", f"None, {got.text}") if text else ()
    return Instead(_call(pattern, Op.SCATTER, whole, got), texts)


def _pieces(end: End, view: View) -> View | None:
    """Return the pieces of all ranks together, if an end walks through them in their order."""
    if end.loop is None or end.partner is None or not view.region:
        return None
    first, variable, partner = view.region[0], end.loop.variable, end.partner
    if isinstance(first, Point) and first.at == partner:
        view, partner = (
            replace(view, region=(Point(sym(variable)), *view.region[1:])),
            sym(variable),
        )
    size = end.step.communicator.size
    if free_symbols(partner) != {variable}:
        return None
    return by_rank(view, variable, partner, size)


def _whole_text(end: End, payload: Payload, whole: View) -> str | None:
    """Return all pieces, as Python: what they are of, or its beginning."""
    base, extents = BASE.fullmatch(payload.text.strip()), whole.buffer.extents
    if base is None or "." in base[1] or whole.region is None or extents is None:
        return None
    stop, size = extent_of(whole.region[0]), end.step.communicator.size
    if stop == extents[0]:
        return base[1]
    return f"{base[1]}[:{end.step.receiver}.Get_size()]" if stop == size else None


def _handled(end: End) -> Compute | Copy | None:
    """Return how a root adds what comes to an array, or copies it to its place."""
    got, steps = end.step.receive, () if end.loop is None else end.loop.body
    if got is None or got.view is None:
        return None
    # where it is received may be made anew for every rank
    body = [one for one in steps if one != Allocate(got.view.buffer, one.span, filled=False)]
    if len(body) != 2 or body[0] != end.step:
        return None
    match body[1]:
        case Compute(operation="add", target=View() as total, reads=(_, _) as terms) as added:
            if all(any(same_memory(term, one) for term in terms) for one in (got.view, total)):
                return added
        case Copy(target=target, source=source, allocates=False) as copied:
            plain = source.is_whole and not (target.transposed or target.flat)
            return copied if plain and same_memory(source, got.view) else None
    return None


def _uneven(program: Program, pattern: Pattern, pieces: Payload, sent: Payload) -> Instead | None:
    """Return a gather of pieces of different lengths, where the sender tells its own."""
    assert sent.count is not None
    index = pattern.inner.text
    if not (is_name(index) and re.search(rf"\b{index}\b", pieces.text)):
        return None  # nothing shows that each piece has a place of its own
    own = free_symbols(pattern.communicator.rank)
    lengths = free_symbols(sent.count) - own
    if not own & free_symbols(sent.count) or not is_uniform(program, map(sym, lengths)):
        return None
    return Instead(replace(_call(pattern, Op.GATHER, sent, None), method="Gatherv", varying=True))


def _of_objects(program: Program, pattern: Pattern) -> Instead | None:
    """Return the lower-case collective that pickled messages of a known kind stand for.

    Whether it should take arrays as they are in memory is another question, and another rule's.
    """
    sent, gathers = pattern.send.step.send, pattern.kind is Kind.FROM_ALL
    if sent is None:
        return None
    if sent.kind is PayloadKind.OBJECT:
        # the same for all, where nothing else happens on the way
        loop = pattern.inner.loop
        node = None if loop is None else statement_at(loop.span, program.context)
        if gathers or loop is None or not isinstance(node, ast.For) or len(node.body) > 1:
            return None
        if not is_name(sent.text):
            return None  # made anew for each rank
        if words(sent.text) & bound_in(program, loop):
            return None
        return Instead(replace(_call(pattern, Op.BCAST, sent, None), method="bcast"))
    if sent.kind not in (PayloadKind.ARRAY, PayloadKind.SCALAR):
        return None
    if sent.count is None or (not gathers and sent.view is None):
        return None  # a number may be another one for each rank
    op = Op.GATHER
    if not gathers:
        op = Op.SCATTER if _varies(program, pattern.send, sent) else Op.BCAST
    call = replace(_call(pattern, op, sent, None), method=op.value)
    if op is Op.SCATTER:
        size, kind = pattern.communicator.size, PayloadKind.OBJECT
        call = replace(call, send=Payload(kind, sent.text, sent.span, parts=(sent,), length=size))
    return Instead(call)


def _varies(program: Program, end: End, sent: Payload) -> bool:
    """Return whether what is sent may be another thing for each rank.

    It is named by what the loop binds, or made or written in the loop.
    """
    named = end.loop is not None and words(sent.text) & bound_in(program, end.loop)
    return bool(named) or is_changed(end, sent)


def is_changed(end: End, sent: Payload | None) -> bool:
    """Return whether what is sent may be written to before its loop has ended."""
    if sent is None or sent.view is None or end.loop is None:
        return True
    inside = walk(end.loop.body, into_calls=True)
    return any(may_be_written(one.step, sent.view) for one in inside)
