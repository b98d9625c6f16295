"""# ADV608 separate-calls

**What it does.** Finds calls of one kind that follow one another and do not wait for each other,
and makes one of them: numbers that are reduced over all ranks, sent by a root to all, or exchanged.
Reductions to a root are shown, and those with work, tests or calls of functions between them, of
arrays or of several types, where no later one takes what an earlier one brings; and calls of one
function that sends, for several fields.

**Why it costs.** A call that carries little is all latency: a message, or a tree of messages, each
with its start-up time. What several carry together takes as long as one. The lower-case form
serialises each number besides, and combines numbers in Python.

**Example**

```python
error = comm.allreduce(error_here, op=MPI.SUM)
norm = comm.allreduce(norm_here, op=MPI.SUM)
n = comm.bcast(n, root=0)
dt = comm.bcast(dt, root=0)
```

**Use instead**

```python
reduced = np.array([error_here, norm_here], dtype=np.float64)
comm.Allreduce(MPI.IN_PLACE, reduced, op=MPI.SUM)
error, norm = reduced
n, dt = comm.bcast((n, dt), root=0)
```

**When it stays quiet.** Other operations, partners, roots or communicators; a later call that takes
what an earlier one brings, in however many steps; loops between them; calls that only some ranks
make there; reductions outside loops.

**Fix safety.** What only moves is the same, bit for bit. Reductions are unsafe: sums may be
collected in another order, so that they agree to rounding.

**Models used.** Pickle, lines (messages, collectives, array statements).

**References.** Merging of reductions in conjugate gradient methods: any text on parallel solvers.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from itertools import takewhile

from advisor.finding import MODULE
from advisor.ir.changes import Names, root_of
from advisor.ir.functions import names_around
from advisor.ir.spmd.memory import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Call, Communicate, Copy, Op, Visit, walk
from advisor.numpy_table import dtype_of
from advisor.source import Span, every
from costdb.expr import num
from costdb.records import dataclass, replace
from transforms.kit.memory import new_array, payload_of, written
from transforms.kit.names import (
    argument,
    bound_names,
    is_name,
    is_simple,
    keywords,
    loaded_names,
    words,
)
from transforms.kit.programs import ProgramRule, collective, offer, shortened
from transforms.kit.ranks import is_exchange, named_rank, on_all_ranks, same_communicator
from transforms.kit.rewrite import fresh_name, in_place_of, span_of, stretch, suite_at, tree_of
from transforms.messages.patterns import is_clear

# --- reductions apart -----------------------------------------------------------------------------
# Reductions with work, tests and other calls between them, which could be one all the same.
#
# What an earlier one brings is followed from name to name through the statements behind it. A later
# one that takes nothing of that can have what it takes computed before both.


_REDUCTIONS = frozenset({Op.REDUCE, Op.ALLREDUCE})
_ENDS = frozenset({Op.SEND, Op.RECV, Op.SENDRECV, Op.ALLTOALL, Op.ALLGATHER, Op.GATHER, Op.BCAST})
_Talking = tuple[Visit, list[Visit]]


@dataclass(frozen=True, slots=True)
class _Carrying:
    """A statement that reduces something, or calls a function once that reduces or sends."""

    node: ast.stmt
    visit: Visit
    steps: tuple[Communicate, ...]
    text: str
    names: Names

    @property
    def reduces(self) -> bool:
        """Whether it makes one reduction, and nothing else."""
        (step, *more) = self.steps
        return not more and step.op in _REDUCTIONS and step.operation is not None

    @property
    def given(self) -> frozenset[str]:
        """Return the names of what it takes."""
        called = self.visit.step.function if isinstance(self.visit.step, Call) else ""
        return words(self.text) - {called}

    @property
    def results(self) -> frozenset[str]:
        """Return the names of what it brings, or changes."""
        got = self.steps[0].receive if isinstance(self.node, ast.Expr) else None
        if got is not None and not isinstance(self.visit.step, Call):
            return words(got.text.partition("[")[0])
        # what is drawn before messages is drawn in the same order
        changes = self.names.changes([self.node])
        fields = {root_of(path) for path in changes.bound | changes.wholly if "." in path}
        steps = (one.step for one in walk((self.visit.step,), into_calls=True))
        views = (view for step in steps for view in written(step) or ())
        fields |= {root_of(view.buffer.name) for view in views}
        return bound_names([self.node] * (not isinstance(self.node, ast.Expr))) | fields


def reductions_apart(
    program: Program, function: SpmdFunction, told: Collection[Span]
) -> Iterator[ProgramProposal]:
    """Yield one reduction for several, unless it is `told` that they are one."""
    talking = _talking(function)
    if len(talking) < 2:
        return
    tree, lines = tree_of(program.context.source), program.context.lines
    nodes = every(ast.stmt, tree)
    within = [one for one in nodes if function.whole.contains(span_of(one, lines))]
    suites = [list(getattr(one, part, ())) for one in within for part in ("body", "orelse")]
    if function.name == MODULE:
        suites.append(tree.body)
    for suite in suites:
        taken: set[ast.stmt] = set()
        for at, node in enumerate(suite):
            first = _carrying(program, talking, node)
            if first is None or node in taken:
                continue
            group = [first, *_independent(program, talking, first, suite[at + 1 :])]
            taken |= {one.node for one in group}
            apart = [one for one in group if one.steps[0].span not in told]
            apart += [one for one in group if one not in apart][:1]
            if len(apart) > 1 and on_all_ranks(function.visits(), first.visit):
                yield _at_once(function, apart)


def _talking(function: SpmdFunction) -> list[_Talking]:
    """Return the calls of a function that communicate, or whose functions do, with what they do."""
    found: list[_Talking] = []
    for visit in function.visits():
        if isinstance(visit.step, Call | Communicate):
            inside = list(walk((visit.step,), into_calls=True))
            if any(isinstance(one.step, Communicate) for one in inside):
                found.append((visit, inside))
    return found


def _carrying(program: Program, talking: list[_Talking], node: ast.stmt) -> _Carrying | None:
    """Return the reduction that a statement makes, if that is all that it sends."""
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
        return None
    place = span_of(node, program.context.lines)
    talks = [
        (visit, [one for one in inside if isinstance(one.step, Communicate)])
        for visit, inside in talking
        if place.contains(visit.step.span)
    ]
    if len(talks) != 1:
        return None
    ((visit, found),) = talks
    steps = tuple(one.step for one in found if isinstance(one.step, Communicate))
    text = program.context.text(visit.step.span) if isinstance(visit.step, Call) else ""
    shown = text or (steps[0].method if steps[0].send is None else steps[0].send.text)
    made = _Carrying(node, visit, steps, shown, names_around(program.context.source, node.lineno))
    plain = all(x.blocking and x.op in _ENDS | _REDUCTIONS for x in steps)
    plain &= not any(one.loops for one in found)
    # a sum of lists is one after the other
    listed = (x.op in _REDUCTIONS and x.send and x.send.kind is PayloadKind.OBJECT for x in steps)
    plain &= not any(listed)
    alone = made.reduces and not found[0].branches
    return made if plain and (alone or (text and not made.reduces)) else None


def _independent(
    program: Program, talking: list[_Talking], first: _Carrying, nodes: list[ast.stmt]
) -> Iterator[_Carrying]:
    """Yield later reductions of the same kind that take nothing of what the first ones bring."""
    brought = first.results
    for node in takewhile(lambda one: not isinstance(one, ast.For | ast.While), nodes):
        other = _carrying(program, talking, node)
        # what else the statement does with a result comes behind it
        if other and _goes_with(first, other) and not other.given & brought:
            yield other
            brought |= other.results
        elif loaded_names([node]) & brought:
            brought |= bound_names([node])


def _goes_with(first: _Carrying, second: _Carrying) -> bool:
    calls = (one.visit.step for one in (first, second))
    named = {one.function for one in calls if isinstance(one, Call)}
    if not (first.reduces and second.reduces) and (len(named) != 1 or first.text == second.text):
        return False
    pairs = list(zip(first.steps, second.steps, strict=False))
    return len(first.steps) == len(second.steps) and all(
        (one.op, one.operation, one.root) == (other.op, other.operation, other.root)
        and same_communicator(one.communicator, other.communicator)
        and not (one.in_place or other.in_place)
        and first.visit.loops == second.visit.loops
        for one, other in pairs
    )


def _at_once(function: SpmdFunction, group: list[_Carrying]) -> ProgramProposal:
    first, calls = group[0], list[Communicate | Copy]()
    for number, step in enumerate(first.steps):
        alike = [one.steps[number] for one in group]
        memory = _together([one.send or one.receive for one in alike], step.span)
        if first.reduces:
            packed = replace(collective(step, step.op, memory, memory), pickled=False)
            calls += [*_copied(memory), packed, *_copied(memory)]
        else:
            calls.append(step if step.send is None else replace(step, send=memory))
    verb, what = ("reduce", "reduces") if first.reduces else ("send", "sends")
    texts = [
        f"what `{shortened(one.text)}` {what}"
        if isinstance(one.visit.step, Call)
        else f"`{shortened(one.text)}`"
        for one in group
    ]
    return offer(
        function,
        first.visit,
        first.visit.step.span,
        f"{verb} {', '.join(texts[:-1])} and {texts[-1]} at once, in one array",
        "a call that carries little is all start-up time, and several take as long as one",
        tuple(step for one in group for step in one.steps),
        tuple(calls),
        "the later one takes nothing of what the earlier one brings, so that what it takes can be"
        " computed before both; sums may be collected in another order, and agree to rounding",
        "they carry numbers of several kinds, or there is work between them",
    )


def _together(payloads: list[Payload | None], span: Span) -> Payload:
    """Return what carries as much as several calls; one number where nothing is known of one."""
    known = [one for one in payloads if one is not None]
    if known and all(one.kind is PayloadKind.OBJECT for one in known):
        held = zip(*(one.parts for one in known), strict=False)
        return replace(known[0], parts=tuple(_together([*each], span) for each in held))
    count = num(len(payloads) - len(known))
    for one in known:
        words = num(1) if one.dtype is None else num(dtype_of(one.dtype).itemsize_bytes) / 8
        count = count + (elements(one) * words if one.kind is PayloadKind.ARRAY else num(1))
    return payload_of(new_array("together", "float64", (count,), span), span)


def _copied(payload: Payload | None) -> tuple[Copy, ...]:
    """Return the step that brings several payloads into one, or out of it again."""
    if payload is None or payload.view is None:
        return ()
    return (Copy(payload.view, payload.view, payload.span, allocates=True),)


# --- fused reductions -----------------------------------------------------------------------------


_OPERATIONS = frozenset({"SUM", "PROD", "MAX", "MIN"})
_NUMBERS = frozenset({"float", "float64"})
_REST = ("root", "dest", "sendtag", "source", "recvtag")


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield one call for all those of which none waits for another."""
    for function in program.functions:
        taken: set[Span] = set()
        for visit, step in function.operations():
            if step.span in taken or not _is_number(program, step):
                continue
            run = _run(program, visit, step)
            taken |= {one.span for one in run} if len(run) > 1 else set()
            clear = step.op is not Op.SENDRECV or is_clear(function, visit)
            if len(run) > 1 and clear and on_all_ranks(function.visits(), visit):
                yield _proposal(program, function, visit, run)
        yield from reductions_apart(program, function, taken)


def _run(program: Program, visit: Visit, first: Communicate) -> list[Communicate]:
    """Return the calls from one on, statement after statement, that could be one."""
    context, run = program.context, [first]
    nodes, at = suite_at(first.statement, context) or ([], 0)
    steps = {one.statement: one for one in visit.block if isinstance(one, Communicate)}
    for node in nodes[at + 1 :]:
        step = steps.get(span_of(node, context.lines))
        if step is None or not (_is_number(program, step) and _is_alike(program, first, step)):
            break
        given = loaded_names(ast.parse(_given(one, program), mode="eval") for one in run)
        results = {str(one.result) for one in run}
        # what one brings no later one may take, and none may bring what an earlier one takes
        if loaded_names([getattr(node, "value", node)]) & results or step.result in given | results:
            break
        run.append(step)
    return run


def _given(step: Communicate, program: Program) -> str:
    name = "obj" if step.op is Op.BCAST else "sendobj"
    return argument(step, name, program) or ""


def _is_number(program: Program, step: Communicate) -> bool:
    """Return whether a step gives all ranks, or exchanges, one number, into a name."""
    sent = step.send
    if not step.pickled or not step.blocking or step.result is None or sent is None:
        return False
    if sent.kind is not PayloadKind.SCALAR or not is_simple(step, program):
        return False
    if step.op is Op.SENDRECV:
        # from nobody comes None, which has no parts
        known = named_rank(step.source) is not None and "status" not in step.places
        return known and is_exchange(step) and step.receive is None
    reduces = step.operation in _OPERATIONS and sent.dtype in _NUMBERS
    return step.op is Op.BCAST or (step.op is Op.ALLREDUCE and reduces)


def _is_alike(program: Program, first: Communicate, step: Communicate) -> bool:
    def told(one: Communicate) -> tuple[object, ...]:
        root, *rest = (argument(one, name, program) for name in _REST)
        return one.op, one.communicator.text, one.receiver, one.operation, root or "0", rest

    return told(first) == told(step)


def _results(program: Program, name: str, run: list[Communicate]) -> str:
    """Return the elements of an array, as Python's numbers where such are surely sent."""
    ours = [_is_python(program, argument(step, "sendobj", program) or "") for step in run]
    if len(set(ours)) == 1:
        return f"{name}.tolist()" if ours[0] else name
    taken = (f"{name}[{number}]" for number in range(len(run)))
    return ", ".join(f"float({one})" if own else one for one, own in zip(taken, ours, strict=True))


def _is_python(program: Program, text: str) -> bool:
    """Return whether something is ``float(...)``, or a name that is bound to nothing else."""
    values = [ast.parse(text, mode="eval").body] if text else []
    if is_name(text):
        tree = tree_of(program.context.source)
        stores = [one for one in every(ast.Name, tree) if one.id == text]
        stores = [one for one in stores if isinstance(one.ctx, ast.Store)]
        assigned = [*every(ast.Assign, tree)]
        values = [one.value for one in assigned if [*map(ast.unparse, one.targets)] == [text]]
        values *= len(values) == len(stores)
    made = {ast.unparse(getattr(one, "func", one)).rpartition(".")[2] for one in values}
    return "float" in made <= {"float", "allreduce"}


def _proposal(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    run: list[Communicate],
) -> ProgramProposal:
    first, context = run[0], program.context
    moves = first.op is not Op.ALLREDUCE
    verb = {Op.BCAST: "send", Op.SENDRECV: "exchange"}.get(first.op, "reduce")
    call, written = (_moved if moves else _reduced)(
        program, run, ", ".join(_given(one, program) for one in run)
    )
    place = stretch(first.statement, run[-1].statement)
    writable = moves or (context.array_module is not None and program.mpi_module is not None)
    does = "" if moves else "; sums may be collected in another order, and agree to rounding"
    does += "; none of the numbers is NaN" * (first.operation in ("MAX", "MIN"))
    return offer(
        function,
        visit,
        first.span,
        f"{verb} the {len(run)} numbers at once, as {'a tuple' if moves else 'an array'}",
        "a call for a number is all start-up time, and several take as long as one",
        tuple(run),
        (call,) if moves else (*_copied(call.receive), call, *_copied(call.receive)),
        f"none of them depends on another{does}",
        in_place_of(place, written, context) if writable else "NumPy or MPI has no name",
        safe=moves,
    )


def _moved(program: Program, run: list[Communicate], sent: str) -> tuple[Communicate, list[str]]:
    """Return the call that sends numbers as they are, in a tuple, and its statement."""
    first, results = run[0], ", ".join(str(step.result) for step in run)
    assert first.send is not None
    listed = replace(first.send, kind=PayloadKind.OBJECT, parts=(first.send,), count=None)
    call = replace(first, send=replace(listed, length=num(len(run)), dtype=None))
    given = ", ".join([f"({sent})", *keywords(first, _REST, program)])
    return call, [f"{results} = {first.receiver}.{first.method}({given})"]


def _reduced(program: Program, run: list[Communicate], sent: str) -> tuple[Communicate, list[str]]:
    """Return the call that reduces numbers as an array, and the statements around it."""
    first, np, mpi = run[0], program.context.array_module, program.mpi_module
    memory = payload_of(new_array("reduced", "float64", (num(len(run)),), first.span), first.span)
    call = replace(first, method="Allreduce", pickled=False, receive=memory, send=None)
    name = fresh_name("reduced", program.context.identifiers)
    rest = "".join(f", {one}" for one in keywords(first, ("op",), program))
    results = ", ".join(str(step.result) for step in run)
    return replace(call, in_place=True), [
        # a rank without data may have the integer 0
        f"{name} = {np}.array([{sent}], dtype={np}.float64)",
        f"{first.receiver}.Allreduce({mpi}.IN_PLACE, {name}{rest})",
        f"{results} = {_results(program, name, run)}",
    ]


TRANSFORM = ProgramRule("ADV608", "separate-calls", __doc__, propose)
