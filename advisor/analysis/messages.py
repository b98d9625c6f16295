"""What a process sends, counted: the evidence for what a price says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from costdb.expr import Expr, evaluate, free_symbols, num, substitute
from costdb.lines.symbolic import region_line_bounds
from costdb.process.terms import Branch, Leaf, Parallel, ParLoop, Process, SeqLoop, Sequential
from costdb.work import Message, PrefixScan, Region

Sizes = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A kind of message at given sizes.

    Attributes
    ----------
    label : str
    elements, itemsize_bytes, line_bytes : int
    lines_low, lines_high : int
        Distinct cache lines touched while marshalling one message, over all starts.
    """

    label: str
    elements: int
    itemsize_bytes: int
    line_bytes: int
    lines_low: int
    lines_high: int

    def __str__(self) -> str:
        """Describe the message in one line."""
        if self.lines_low == self.lines_high:
            lines = f"{self.lines_low}"
        else:
            lines = f"{self.lines_low} to {self.lines_high}"
        return (
            f"{self.label}: {self.elements} elements of {self.itemsize_bytes} B each time,"
            f" on {lines} cache lines of {self.line_bytes} B"
        )


def transfers(process: Process, sizes: Sizes, line_bytes: int) -> tuple[Transfer, ...]:
    """Return the kinds of messages a process sends, each once, in program order.

    Messages whose size depends on a loop's index are left out.
    """
    found: dict[Transfer, None] = {}
    for label, region in _regions(process):
        transfer = _at(label, region, sizes, line_bytes)
        if transfer is not None:
            found[transfer] = None
    return tuple(found)


def _regions(process: Process) -> Iterator[tuple[str, Region]]:
    match process:
        case Leaf(Message(region, label)):
            yield label, region
        case Leaf(PrefixScan(ranks, edge, _, label)) if ranks != num(1):
            yield f"{label}, each step", edge
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from _regions(part)
        case SeqLoop() | ParLoop():
            yield from _regions(process.body)
        case Branch(_, then, orelse):
            yield from _regions(then)
            yield from _regions(orelse)
        case _:
            return


def _at(label: str, region: Region, sizes: Sizes, line_bytes: int) -> Transfer | None:
    bound = dict(sizes)

    def value(expr: Expr) -> Expr:
        return substitute(expr, {name: num(size) for name, size in bound.items()})

    fixed = Region(
        region.itemsize_bytes,
        tuple(map(value, region.counts)),
        tuple(map(value, region.pitches_bytes)),
        None if region.start_bytes is None else value(region.start_bytes),
    )
    elements = num(1)
    for count in fixed.counts:
        elements = elements * count

    if free_symbols(elements):
        return None
    low, high = region_line_bounds(fixed, line_bytes)
    number = int(evaluate(elements, {}))
    if number == 0:
        return None
    return Transfer(
        label,
        number,
        region.itemsize_bytes,
        line_bytes,
        int(evaluate(low, {})),
        int(evaluate(high, {})),
    )
