"""The writer of collectives: upper-case calls in the place of messages and of pickled objects.

A collective takes one rank's part, or every rank's; where the shape of a part is told first, parts
may have different ones. What comes is a row for each rank, one array of all parts, one array that
parts are combined to, or a list.
"""

from __future__ import annotations

from advisor.ir.spmd.memory import Payload, PayloadKind, View, elements
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import (
    Allocate,
    Communicate,
    Copy,
    Interpret,
    Op,
    Step,
)
from costdb.expr import Expr, num
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    is_stretch,
    new_array,
    payload_of,
)
from transforms.kit.names import argument, is_name, keywords
from transforms.kit.rewrite import fresh_name

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
        # who has a part has its type, whatever others were seen to have
        known = f"{own}.dtype" if op in (Op.GATHER, Op.ALLGATHER) else repr(self.dtype)
        dtype, mine = f"dtype={known}", f"{np}.ascontiguousarray({own})"
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
