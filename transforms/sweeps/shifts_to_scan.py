"""# ADV201 repeated-shifts

**What it does.** Finds sums over windows (box filters, moving sums) that are computed by
shifting an array again and again and adding it, and proposes a prefix scan: the sum of a window
is the difference of two prefix sums.

**Why it costs.** A window of `b` terms takes `b - 1` shifts, each with a message to a neighbour
and a pass over the whole block. The scan takes a number of steps that grows with the logarithm
of the ranks and does not grow with `b` at all: two passes, and one shift by `b`.

**Example**

```python
total = image.copy()
moved = image.copy()
for _ in range(b - 1):
    moved[1:, :] = moved[:-1, :]
    moved[0, :] = 0
    total += moved
```

**Use instead**

```python
running = np.cumsum(image, axis=0, dtype=image.dtype)
total = running.copy()
lag = max(b, 1)
total[lag:, :] -= running[:-lag, :]
```

Windows that wrap around (`np.roll`) may reach to either side of an element, or to both.

**Fix safety.** Safe on integers: their sums are associative, also where they wrap around at the
width of the type, so that results are equal bit for bit. Unsafe on floating-point and complex
numbers: a difference of two long sums loses the digits that the sums are longer than the window,
so that windows of a million 32-bit numbers are off by per cents and those of 64-bit numbers in the
eleventh digit; and a NaN or an infinity, which spoils the windows that have it, spoils every later
one.

**Models used.** Lines (messages, scans, array statements).

**References.** The crossover between shifts and scans, and why a model without cache effects
puts it wrongly, is from the study of communication costs with cache effects for ZPL and MPI
programs on the Cray T3E, IBM SP-2 and Sun Enterprise 5000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel, LocalArray
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import kind_of_or_none, whole
from advisor.ir.statements import Bind, Statement, Store, mentioned
from advisor.ir.values import Copy, Elementwise, PeriodicPad, Range, Read, Scan, Value
from advisor.numpy_table import promote
from costdb.expr import num
from transforms.kit.kernels import along, replaced
from transforms.kit.rewrite import first_line, fresh_name
from transforms.kit.rule import KernelRule
from transforms.sweeps.window_source import ahead_of, lag_of, window_edits
from transforms.sweeps.windows import Window, may_share, windows

ZERO = num(0)
ONE = num(1)


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield all windows by scans together, each alone, and two windows as one table."""
    found = tuple(w for w in windows(kernel) if _types_allow(w, kernel))
    if not found:
        return
    yield _proposal(kernel, found, "sum its windows by prefix scans, not by repeated shifts")
    if len(found) > 1:
        for window in found:
            title = f"scan only along axis {window.axis} (line {window.loop.span.start_line})"
            yield _proposal(kernel, (window,), title)
    yield from _tables(kernel, found)


def _types_allow(window: Window, kernel: Kernel) -> bool:
    target, source = kernel.dtype(window.target), kernel.dtype(window.source)
    if kind_of_or_none(target) in (None, Kind.BOOLEAN):
        return False
    return promote(target, source) == target


def _legality(found: tuple[Window, ...], kernel: Kernel) -> Legality:
    temporaries = sorted({w.moving.name for w in found if isinstance(w.moving, Bind)})
    unused = f"; `{'`, `'.join(temporaries)}` is not used afterwards" if temporaries else ""
    if kernel.context.decorators:
        return Legality(
            Applicability.DISPLAY,
            f"what `{kernel.context.decorators[0]}` makes of the new text is not known",
        )
    kinds = {kind_of_or_none(kernel.dtype(window.target)) for window in found}
    overlapping = [w for w in found if _may_overlap(w, kernel)]
    if overlapping and not kinds - {Kind.INTEGER}:
        window = overlapping[0]
        return Legality(
            Applicability.UNSAFE,
            f"results are equal bit for bit if `{window.target}` and `{window.source}` do not"
            f" overlap in memory, which is up to the caller{unused}",
        )
    if kinds - {Kind.INTEGER}:
        return Legality(
            Applicability.UNSAFE,
            "a window becomes the difference of two sums of all elements before its ends, and is"
            " off by their rounding, which grows with the axis; a NaN or an infinity reaches every"
            f" window behind it{unused}",
        )
    return Legality(
        Applicability.SAFE,
        "integer sums are associative, also where they wrap around at the width of their type,"
        f" so every result is equal bit for bit{unused}",
    )


def _may_overlap(window: Window, kernel: Kernel) -> bool:
    fresh = isinstance(window.start, Bind)
    return not fresh and may_share(window.target, window.source, kernel)


def _proposal(kernel: Kernel, found: tuple[Window, ...], title: str) -> Proposal:
    taken = set(kernel.context.identifiers)
    rewritten: list[_Rewritten] = []
    for window in found:
        new = _rewrite(window, kernel, taken)
        taken |= {new.running}
        rewritten.append(new)
    variant = _variant(kernel, rewritten)
    return Proposal(
        title=title,
        reason=(
            "every shift passes over the whole block and sends a message, once for each term of"
            " the window; a prefix scan costs the same however wide the window is"
        ),
        span=first_line(found[0].loop.span, kernel.context),
        variant=variant,
        legality=_legality(found, kernel),
        edits=partial(window_edits, tuple((new.window, new.running) for new in rewritten), kernel),
    )


@dataclass(frozen=True, slots=True)
class _Rewritten:
    window: Window
    running: str
    running_array: LocalArray
    at_start: tuple[Statement, ...]
    at_loop: tuple[Statement, ...]


def _rewrite(window: Window, kernel: Kernel, taken: set[str]) -> _Rewritten:
    """Return a window as a scan, in the intermediate form."""
    axis, extents = window.axis, kernel.extents(window.target)
    dtype = kernel.dtype(window.target)
    running = fresh_name("running", taken)
    lag = lag_of(window, extents[axis])
    source: Value = Read(window.source, whole(extents))
    scanned = extents
    if window.periodic:
        ahead = ahead_of(window, lag)
        before, after = (lag - ahead, ahead) if window.side < 0 else (ahead, lag - ahead)
        source = PeriodicPad(source, axis, before, after)
        scanned = (*extents[:axis], extents[axis] + lag, *extents[axis + 1 :])
    scan = Scan(source, axis, "add", dtype, reverse=window.side > 0)
    start = window.start.span
    low = along(axis, Range(ZERO, scanned[axis] - lag), scanned)
    high = along(axis, Range(lag, scanned[axis]), scanned)
    more, less = (high, low) if window.side < 0 else (low, high)
    at_loop: tuple[Statement, ...] = ()
    if window.periodic:
        value: Value = Elementwise("subtract", (Read(running, more), Read(running, less)))
    else:
        value = Read(running, whole(extents))
        part = Read(window.target, more)
        difference = Elementwise("subtract", (part, Read(running, less)))
        at_loop = (Store(window.target, more, difference, window.loop.span, in_place=True),)
    fresh = isinstance(window.start, Bind)
    started: Statement
    if fresh:
        made = value if window.periodic else Copy(value, dtype)
        started = Bind(window.target, made, start)
    else:
        started = Store(window.target, whole(extents), value, start)
    at_start = (Bind(running, scan, start), started)
    return _Rewritten(window, running, LocalArray(dtype, scanned), at_start, at_loop)


def _variant(kernel: Kernel, rewritten: list[_Rewritten]) -> Kernel:
    body = kernel.body
    for new in rewritten:
        window = new.window
        changes = {id(window.start): new.at_start, id(window.loop): new.at_loop}
        if window.moving is not None:
            changes[id(window.moving)] = ()
        body = replaced(body, changes)
    variant = kernel.with_body(body)
    return variant.with_locals({new.running: new.running_array for new in rewritten})


def _tables(kernel: Kernel, found: tuple[Window, ...]) -> Iterator[Proposal]:
    """Yield two windows along two axes as one summed-area table, the published formulation."""
    for first, second in pairwise(found):
        if not _makes_table(first, second, kernel):
            continue
        yield Proposal(
            title="sum both axes first and combine four corners of one table",
            reason="two scans and three shifts by the width of the window serve both axes",
            span=first_line(first.loop.span, kernel.context),
            variant=_table_variant(kernel, first, second),
            legality=_legality((first, second), kernel),
            edits=tuple,
        )


def _makes_table(first: Window, second: Window, kernel: Kernel) -> bool:
    if second.source != first.target or first.axis == second.axis:
        return False
    if kernel.dtype(first.target) != kernel.dtype(second.target):
        return False
    if first.periodic or second.periodic or (first.side, second.side) != (-1, -1):
        return False
    own = {id(s) for w in (first, second) for s in (w.start, w.moving, w.loop)}
    return first.target in kernel.locals and not any(
        first.target in mentioned(statement)
        for statement in kernel.body
        if id(statement) not in own
    )


def _table_variant(kernel: Kernel, first: Window, second: Window) -> Kernel:
    extents, dtype = kernel.extents(second.target), kernel.dtype(second.target)
    table = fresh_name("running", kernel.context.identifiers)
    lags = {window.axis: lag_of(window, extents[window.axis]) for window in (first, second)}
    scan = Scan(Read(first.source, whole(extents)), first.axis, "add", dtype)
    span = second.loop.span

    def corner(axes: tuple[int, ...], operation: str) -> Store:
        place, taken = list(whole(extents)), list(whole(extents))
        for axis in axes:
            place[axis] = Range(lags[axis], extents[axis])
            taken[axis] = Range(ZERO, extents[axis] - lags[axis])
        target = Read(second.target, tuple(place))
        value = Elementwise(operation, (target, Read(table, tuple(taken))))
        return Store(second.target, tuple(place), value, span, in_place=True)

    made: tuple[Statement, ...] = (
        Bind(table, Scan(scan, second.axis, "add", dtype), first.start.span),
        Bind(second.target, Copy(Read(table, whole(extents)), dtype), second.start.span),
        corner((first.axis,), "subtract"),
        corner((second.axis,), "subtract"),
        corner((first.axis, second.axis), "add"),
    )
    changes: dict[int, tuple[Statement, ...]] = {
        id(statement): ()
        for window in (first, second)
        for statement in (window.start, window.moving, window.loop)
        if statement is not None
    }
    changes[id(second.loop)] = made
    variant = kernel.with_body(replaced(kernel.body, changes))
    return variant.with_locals({table: LocalArray(dtype, extents)})


TRANSFORM = KernelRule("ADV201", "repeated-shifts", __doc__, propose)
