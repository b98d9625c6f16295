"""Arrays that go the same way one after another: packed into one message, and unpacked."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from advisor.ir.spmd.memory import Order, View
from advisor.ir.spmd.payloads import Payload, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Copy, Interpret, Loop, Op, Step, Visit
from advisor.ir.values import Point, Range
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num, sym
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    SENDABLE,
    apart,
    fits,
    is_counted,
    is_stretch,
    may_share,
    new_array,
    payload_of,
    plain_array,
    same_memory,
    swept,
    written_sizes,
)
from transforms.kit.names import argument, bound_names, is_uniform, keywords, used_outside, words
from transforms.kit.programs import offer
from transforms.kit.ranks import is_exchange, named_rank, on_all_ranks
from transforms.kit.rewrite import (
    Edits,
    fresh_name,
    in_place_of,
    span_of,
    starts_line,
    statement_at,
    stretch,
    suite_at,
)
from transforms.messages.patterns import is_clear

_OPS = frozenset({Op.SENDRECV, Op.BCAST, Op.REDUCE, Op.ALLREDUCE})
_MOVES = frozenset({Op.SENDRECV, Op.BCAST})
_REST = ("op", "root", "dest", "sendtag", "source", "recvtag")
_REASON = "every message costs a start-up time besides its bytes, and a call from Python"
_SUMS = "; sums may be collected in another order, and agree to rounding"


@dataclass(frozen=True, slots=True)
class _Part:
    """One array on its way.

    Attributes
    ----------
    step : Communicate
    sent, got : Payload
        The same, where what comes takes the place of what is sent.
    given : View
    taken : View
    """

    step: Communicate
    sent: Payload
    got: Payload
    given: View
    taken: View

    @property
    def is_one(self) -> bool:
        """Whether one buffer is sent and received."""
        return self.sent is self.got

    @property
    def may_stay(self) -> bool:
        """Whether nothing may come, so that memory stays as it is."""
        from_nobody = self.step.op is Op.SENDRECV and named_rank(self.step.source) is None
        return from_nobody or self.step.op is Op.REDUCE


def packed_messages(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield one message for those of several arrays."""
    told: set[Span] = set()
    for visit, step in function.operations():
        part = _part(program, step)
        if part is None or step.span in told or not on_all_ranks(function.visits(), visit):
            continue
        if not is_clear(function, visit):
            continue
        loop = visit.loops[-1] if visit.loops else None
        inside = _of_loop(program, loop) if loop is not None and step in loop.body else []
        parts = inside or _run(program, visit, part)
        told |= {one.step.span for one in parts}
        if inside and loop is not None:
            yield from _for_loop(program, function, visit, loop, inside)
        elif len(parts) > 1:
            yield from _for_run(program, function, visit, parts)


def _part(program: Program, step: Communicate) -> _Part | None:
    """Return what a call carries, if it is a whole array of a known type, or a part of one."""
    if step.op not in _OPS or step.pickled or not step.blocking or step.varying or step.replaces:
        return None
    alone = step.op is Op.BCAST or (step.in_place and step.op is Op.ALLREDUCE)
    got = step.send if step.op is Op.BCAST else step.receive
    sent = got if alone else step.send
    given, taken = plain_array(sent), plain_array(got)
    if sent is None or got is None or given is None or taken is None or given.or_none:
        return None
    if sent.dtype not in SENDABLE or sent.dtype != got.dtype or sent.count != got.count:
        return None
    if taken.or_none or "status" in step.places or (step.op is Op.REDUCE and step.in_place):
        return None
    if step.op is Op.SENDRECV and not is_exchange(step):
        return None
    if step.op not in _MOVES and step.operation is None:
        return None
    tags = [argument(step, name, program) for name in ("sendtag", "recvtag")]
    if tags[1] not in (None, tags[0]):
        return None
    # packed they lie in the order of their indices
    in_order = all(len(v.region or ()) == 1 or v.buffer.order is Order.C for v in (given, taken))
    return _Part(step, sent, got, given, taken) if in_order else None


# --- one after another ----------------------------------------------------------------------------


def _run(program: Program, visit: Visit, first: _Part) -> list[_Part]:
    """Return the calls from one on of which each is a statement, and follows the one before."""
    context, found = program.context, [first]
    nodes, at = suite_at(first.step.statement, context) or ([], 0)
    after = (one for one in visit.block[visit.position + 1 :] if not isinstance(one, Interpret))
    for step, node in zip(after, nodes[at + 1 :], strict=False):
        part = _part(program, step) if isinstance(step, Communicate) else None
        if part is None or span_of(node, context.lines) != part.step.statement:
            break
        if part.step.op is not first.step.op or part.sent.dtype != first.sent.dtype:
            break
        found.append(part)
    return found


def _ways(program: Program, parts: Sequence[_Part]) -> list[list[_Part]]:
    """Return parts by where they go, in the order of the first of each."""
    found: dict[tuple[object, ...], list[_Part]] = {}
    for part in parts:
        step = part.step
        rest = [argument(step, name, program) for name in _REST]
        tag = "" if (rest[3] or "0").isdigit() else rest[3]
        way = (step.receiver, step.operation, step.in_place, rest[0], rest[1] or "0", rest[2], tag)
        found.setdefault((*way, rest[4]), []).append(part)
    return list(found.values())


def _doubt(program: Program, ways: Sequence[Sequence[_Part]], parts: Sequence[_Part]) -> str | None:
    """Return on what condition arrays may go way by way; None where they may not."""
    order = {part.step.span: number for number, way in enumerate(ways) for part in way}
    sizes, doubt = written_sizes(program), ""
    for one, other in combinations(parts, 2):
        place, next_ = order[one.step.span], order[other.step.span]
        pairs = [(one.taken, other.given)] * (place >= next_)
        pairs += [(one.given, other.taken), (one.taken, other.taken)] * (place > next_)
        for a, b in pairs:
            if not apart(a, b, sizes):
                if may_share(a, b):
                    return None
                doubt = "if names of arrays mean different ones"
    return doubt or _uneven(program, parts)


def _uneven(program: Program, parts: Sequence[_Part], *more: Expr) -> str:
    """Return on what condition parts are as long as one another; empty where they surely are."""
    sizes = [*more, *(size for part in parts for size in part.given.shape or ())]
    cut = not all(fits(part.sent) and fits(part.got) for part in parts)
    return "if parts are as long on all ranks" * (cut or not is_uniform(program, sizes))


def _for_run(
    program: Program, function: SpmdFunction, visit: Visit, parts: list[_Part]
) -> Iterator[ProgramProposal]:
    ways = _ways(program, parts)
    doubt = _doubt(program, ways, parts)
    if doubt is None or len(ways) == len(parts):
        return
    place, lines = stretch(parts[0].step.statement, parts[-1].step.statement), list[str]()
    taken = set(program.context.identifiers)
    for way in ways:
        lines += _lines(program, way, taken) if len(way) > 1 else [_text(program, way[0])]
    writable = program.context.array_module is not None and starts_line(place, program.context)
    edits: Edits | str = "the statements share their lines, or NumPy has no name"
    if writable:
        edits = in_place_of(place, lines, program.context)
    before = tuple(part.step for part in parts)
    after = tuple(one for way in ways for one in _steps(way))
    yield _packed(function, visit, parts, before, after, doubt, edits)


def _text(program: Program, part: _Part) -> str:
    return program.context.text(part.step.statement)


def _packed(
    function: SpmdFunction,
    place: Visit | tuple[Loop, ...],
    parts: Sequence[_Part],
    before: tuple[Step, ...],
    after: tuple[Step, ...],
    doubt: str,
    edits: Edits | str,
) -> ProgramProposal:
    step, moves = parts[0].step, parts[0].step.op in _MOVES
    names = list(dict.fromkeys(f"`{part.sent.text}`" for part in parts))
    shown = f"{', '.join(names[:3])}{', ...' * (len(names) > 3)}"
    argued = f"the same elements come to the same places{'' if moves else _SUMS}"
    return offer(
        function,
        place,
        step.span,
        f"pack {shown}{' of all iterations' if before[0] is not step else ''} into one"
        f" `{step.method}` where they go the same way",
        _REASON,
        before,
        after,
        f"{argued}; {doubt}" if doubt else argued,
        edits,
        safe=moves and not doubt,
    )


def _steps(way: Sequence[_Part], loop: Loop | None = None) -> Iterator[Step]:
    """Yield the call that takes the place of some, and the copies around it."""
    first, trips = way[0].step, num(1) if loop is None or loop.trips is None else loop.trips
    if len(way) == 1 and loop is None:
        yield first
        return
    counts = [elements(part.sent) for part in way]
    packed = new_array("packed", way[0].sent.dtype, (sum(counts, num(0)) * trips,), first.span)
    memory = payload_of(packed, first.span)
    slots = [replace(packed, region=(Range(num(0), count),)) for count in counts]

    def copied(pairs: Iterable[tuple[View, View]]) -> Iterator[Step]:
        steps = tuple(Copy(into, of, first.span) for into, of in pairs)
        yield from steps if loop is None else (replace(loop, body=steps),)

    yield from copied(zip(slots, (part.given for part in way), strict=True))
    if way[0].may_stay:
        yield from copied(zip(slots, (part.taken for part in way), strict=True))
    sent, got = None if first.in_place else memory, None if first.op is Op.BCAST else memory
    yield replace(first, send=sent, receive=got)
    yield from copied(zip((part.taken for part in way), slots, strict=True))


def _lines(program: Program, way: Sequence[_Part], taken: set[str], header: str = "") -> list[str]:
    """Return what packs arrays, the call, and what unpacks them.

    Parameters
    ----------
    program : Program
    way : sequence of _Part
        What goes the same way; one of each iteration of a loop.
    taken : set of str
        Names that are used; those that are made are added.
    header : str
        That of the loop.
    """
    np, first = program.context.array_module, way[0].step
    names = [fresh_name(name, taken) for name in ("packed", "received", "one", "part")]
    packed, received, one, part = names
    taken |= {packed, received}
    texts = [[" ".join(p.text.split()) for p in (w.sent, w.got)] for w in way]
    given, got = ([text[side] for text in texts] for side in (0, 1))
    alike = len({part.given.shape for part in way}) == len({part.taken.shape for part in way}) == 1

    def joined(parts: list[str]) -> str:
        if header:
            return f"{np}.array([{parts[0]} {header}])"
        if alike:
            return f"{np}.array([{', '.join(parts)}])"
        return f"{np}.concatenate([{', '.join(f'{np}.ravel({one})' for one in parts)}])"

    lines = [f"{packed} = {joined(given)}"]
    if way[0].is_one:
        received = packed
    else:
        memory = joined(got) if way[0].may_stay else f"{np}.empty_like({packed})"
        lines.append(f"{received} = {memory}")
    rest = keywords(first, _REST, program)
    buffers = [packed] if way[0].is_one else [packed, f"recvbuf={received}"]
    if first.in_place:
        buffers = [f"{program.mpi_module}.IN_PLACE", packed]
    lines.append(f"{first.receiver}.{first.method}({', '.join([*buffers, *rest])})")
    inner = program.context.indent
    if header:
        target, over = header.removeprefix("for ").split(" in ", 1)
        lines += [f"for {target}, {one} in zip({over}, {received}):"]
        return [*lines, f"{inner}{_target(got[0])} = {one}"]
    if alike:
        return [*lines, f"{', '.join(map(_target, got))} = {received}"]
    ends = f"{np}.cumsum([{', '.join(f'{text}.size' for text in got[:-1])}])"
    lines.append(f"for {one}, {part} in zip(({', '.join(got)}), {np}.split({received}, {ends})):")
    return [*lines, f"{inner}{one}[...] = {part}.reshape({one}.shape)"]


def _target(text: str) -> str:
    """Return an array as what its elements are assigned to: it may stand in a list."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Subscript):
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(one, ast.Slice) for one in indices):
            return text
    return f"{text}[...]"


# --- in a loop ------------------------------------------------------------------------------------


def _of_loop(program: Program, loop: Loop) -> list[_Part]:
    """Return the calls that a loop consists of, if each iteration has arrays of its own."""
    steps = [one for one in loop.body if not isinstance(one, Interpret)]
    parts = [_part(program, one) if isinstance(one, Communicate) else None for one in steps]
    found = [one for one in parts if one is not None]
    if len(found) < len(steps) or loop.trips is None or loop.timing or loop.by_rank:
        return []
    if len({(one.step.op, one.sent.dtype) for one in found}) > 1:
        return []
    views = [view for one in found for view in (one.given, one.taken)]
    if loop.variable and is_counted(loop):
        if any(loop.variable in free_symbols(elements(part.sent)) for part in found):
            return []
        whole = [swept(view, loop.variable, loop.low, loop.high) for view in views]
        if all(view is not None and is_stretch(view) for view in whole):
            return []  # as they stand they are one message
        own = [
            {place for place, at in enumerate(view.region or ()) if at == Point(sym(loop.variable))}
            for view in views
        ]
        apart_ = all(
            places & others
            if same_memory(one, other)
            else apart(one, other, written_sizes(program))
            for (one, places), (other, others) in combinations(zip(views, own, strict=True), 2)
        )
        return found if apart_ and all(own) else []
    arrays = views[0].buffer
    every = loop.trips == num(len(arrays.allocation.either)) and len(arrays.allocation.either) > 1
    sizes = (size for view in views for size in view.shape or ())
    other = any(name.startswith(f"{arrays.name}.") for size in sizes for name in free_symbols(size))
    # else one may be there twice, or they have several shapes
    return found if every and not other and all(view.buffer == arrays for view in views) else []


def _for_loop(
    program: Program, function: SpmdFunction, visit: Visit, loop: Loop, parts: list[_Part]
) -> Iterator[ProgramProposal]:
    node, context = statement_at(loop.span, program.context), program.context
    if not isinstance(node, ast.For) or node.orelse:
        return
    place, names = span_of(node, context.lines), bound_names([node.target])
    rest = (argument(one.step, name, program) or "" for one in parts for name in _REST)
    if words(f"{' '.join(rest)} {parts[0].step.receiver}") & names:
        return
    edits: Edits | str = "the loop does more, or goes over what can be gone over once only"
    statements = [span_of(one, context.lines) for one in node.body]
    plain = isinstance(node.iter, ast.Name | ast.Attribute | ast.Tuple | ast.List) or (
        isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range"
    )
    kept = used_outside(names, place, function, program)
    alone = [one.step.statement for one in parts] == statements and starts_line(place, context)
    if plain and alone and kept is None and context.array_module is not None:
        header, taken = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}", set[str]()
        taken |= context.identifiers
        lines = [line for one in parts for line in _lines(program, [one], taken, header)]
        edits = in_place_of(place, lines, context)
    doubt = _uneven(program, parts, *([] if loop.trips is None else [loop.trips]))
    after = tuple(one for part in parts for one in _steps([part], loop))
    yield _packed(function, visit.loops[:-1], parts, (loop,), after, doubt, edits)
