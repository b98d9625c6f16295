"""The writer of collectives: upper-case calls in the place of messages and of pickled objects.

A collective takes one rank's part, or every rank's; where the shape of a part is told first, parts
may have different ones. What comes is a row for each rank, one array of all parts, one array that
parts are combined to, or a list.
"""

from __future__ import annotations

import ast

from advisor.ir.spmd.memory import Payload, PayloadKind, View, elements, extent_of
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import (
    Allocate,
    Communicate,
    Compute,
    Copy,
    Interpret,
    Op,
    Step,
    walk,
)
from advisor.ir.values import Point
from costdb.expr import Expr, free_symbols, num, sym
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    by_rank,
    is_stretch,
    may_be_written,
    new_array,
    payload_of,
    plain_array,
    same_memory,
    symbols_of,
)
from transforms.kit.names import BASE, argument, bound_in, is_name, keywords, words
from transforms.kit.programs import collective
from transforms.kit.rewrite import fresh_name, span_of, statement_at
from transforms.messages.patterns import End, Pattern

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
    added : Compute or None
        How a root adds up what comes, which the collective does as well.
    """

    call: Communicate
    texts: tuple[str, ...] = ()
    added: Compute | None = None


def _call(pattern: Pattern, op: Op, send: Payload | None, receive: Payload | None) -> Communicate:
    call = replace(collective(pattern.send.step, op, send, receive), blocking=True, places={})
    operation = "SUM" if op is Op.REDUCE else None
    return replace(call, mode="", root=pattern.root, operation=operation)


def at_root(program: Program, pattern: Pattern) -> Instead | None:
    """Return what messages between a root and all others come to.

    ====================================== =========
    root                                   collective
    ====================================== =========
    receives the piece that its rank tells `Gather`
    receives a buffer, added to another    `Reduce`
    sends the piece that the rank tells    `Scatter`
    sends the same to all                  `Bcast`
    ====================================== =========
    """
    if pattern.inner.step.pickled:
        return _of_objects(program, pattern)
    gathers = pattern.gathers
    sent, got = pattern.send.step.send, pattern.take.step.receive
    given, taken = plain_array(sent), plain_array(got)
    if sent is None or got is None or given is None or taken is None:
        return None
    if (sent.dtype, sent.count) != (got.dtype, got.count):
        return None
    mpi, inner, view = f"{program.mpi_module}.IN_PLACE", pattern.inner, taken if gathers else given
    pieces, payload = _pieces(inner, view), got if gathers else sent
    if pieces is None and gathers:
        added = _added(inner)
        target = None if added is None else added.target
        if target is None or (target.count, target.dtype) != (sent.count, sent.dtype):
            return None
        total = replace(got, view=target)
        return Instead(_call(pattern, Op.REDUCE, sent, total), added=added)
    if pieces is None:
        if inner.loop is None or inner.loop.variable in symbols_of(given):
            return None
        if _varies(program, inner, sent):
            return None
        return Instead(_call(pattern, Op.BCAST, sent, None), (sent.text, got.text))
    text = _whole_text(inner, payload, pieces)
    whole = replace(payload, view=pieces, count=pieces.count)
    if gathers:
        texts = (f"{mpi}, {text}", f"{sent.text}, None") if text else ()
        return Instead(_call(pattern, Op.GATHER, sent, whole), texts)
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


def _added(end: End) -> Compute | None:
    """Return how a root adds what comes to an array."""
    got, steps = end.step.receive, () if end.loop is None else end.loop.body
    if got is None or got.view is None or len(steps) != 2 or steps[0] != end.step:
        return None
    match steps[1]:
        case Compute(operation="add", target=View() as total, reads=(_, _) as terms) as added:
            if all(any(same_memory(term, one) for term in terms) for one in (got.view, total)):
                return added
    return None


def _of_objects(program: Program, pattern: Pattern) -> Instead | None:
    """Return the lower-case collective that pickled messages of a known kind stand for.

    Whether it should take arrays as they are in memory is another question, and another rule's.
    """
    sent, gathers = pattern.send.step.send, pattern.gathers
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
    if gathers:
        op = Op.REDUCE if _adds(program, pattern.inner) else Op.GATHER
    else:
        op = Op.SCATTER if _varies(program, pattern.send, sent) else Op.BCAST
    call = replace(_call(pattern, op, sent, None), method=op.value)
    if op is Op.SCATTER:
        size, kind = pattern.communicator.size, PayloadKind.OBJECT
        call = replace(call, send=Payload(kind, sent.text, sent.span, parts=(sent,), length=size))
    return Instead(call)


def _adds(program: Program, end: End) -> bool:
    """Return whether a root adds the objects that come to a total, one by one."""
    match None if end.loop is None else statement_at(end.loop.span, program.context):
        case ast.For(body=[ast.AugAssign(op=ast.Add(), value=value)], orelse=[]):
            return span_of(value, program.context.lines) == end.step.span
    return False


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
