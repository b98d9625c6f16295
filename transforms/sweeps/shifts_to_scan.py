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

**Fix safety.** Safe on integers in arrays that the function makes: their sums are associative, also
where they wrap around at the width of the type, so that results are equal bit for bit. Unsafe on
floating-point and complex numbers: a difference of two long sums loses the digits that the sums are
longer than the window, so that windows of a million 32-bit numbers are off by per cents and those
of 64-bit numbers in the eleventh digit; and a NaN or an infinity, which spoils the windows that
have it, spoils every later one.

**Models used.** Lines (messages, scans, array statements).

**References.** The crossover between shifts and scans, and why a model without cache effects
puts it wrongly, is from the study of communication costs with cache effects for ZPL and MPI
programs on the Cray T3E, IBM SP-2 and Sun Enterprise 5000.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.ir.kernel import Kernel, Legality, LocalArray, Proposal
from advisor.ir.shapes import kind_of_or_none, whole
from advisor.ir.statements import Bind, Statement, Store
from advisor.ir.values import Copy, Elementwise, PeriodicPad, Range, Read, Scan, Value
from advisor.numpy_table import Kind, promote
from advisor.source import Edit
from costdb.expr import Expr, maximum, minimum, num, python_text, sym
from costdb.records import dataclass
from transforms.kit import rewrite
from transforms.kit.kernels import KernelRule, along, offered, replaced, safe, unsafe
from transforms.sweeps.windows import Window, may_share, windows

_EXTENT = "axis.extent"
_LAG = "window.lag"
_BUILTINS = frozenset({"max", "min"})


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield all windows by scans together, and each alone."""
    found = tuple(w for w in windows(kernel) if _types_allow(w, kernel))
    if not found:
        return
    yield _proposal(kernel, found, "sum its windows by prefix scans, not by repeated shifts")
    if len(found) > 1:
        for window in found:
            title = f"scan only along axis {window.axis} (line {window.loop.span.start_line})"
            yield _proposal(kernel, (window,), title)


def _types_allow(window: Window, kernel: Kernel) -> bool:
    target, source = kernel.dtype(window.target), kernel.dtype(window.source)
    # prefix sums in half precision overflow, or have lost their terms
    if kind_of_or_none(target) in (None, Kind.BOOLEAN) or target == "float16":
        return False
    return promote(target, source) == target


def _legality(found: tuple[Window, ...], kernel: Kernel) -> Legality:
    temporaries = sorted({w.moving.name for w in found if isinstance(w.moving, Bind)})
    unused = f"; `{'`, `'.join(temporaries)}` is not used afterwards" if temporaries else ""
    kinds = {kind_of_or_none(kernel.dtype(window.target)) for window in found}
    overlapping = [w for w in found if _may_overlap(w, kernel)]
    if overlapping and not kinds - {Kind.INTEGER}:
        window = overlapping[0]
        return unsafe(
            f"results are equal bit for bit if `{window.target}` and `{window.source}` do not"
            f" overlap in memory, which is up to the caller{unused}"
        )
    if kinds - {Kind.INTEGER}:
        return unsafe(
            "a window becomes the difference of two sums of all elements before its ends, and is"
            " off by their rounding, which grows with the axis; a NaN or an infinity reaches every"
            f" window behind it{unused}"
        )
    return safe(
        "integer sums are associative, also where they wrap around at the width of their type,"
        f" so every result is equal bit for bit{unused}"
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
    return offered(
        kernel,
        title=title,
        reason=(
            "every shift passes over the whole block and sends a message, once for each term of"
            " the window; a prefix scan costs the same however wide the window is"
        ),
        span=rewrite.first_line(found[0].loop.span, kernel.context),
        variant=variant,
        argued=_legality(found, kernel),
        edits=partial(_edits, tuple((new.window, new.running) for new in rewritten), kernel),
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
    running = rewrite.fresh_name("running", taken)
    lag = _lag_of(window, extents[axis])
    source: Value = Read(window.source, whole(extents))
    scanned = extents
    if window.periodic:
        ahead = _ahead_of(window, lag)
        before, after = (lag - ahead, ahead) if window.side < 0 else (ahead, lag - ahead)
        source = PeriodicPad(source, axis, before, after)
        scanned = (*extents[:axis], extents[axis] + lag, *extents[axis + 1 :])
    scan = Scan(source, axis, "add", dtype, reverse=window.side > 0)
    start = window.start.span
    low = along(axis, Range(num(0), scanned[axis] - lag), scanned)
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
    at_start: tuple[Statement, ...] = (Bind(running, scan, start),)
    if _copied_to(window, kernel) is not None:
        at_start += (Bind(window.target, Copy(value, dtype), start),)
    else:
        # what makes the array says how it lies in memory
        kept = (window.start,) if isinstance(window.start, Bind) else ()
        stored = Store(window.target, whole(extents), value, start, in_place=bool(window.periodic))
        at_start = (*kept, *at_start, stored)
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


# --- the source ---------------------------------------------------------------------------------


def _lag_of(window: Window, extent: Expr) -> Expr:
    """Return the distance between the two prefix sums whose difference is a window.

    It is right for any whole number of terms, and for arrays of any extent, none included.
    """
    terms = maximum(window.terms, num(window.least))
    if window.periodic:
        # nothing can be wrapped around an empty axis, nor need it be
        return terms * minimum(extent, num(1))
    # windows of no term at all and windows beyond the edge both come out right
    return terms if window.least else minimum(terms, extent)


def _ahead_of(window: Window, lag: Expr) -> Expr:
    """Return by how much a periodic window is moved to its other side, none if it has no term."""
    return num(0) if window.ahead == num(0) else minimum(maximum(window.ahead, num(0)), lag)


def _edits(found: tuple[tuple[Window, str], ...], kernel: Kernel) -> tuple[Edit, ...]:
    """Return the edits that write windows as scans.

    Parameters
    ----------
    found : tuple of (Window, str)
        Each window, and the name of the array that is to hold its prefix sums.
    kernel : Kernel

    Returns
    -------
    tuple of Edit
        In order of their places; empty where the source does not allow a mechanical edit:
        several statements on a line, no name for the array module, a size that has no name
        inside the function, or a builtin that means something else there.
    """
    context = kernel.context
    if context.array_module is None or context.not_builtins & _BUILTINS or context.decorators:
        return ()
    taken = set(context.identifiers) | {running for _, running in found}
    lags: dict[str, str] = {}
    edits: list[Edit] = []
    for window, running in found:
        touched = [s for s in (window.start, window.moving, window.loop) if s is not None]
        texts = {**context.scalar_texts, _EXTENT: f"{window.source}.shape[{window.axis}]"}
        width = python_text(_lag_of(window, sym(_EXTENT)), texts)
        if width is None or not all(rewrite.stands_alone(context, s.span) for s in touched):
            return ()
        # equal widths may share a name; others may not, for windows may be interleaved
        lag = lags.get(width) or rewrite.fresh_name("lag", taken)
        lags[width] = lag
        ahead = rewrite.fresh_name("ahead", taken)
        reach = python_text(_ahead_of(window, sym(_LAG)), {**texts, _LAG: lag})
        if reach is None:
            return ()
        taken |= {lag, ahead} if reach != "0" else {lag}
        at_start, at_loop = _lines(window, kernel, running, (lag, width), (ahead, reach))
        edits.append(rewrite.replace_statement(window.start.span, at_start, context))
        edits.append(rewrite.replace_statement(window.loop.span, at_loop, context))
        if window.moving is not None:
            edits.append(rewrite.replace_statement(window.moving.span, [], context))
    return tuple(sorted(edits, key=lambda edit: edit.span))


def _lines(
    window: Window,
    kernel: Kernel,
    running: str,
    lagging: tuple[str, str],
    reaching: tuple[str, str],
) -> tuple[list[str], list[str]]:
    """Return the lines at the start and at the loop.

    Parameters
    ----------
    window : Window
    kernel : Kernel
    running : str
        The name of the prefix sums.
    lagging, reaching : tuple of (str, str)
        The name and the value of the width, and of what lies on the other side.
    """
    module, dtype = kernel.context.array_module, kernel.dtype(window.target)
    (lag, width), (ahead, reach) = lagging, reaching
    extent = f"{window.source}.shape[{window.axis}]"
    dimensions = range(len(kernel.extents(window.target)))

    def at(text: str) -> str:
        return ", ".join(text if d == window.axis else ":" for d in dimensions)

    before, source = [], window.source
    low, high = f": {extent} - {lag}", f"{lag}:"
    if window.periodic:
        # the array is extended by its other end
        before, far, near = [f"{lag} = {width}"], lag, "0"
        if reach != "0":
            before, far, near = [*before, f"{ahead} = {reach}"], f"{lag} - {ahead}", ahead
        around = f"({far}, {near})" if window.side < 0 else f"({near}, {far})"
        widths = ", ".join(around if d == window.axis else "(0, 0)" for d in dimensions)
        comma = "," if len(dimensions) == 1 else ""
        source = f'{module}.pad({source}, ({widths}{comma}), mode="wrap")'
        low = f": {extent}"
    elif window.least:
        low = f":-{lag}"
    more, less = map(at, (high, low) if window.side < 0 else (low, high))
    context = kernel.context
    first = f"{window.target}[...] = {running}"
    behind: list[str] = []
    if window.periodic:
        first = f"{module}.subtract({running}[{more}], {running}[{less}], out={window.target})"
    else:
        behind = [f"{lag} = {width}", f"{window.target}[{more}] -= {running}[{less}]"]
    kind = f"{window.source}.dtype" if dtype == kernel.dtype(window.source) else f"{module}.{dtype}"
    back = "" if window.side < 0 else f"[{at('::-1')}]"
    scan = f"{module}.cumsum({source}{back}, axis={window.axis}, dtype={kind}){back}"
    bound = _copied_to(window, kernel)
    if bound is not None:
        first = f"{bound}{running}.copy()"
    elif isinstance(window.start, Bind):
        text, node = (
            context.text(window.start.span),
            rewrite.statement_at(window.start.span, context),
        )
        before.insert(0, ast.unparse(node) if node is not None and "\n" in text else text)
    return [*before, f"{running} = {scan}", first], behind


def _copied_to(window: Window, kernel: Kernel) -> str | None:
    """Return what stands before the copy by rows that a sum begins with; None where none does."""
    context, span = kernel.context, window.start.span
    match rewrite.statement_at(span, context):
        case (
            ast.Assign(value=ast.Call(ast.Attribute(_, "copy"), args=[], keywords=[]) as made)
            | ast.AnnAssign(value=ast.Call(ast.Attribute(_, "copy"), args=[], keywords=[]) as made)
        ) if isinstance(window.start, Bind) and not window.periodic:
            text, value = (context.text(at) for at in (span, rewrite.span_of(made, context.lines)))
            return text.removesuffix(value) if text.endswith(value) and "\n" not in text else None
    return None


TRANSFORM = KernelRule("ADV201", "repeated-shifts", __doc__, propose)
