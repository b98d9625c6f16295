"""# ADV607 hand-written-collective

**What it does.** Finds messages that do by hand what one call does: a root that receives from one
rank after the other (`Gather`, or `Reduce` where it adds up) or sends to one after the other
(`Scatter`, `Bcast`), a loop of exchanges with every rank (`Alltoall`), a loop in which rows go
round a ring until every rank has all of them (`Allgather`) or has added all (`Allreduce`), and a
chain of blocking messages, or an exchange in turns, in which ranks wait for others although what
they send is ready (`Sendrecv`).

**Why it costs.** A root that handles its messages one by one needs time in proportion to the
number of ranks, where a tree needs its logarithm, and each message is a call from Python. In a
chain the last rank gets its message after all others have theirs.

**Example**

```python
if rank == 0:
    for i in range(1, size):
        comm.Recv(whole[i], source=i)
else:
    comm.Send(mine, dest=0)
```

**Use instead**

```python
if rank == 0:
    comm.Gather(MPI.IN_PLACE, whole, root=0)
else:
    comm.Gather(mine, None, root=0)
```

**When it stays quiet.** Task farms and whatever else receives from `ANY_SOURCE`; chains outside
loops, which are set-up or output; pieces that are not all as large, or not in the order of ranks;
branches that communicate besides; what a root makes anew, or picks by its index, for each rank and
which is no slice of one array; chains that pass on what they received; programs that would
wait for ever as they stand.

**Fix safety.** The same elements come to the same places. A collective is unsafe, because every
rank of the communicator has to call it, in the same order as all others: the two branches show
that they do, but not what other files do. `Sendrecv` is safe. Where the text of what is sent
cannot be written, where a root does more with what it receives, and where messages are pickled,
the suggestion is shown only.

**Models used.** Lines (messages, collectives), and the interpreter's time for an iteration.

**References.** Algorithms of collective operations: any text on MPI; the standard on `MPI_IN_PLACE`
and on deadlock in blocking exchanges.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.memory import At, Order, Part, View, Whole
from advisor.ir.spmd.payloads import Payload, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Compute, Interpret, Loop, Op, Visit
from costdb.expr import Expr, num, substitute, sym
from transforms.kit.memory import (
    SENDABLE,
    by_rank,
    is_counted,
    may_share,
    new_array,
    payload_of,
    plain_array,
    same_memory,
)
from transforms.kit.names import (
    BASE,
    bound_in_lines,
    bound_names,
    is_simple,
    loaded_names,
    occurrences,
    words,
)
from transforms.kit.programs import ProgramRule, collective, offer
from transforms.kit.ranks import (
    Move,
    is_shift,
    modulo,
    move_of,
    named_rank,
    on_all_ranks,
)
from transforms.kit.rewrite import (
    Edits,
    comments_within,
    in_place_of,
    span_of,
    stands_alone,
    starts_line,
    statement_at,
    stretch,
    suite_at,
)
from transforms.messages.rank_chains import chains
from transforms.messages.root_loops import root_loops


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield the call that does what several messages do."""
    for function in program.functions:
        yield from root_loops(program, function)
        yield from rank_loops(program, function)
        yield from chains(program, function)


# --- loops of exchanges with all ranks, and round a ring ------------------------------------------


def rank_loops(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective that a loop of exchanges with all ranks, or round all, stands for."""
    for wanted in (_all_to_all, _all_gather, _all_reduce):
        for visit, step in function.operations():
            if not visit.loops or step.op is not Op.SENDRECV or step.replaces:
                continue
            if step.pickled and wanted is not _all_reduce:
                continue
            if "status" not in step.places and is_counted(visit.loops[-1]):
                found = wanted(program, function, visit, step)
                if found is not None:
                    yield found


def _all_to_all(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> ProgramProposal | None:
    """Return one `Alltoall` for exchanges with each rank, itself included, in their order."""
    loop, size = visit.loops[-1], step.communicator.size
    if loop.body != (step,) or (loop.low, loop.high) != (num(0), size):
        return None
    if {named_rank(step.dest), named_rank(step.source)} != {sym(loop.variable)}:
        return None
    sent, received = _of_all(step.send, loop, size), _of_all(step.receive, loop, size)
    if sent is None or received is None or sent.count != received.count:
        return None
    if sent.dtype != received.dtype or may_share(_view(sent), _view(received)):
        return None
    writable = (
        is_simple(step, program)
        and all(_is_all(payload) for payload in (sent, received))
        and starts_line(loop.span, program.context)
    )
    method = f"{step.receiver}.Alltoall({sent.text}, {received.text})"
    place = stretch(loop.span, step.statement)
    return offer(
        function,
        visit.loops[:-1],
        step.span,
        "let one `Alltoall` exchange with all ranks, not a loop over them",
        "in a loop each exchange waits for its partner to come to it; a collective has all"
        " messages under way, and costs one call from Python",
        (loop,),
        (collective(step, Op.ALLTOALL, sent, received),),
        "the same pieces come to the same places; a collective has to come in the same order on"
        " all ranks",
        in_place_of(place, [method], program.context) if writable else None,
    )


def _view(payload: Payload) -> View:
    assert payload.view is not None
    return payload.view


def _of_all(payload: Payload | None, loop: Loop, size: Expr) -> Payload | None:
    """Return what the pieces of all ranks are together, under the name of their array."""
    view = plain_array(payload)
    whole = None if view is None else by_rank(view, loop.variable, sym(loop.variable), size)
    if whole is None or payload is None:
        return None
    base = BASE.fullmatch(payload.text)
    text = payload.text if base is None else base[1]
    return replace(payload, view=whole, count=whole.count, text=text)


def _is_all(payload: Payload) -> bool:
    """Return whether pieces are all of their array, which is named."""
    view = _view(payload)
    if view.region is None or view.buffer.extents is None:
        return False
    return view.region[0].count == view.buffer.extents[0] and "[" not in payload.text


# --- round a ring -------------------------------------------------------------------------------


def _all_gather(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> ProgramProposal | None:
    """Return one `Allgather` for a loop that passes rows on until every rank has all of them."""
    loop, given = visit.loops[-1], step.receive
    if step not in loop.body or not all(one == step or _is_of_numbers(one) for one in loop.body):
        return None
    if not step.blocking or loop.high - loop.low != step.communicator.size - 1:
        return None
    sent, taken = _row(step.send, step), _row(step.receive, step)
    if sent is None or taken is None or given is None or not _gathers(loop, step, sent, taken):
        return None
    view = _view(given)
    assert view.region is not None
    whole = replace(view, region=(Part(num(0), step.communicator.size), *view.region[1:]))
    base = BASE.fullmatch(given.text.strip())
    name = base[1] if base is not None and "." not in base[1] else given.text
    received = replace(given, view=whole, count=whole.count, text=name)
    call = f"{step.receiver}.Allgather({program.mpi_module}.IN_PLACE, {name})"
    return offer(
        function,
        visit.loops[:-1],
        step.span,
        f"let one `Allgather` collect the rows of `{name}`, not a loop round a ring",
        "the library knows algorithms of fewer steps for small pieces, has several messages under"
        " way for large ones, and costs one call from Python",
        (loop,),
        (collective(step, Op.ALLGATHER, None, received),),
        "every rank ends with each row as the rank of that number had it; a collective has to come"
        " in the same order on all ranks",
        _instead(loop, step, function, program, call) if name != given.text else None,
    )


def _all_reduce(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> ProgramProposal | None:
    """Return one `Allreduce` for blocks that go round a ring, each rank adding what comes by."""
    loop, sent, context = visit.loops[-1], step.send, program.context
    on = move_of(named_rank(step.dest), step.communicator)
    if loop.high - loop.low != step.communicator.size - 1 or not is_shift(step):
        return None
    if on is None or on.by not in (num(1), num(-1)):
        return None
    suite = suite_at(loop.span, context)
    if sent is None or sent.dtype not in SENDABLE or suite is None:
        return None
    nodes, at = suite
    node = nodes[at]
    given = ast.unparse(ast.parse(sent.text.strip())) if step.pickled else sent.text
    names = _added_round(node, step, given)
    if names is None:
        return None
    total, block = names
    if not _begins_with_block(nodes[:at], total, block):
        return None
    place = span_of(node, context.lines)
    used = occurrences(block, function, program)
    if any(one.start_line > place.end_line for one in used) or not on_all_ranks(
        function.visits(), visit
    ):
        return None
    memory = payload_of(new_array(total, sent.dtype, (elements(sent),), step.span), step.span)
    call = replace(collective(step, Op.ALLREDUCE, None, memory), pickled=False, operation="SUM")
    mpi = program.mpi_module
    line = f"{step.receiver}.Allreduce({mpi}.IN_PLACE, {total}, op={mpi}.SUM)"
    writable = mpi is not None and starts_line(place, context)
    return offer(
        function,
        visit.loops[:-1],
        step.span,
        f"let one `Allreduce` add up `{total}`, not a loop round a ring",
        "round a ring every rank sends all blocks; a reduction of large arrays sends two, of small"
        " ones takes as many steps as the logarithm of the number of ranks",
        (loop,),
        (call,),
        "the same terms are added, in another order, the same on each rank: sums of floating-point"
        " numbers agree to rounding; a collective has to come in the same order on all ranks",
        in_place_of(place, [line], context) if writable else None,
    )


def _added_round(node: ast.stmt, step: Communicate, given: str) -> tuple[str, str] | None:
    """Return the total and the block of a loop that passes on a block and adds what comes."""
    if not isinstance(node, ast.For) or node.orelse or len(node.body) < 2:
        return None
    received = step.result if step.pickled else step.receive and step.receive.text
    match node.body[1]:
        case ast.AugAssign(target=ast.Name(id=total), op=ast.Add(), value=ast.Name(id=added)):
            pass
        case ast.Assign(
            targets=[ast.Name(id=total)],
            value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=ast.Name(id=added)),
        ) if left == total:
            pass
        case _:
            return None
    if added != received or total in (given, received):
        return None
    passed = [ast.unparse(one) for one in node.body[2:]]
    if step.pickled:
        return (total, given) if received == given and not passed else None
    pairs = ((given, received), (received, given))
    swaps = [ast.unparse(ast.parse(f"{a}, {b} = {b}, {a}")) for a, b in pairs]
    return (total, given) if len(passed) == 1 and passed[0] in swaps else None


def _begins_with_block(nodes: list[ast.stmt], total: str, block: str) -> bool:
    """Return whether a total begins as a copy of what goes round, and nothing touches either."""
    given: dict[str, str] = {}
    between: list[ast.stmt] = []
    for node in nodes[::-1]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in (total, block):
                given.setdefault(name, ast.unparse(value))
            case _:
                between.append(node)
        if len(given) == 2:
            break
    own = given.get(total, "").removesuffix(".copy()")
    touched = bound_names(between) | loaded_names(between)
    copied = given.get(total) == f"{own}.copy()" and given.get(block) in (own, f"{own}.copy()")
    return copied and not touched & {total, block, *words(own)}


def _is_of_numbers(step: object) -> bool:
    if isinstance(step, Compute):
        return step.target is None and not step.reads
    return isinstance(step, Interpret)


def _row(payload: Payload | None, step: Communicate) -> Expr | None:
    """Return which row of an array with a row for every rank a payload is."""
    view = plain_array(payload)
    if view is None or view.buffer.order is not Order.C or not view.region:
        return None
    first, *others = view.region
    if not isinstance(first, At) or not all(isinstance(index, Whole) for index in others):
        return None
    extents = view.buffer.extents
    return first.index if extents and extents[0] == step.communicator.size else None


def _gathers(loop: Loop, step: Communicate, sent: Expr, taken: Expr) -> bool:
    """Return whether each rank ends with every row as the rank of that number had it at first.

    It sends its own row first, and then what it took last, always to the same neighbour: after
    `k` passes it has the row of the rank `k` before it, which no later pass writes to.
    """
    assert step.send is not None and step.receive is not None
    if not same_memory(_view(step.send), _view(step.receive)):
        return False
    ends = (named_rank(step.dest), named_rank(step.source), sent, taken)
    dest, source, gives, takes = (move_of(end, step.communicator) for end in ends)
    if dest is None or source is None or gives is None or takes is None:
        return False
    if {move.sign for move in (dest, source, gives, takes)} != {1}:
        return False
    if dest.by not in (num(1), num(-1)) or not dest.follows(source, step.communicator):
        return False

    def by(move: Move, index: Expr) -> Expr:
        return modulo(substitute(move.by, {loop.variable: index}), step.communicator)

    index = sym(loop.variable)
    return (
        by(gives, loop.low) == num(0)
        and by(takes, index) == modulo(gives.by - dest.by, step.communicator)
        and by(gives, index + 1) == by(takes, index)
    )


def _instead(
    loop: Loop, step: Communicate, function: SpmdFunction, program: Program, call: str
) -> Edits | None:
    """Return what puts a call in the place of a loop; None where something else needs the loop."""
    context, place = program.context, stretch(loop.span, step.statement)
    node = statement_at(loop.span, context)
    if program.mpi_module is None or not isinstance(node, ast.For) or node.orelse:
        return None
    *before, last = node.body
    if not all(isinstance(one, ast.Assign) for one in before):
        return None
    lines = range(place.start_line, place.end_line + 1)
    used_elsewhere = any(
        other.start_line not in lines
        for name in bound_in_lines(program, lines[0], lines[-1])
        for other in occurrences(name, function, program)
    )
    if used_elsewhere or last.lineno != step.statement.start_line:
        return None
    if comments_within(place, context.source) or not stands_alone(context, place):
        return None
    return in_place_of(place, [call], context)


TRANSFORM = ProgramRule("ADV607", "hand-written-collective", __doc__, propose)
