"""# ADV604 wrong-collective

**What it does.** Finds collectives that move more than is used of it: a broadcast of a whole array
of which every rank uses its block (`Scatter`), a sum of which every rank uses its block
(`Reduce_scatter_block`), a sum over arrays that are zero but for the own block, or for rows or
columns of one's own (`Allgather`), a field that is gathered for one number (`reduce`, `allreduce`),
one of which some planes are used, or what is next to the own block, what every step gathers or
reduces but few steps or only what is behind the loop use, what all ranks get but one rank uses
(`reduce`, `gather`, or nothing), parts that the root gathers to add (`Reduce`, `Allreduce`), to
count all that is in them (`reduce`), or of which it makes what it sends to all (`allgather`,
`allreduce`).

**Why it costs.** The time of a collective grows with what it moves. A scatter moves `n` elements
from the root, a broadcast `n` for every rank; a sum of padded arrays moves and adds a zero for
every element and every other rank; and a number is less than a field.

**Example**

```python
full = np.zeros(n * size)
full[rank * n : (rank + 1) * n] = mine
comm.Allreduce(MPI.IN_PLACE, full)
```

**Use instead**

```python
full = np.zeros(n * size)
full[rank * n : (rank + 1) * n] = mine
comm.Allgather(MPI.IN_PLACE, full)
```

**When it stays quiet.** Arrays of which anything else is used anywhere in the function, or that it
returns or was given; blocks of different lengths, or that are not in the order of ranks; parts
that are used for anything else; numbers that are made of more than one field, or in more than one
step; gathers that not every iteration does; what a rank other than the root may use, whoever calls
the function; reductions in place, or by an operation of the program's own.

**Fix safety.** Sums of floating-point numbers are collected in another order and agree to
rounding; a padded sum turns a negative zero into a positive one, a gather keeps it; a scatter
leaves the rest of the array as it was; a loop without any iteration gathered nothing. Such fixes
are unsafe. Shown only are pickled scatters, and what would be sent something else behind the loop.

**Models used.** Lines (collectives, array statements), pickle.

**References.** Costs of collective operations by volume: any text on parallel algorithms.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from advisor.ir.spmd.memory import Order, Payload, PayloadKind, View, extent_of
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Allocate,
    Communicate,
    Communicator,
    Compute,
    Copy,
    Leave,
    Op,
    Step,
    Visit,
    walk,
)
from advisor.ir.values import Point, Range, Scalar
from advisor.source import Span
from costdb.expr import Expr, ceil_div, minimum, num
from costdb.expr.nodes import Sym
from costdb.records import dataclass, replace
from transforms.kit import memory
from transforms.kit.names import (
    argument,
    bound_in_lines,
    is_measured,
    is_name,
    is_simple,
    keywords,
    occurrences,
    root_lines,
    uses_of,
    words,
)
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.ranks import own_block, root_only
from transforms.kit.rewrite import Edits, in_place_of, span_of, tree_of
from transforms.messages.buffers import carried
from transforms.messages.combined_parts import combined_parts
from transforms.messages.gathered_fields import gathered_fields
from transforms.messages.needed_at_root import needed_at_root
from transforms.messages.needed_later import needed_later
from transforms.messages.used_parts import counted_parts, own_parts

_GATHERS = {Op.REDUCE: Op.GATHER, Op.ALLREDUCE: Op.ALLGATHER}
_ZEROS = re.compile(r"\bzeros(_like)?\s*\(|\barray\(\s*\[*0(\.0*)?\]\s*\*")
_UNWRITTEN = "the blocks of all ranks have no text that means them where the call stands"
_ZEROED = re.compile(r"\w+\[(:|\.\.\.)\]\s*=\s*0(\.0*)?|\w+\.fill\(\s*0(\.0*)?\s*\)")


@dataclass(frozen=True, slots=True)
class _Used:
    """What every rank uses of an array that a collective brings whole.

    Attributes
    ----------
    array : Payload
    view : View
        All of it.
    length : Expr
        Of the own block.
    blocks : list of View
        Where it is read, never empty.
    """

    array: Payload
    view: View
    length: Expr
    blocks: list[View]

    @property
    def shown(self) -> str:
        """The own block, as the source calls it."""
        return " ".join(self.blocks[0].text.split())

    def own(self, step: Communicate) -> Payload:
        """Return the own block, as long on every rank, not as the difference of its bounds."""
        assert self.view.region is not None
        rank, behind = step.communicator.rank, self.view.region[1:]
        block = Range(rank * self.length, (rank + 1) * self.length)
        count = self.length
        for index in behind:
            count = count * extent_of(index)
        return replace(self.array, view=replace(self.view, region=(block, *behind)), count=count)


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield a collective that moves what is used, for every one that moves more."""
    for function in program.functions:
        for visit, step in function.operations():
            if step.blocking:
                found = list(_by_blocks(program, function, visit, step))
                yield from found or own_parts(program, function, visit, step)
        yield from combined_parts(program, function)
        padded = list(_padded_sums(program, function))
        yield from padded
        told = {one.span for one in padded}
        yield from (one for one in _sums_of_lines(program, function) if one.span not in told)
        yield from gathered_fields(program, function)
        yield from counted_parts(program, function)
        yield from needed_at_root(program, function)
        yield from needed_later(program, function)


_LENGTHS = "where the array ends within a block, lengths differ, which takes `{}`"
_SCATTERED = (
    "a broadcast sends the whole array to every rank, a scatter only what it uses",
    "within this function no rank but the root uses more of the array than its block, which nothing"
    f" writes to; a collective has to come in the same order on all ranks; {_LENGTHS}",
)
_REDUCED = (
    "an allreduce brings the whole result to every rank, a reduce-scatter only what it uses",
    "within this function no rank uses more of the result than its block; sums of floating-point"
    " numbers are collected in another order, and the rest of the array stays as it was;"
    f" {_LENGTHS}",
)


def _by_blocks(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield a collective that brings each rank its own block, for one that brings all to all.

    That is a `Scatter` for a broadcast, and a `Reduce_scatter_block` for a reduction.
    """
    sums, sent = step.op is Op.ALLREDUCE, step.send
    got = step.receive if sums else sent
    if sent is None or sent.view is None or not (sums or step.op is Op.BCAST):
        return
    # another operation may hang on the order of its operands
    plain = not step.pickled and step.operation is not None and is_name(sent.text)
    if sums and not (plain and _is_plain(sent) and _is_plain(got)):
        return
    used = _used(program, function, step, got)
    if used is None or sent.view.region is None:
        return
    whole = Range(num(0), used.length * step.communicator.size)
    pieces = replace(sent.view, region=(whole, *sent.view.region[1:]))
    method = "Reduce_scatter_block" if sums else "scatter" if step.pickled else "Scatter"
    call = replace(
        step,
        op=Op.REDUCE_SCATTER if sums else Op.SCATTER,
        method=method,
        send=sent if sums else replace(sent, view=pieces, count=pieces.count),
        receive=None if step.pickled else used.own(step),
        result=None,
    )
    edits: Edits | str = _UNWRITTEN
    texts = None if step.pickled else _texts(program, step, replace(used, array=sent))
    if texts is not None and program.mpi_module is not None:
        (all_of_it, own), more = texts, keywords(step, ("op",), program)
        if not sums:
            root = argument(step, "root", program) or "0"
            is_root, more = f"{step.receiver}.Get_rank() == {root}", [f"root={root}"]
            own = f"{program.mpi_module}.IN_PLACE if {is_root} else {own}"
        line = f"{step.receiver}.{method}({', '.join([all_of_it, own, *more])})"
        edits = in_place_of(step.statement, [line], program.context)
    does = f"reduce `{sent.text}` by blocks" if sums else f"scatter `{sent.text}`"
    reason, argued = _REDUCED if sums else _SCATTERED
    yield offer(
        function,
        visit,
        step.span,
        f"{does}: every rank uses `{used.shown}` of {'the result' if sums else 'it'}",
        reason,
        (step,),
        (call,),
        argued.format("Reduce_scatter" if sums else "Scatterv"),
        edits,
    )


def _is_plain(payload: Payload | None) -> bool:
    view = memory.plain_array(payload)
    return view is not None and view.is_whole and view.order is Order.C


def _used(
    program: Program, function: SpmdFunction, step: Communicate, array: Payload | None
) -> _Used | None:
    """Return the blocks of an array that ranks use; None if anything else of it is used.

    What the root alone does counts for nothing, where a collective has one.
    """
    if array is None or array.kind is not PayloadKind.ARRAY or array.view is None:
        return None
    view, root = array.view, step.root if step.op is Op.BCAST else None
    if not view.is_whole or view.buffer.order is not Order.C or array.dtype is None:
        return None
    if not is_name(array.text) or not function.whole.contains(view.buffer.allocation.span):
        return None  # others have it, too
    lengths: set[Expr | None] = set()
    found: list[View] = []
    for visit in function.visits():
        if visit.step == step or (root is not None and root_only(visit, step.communicator, root)):
            continue
        if any(memory.may_share(one, view) for one in memory.written(visit.step) or ()):
            return None
        for one in memory.reads_of(visit.step):
            if not _is_sent(one, step, view):
                continue
            if not one.region or not memory.is_whole_behind(one):
                return None
            lengths.add(memory.block_of(one.region[0], visit, step.communicator))
            found.append(one)
    (length, *others) = lengths or {None}
    if length is None or others:
        return None
    allowed = [step.statement, *(one.span for one in found)]
    if root is not None:
        allowed += root_lines(function, step.communicator, root, program)
    if uses_of(array.text, function, program, *allowed):
        return None
    return _Used(array, view, length, found)


def _is_sent(one: View, step: Communicate, view: View) -> bool:
    """Return whether a view is of what was broadcast, or of the object that a pickled one gave."""
    if step.pickled and one.buffer.allocation.span == step.span:
        return True
    return memory.same_memory(one, view)


def _texts(program: Program, step: Communicate, used: _Used) -> tuple[str, str] | None:
    """Return the blocks of all ranks, and the own one, as Python that means them at a call."""
    view, first = used.array.view, min(used.blocks, key=lambda block: block.span)
    assert first.region is not None and view is not None and view.region is not None
    extent, size = extent_of(view.region[0]), step.communicator.size
    if not is_simple(step, program) or not isinstance(first.region[0], Range):
        return None
    if first.span < step.statement or not memory.blocks_fit(used.length, size, extent):
        return None
    text, whole = program.context.text(first.span), used.array.text
    if words(text) & bound_in_lines(program, step.statement.end_line + 1, first.span.start_line):
        return None
    if extent != used.length * size:
        whole = f"{whole}[:len({text}) * {step.receiver}.Get_size()]"
    return whole, text


# --- sums of arrays that are zero but for the own block: gathers by addition ----------------------


def _padded_sums(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield an `Allgather` for every sum in which each element is zero on all ranks but one."""
    for visit, step in function.operations():
        given = step.send or step.receive
        if step.op is not Op.ALLREDUCE or step.operation != "SUM" or not step.blocking:
            continue
        if given is None or not _is_plain(given) or not is_name(given.text):
            continue
        found = _own_block(program, function, visit, step, given)
        if found is None:
            continue
        block, length = found
        gather = replace(
            step,
            op=Op.ALLGATHER,
            method="allgather" if step.pickled else "Allgather",
            operation=None,
            send=replace(given, view=block, count=block.count, text=block.text),
            in_place=False,
        )
        lines = _gather_lines(program, step, given, block, length)
        yield offer(
            function,
            visit,
            step.span,
            f"gather `{' '.join(block.text.split())}` from all ranks, do not add zeros to it",
            "every element is zero on all ranks but one, so the sum only moves it: it sends and"
            " adds as many zeros for each element as there are other ranks",
            (step,),
            (gather,),
            "a number plus zeros is that number, but for the sign of a zero; blocks lie in the"
            " order of ranks, and are as long on each; where the array ends within one, lengths"
            " differ, which takes `Allgatherv`",
            _UNWRITTEN if lines is None else in_place_of(step.statement, lines, program.context),
        )


def _own_block(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate, given: Payload
) -> tuple[View, Expr] | None:
    """Return the own block, if it is all that was written since the array was zero."""
    block, view = None, given.view
    assert view is not None
    for before in reversed(visit.block[: visit.position]):
        target = _target(before)
        if _is_zeroing(before, view, program):
            break
        if target is None or not memory.may_share(target, view):
            continue
        if not memory.same_memory(target, view) or block is not None:
            return None
        block = target
    else:
        return None
    if block is None or not block.region or not memory.is_whole_behind(block):
        return None
    length = memory.block_of(block.region[0], visit, step.communicator)
    if length is None:
        return None
    # the lines between mention the array nowhere else: no alias, no call that writes to it
    between = range(before.span.end_line + 1, step.statement.start_line)
    for place in occurrences(given.text, function, program):
        mentioned = place.start_line in between and not block.span.contains(place)
        if mentioned and not is_measured(place, program):
            return None
    return block, length


def _target(step: Step) -> View | None:
    match step:
        case Copy(target=target, allocates=False) | Compute(target=target):
            return target
    return None


def _is_zeroing(step: Step, view: View, program: Program) -> bool:
    match step:
        case Allocate(buffer=buffer, filled=True):
            made = _ZEROS.search(buffer.allocation.text) is not None
            return made and buffer == view.buffer
        case Compute(target=target, value=Scalar(), what="") if target is not None:
            zeroed = _ZEROED.fullmatch(program.context.text(step.span).strip()) is not None
            return zeroed and memory.same_memory(target, view) and target.is_whole
    return False


def _gather_lines(
    program: Program, step: Communicate, given: Payload, block: View, length: Expr
) -> list[str] | None:
    """Return the gather, where blocks are slices of which none is cut, and zeros behind them."""
    got, view, size = step.receive, given.view, step.communicator.size
    if step.pickled or got is None or got.view is None or not is_name(got.text):
        return None
    if not is_simple(step, program) or program.mpi_module is None:
        return None
    assert view is not None and view.region is not None and block.region is not None
    text, extent = program.context.text(block.span), extent_of(view.region[0])
    if got.view.region != view.region or not isinstance(block.region[0], Range):
        return None
    sent = f"{program.mpi_module}.IN_PLACE" if step.in_place else text
    if extent == length * size:
        return [f"{step.receiver}.Allgather({sent}, {got.text})"]
    if not memory.blocks_fit(length, size, extent):
        return None
    end = f"len({text}) * {step.receiver}.Get_size()"
    rest = [] if step.in_place else [f"{got.text}[{end} :] = 0"]
    return [f"{step.receiver}.Allgather({sent}, {got.text}[: {end}])", *rest]


# --- sums of arrays of which every rank has filled lines of its own -------------------------------


def _sums_of_lines(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield a gather for every sum of zeros of which each rank wrote other rows or columns."""
    for visit, step in function.operations():
        given, gather = step.send, _GATHERS.get(step.op)
        if gather is None or given is None or step.operation != "SUM" or not step.blocking:
            continue
        if not _is_plain(given) or not is_name(given.text) or given.view is None:
            continue
        lines = _own_lines(program, function, step, given.view)
        if lines is None:
            continue
        axis, count = lines
        which = ("rows", "columns")[axis] if axis < 2 else "planes"
        yield offer(
            function,
            visit,
            step.span,
            f"gather the {which} that each rank fills of `{given.text}`, do not add zeros to them",
            "every element is zero on all ranks but one, so the sum only moves it: it sends and"
            " adds as many zeros for each element as there are other ranks",
            (step,),
            (carried(step, gather, given.dtype, (count,)),),
            f"a number plus zeros is that number, but for the sign of a zero; {which} of a rank"
            " come one after the other, and have to be put where they belong",
            f"the {which} of a rank have no text",
        )


def _own_lines(
    program: Program, function: SpmdFunction, step: Communicate, view: View
) -> tuple[int, Expr] | None:
    """Return the axis along which ranks share an array out, and how many elements each has.

    None if anything else is written to it than lines of its own, which are told by the rank, or
    if it is named, in whatever function fills it, where more may happen to it.
    """
    made, extents = view.buffer.allocation, view.buffer.extents
    zeros = extents is not None and not made.either and _ZEROS.search(made.text) is not None
    if extents is None or not zeros or not function.whole.contains(made.span):
        return None
    found: set[tuple[int, Expr] | None] = set()
    names, allowed = {step.send.text if step.send else ""}, [step.statement]
    around, every = function.whole, Span(1, 0, len(program.context.lines), 0)
    for visit in walk(function.body, into_calls=True):
        for target in memory.written(visit.step) or ():
            if memory.may_share(target, view):
                same = memory.same_memory(target, view) and len(target.region or ()) == len(extents)
                found.add(_own_line(target, visit, step.communicator) if same else None)
                text = program.context.text(visit.step.span)
                names |= {view.buffer.name, text.partition("[")[0].strip()}
                allowed += [visit.step.span, *(one.span for one in visit.calls)]
                around = every if visit.calls else around
        if isinstance(visit.step, Leave) and visit.calls:
            allowed.append(visit.step.span)
    context = program.context
    parameters = (one for one in ast.walk(tree_of(context.source)) if isinstance(one, ast.arg))
    allowed += (span_of(one, context.lines) for one in parameters)
    (line, *others) = found or {None}
    whole = replace(function, whole=around)
    places = (place for one in names for place in uses_of(one, whole, program, *allowed))
    if line is None or others or not all(is_measured(place, program) for place in places):
        return None
    axis, count = line
    for other, extent in enumerate(extents):
        count = count if other == axis else count * extent
    return axis, count


def _own_line(target: View, visit: Visit, communicator: Communicator) -> tuple[int, Expr] | None:
    """Return along which axis a place is told by the rank, and how many of these a rank has."""
    rank, size = communicator.rank, communicator.size
    assert target.region is not None and target.buffer.extents is not None
    for axis, index in enumerate(target.region):
        at = index.at if isinstance(index, Point) else None
        if at == rank:  # of which there are no more than places
            return axis, minimum(1, target.buffer.extents[axis] / size)
        for loop in visit.loops:
            if not isinstance(at, Sym) or at.name != loop.variable:
                continue
            if (loop.low, loop.every) == (rank, size):
                return axis, ceil_div(target.buffer.extents[axis], size)
            block = own_block(loop.low, loop.high, rank) if loop.every == num(1) else None
            if block is not None:
                return axis, block
    return None


TRANSFORM = ProgramRule("ADV604", "wrong-collective", __doc__, propose)
