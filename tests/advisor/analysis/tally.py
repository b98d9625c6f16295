"""What a process says that one rank does, counted by running it."""

from collections import Counter
from collections.abc import Mapping
from math import prod

from costdb.expr import Expr, evaluate
from costdb.work import (
    Branch,
    Collective,
    Interpretation,
    Leaf,
    Message,
    PrefixScan,
    Process,
    SeqLoop,
    Sequential,
    Work,
)
from costdb.work import Statement as Computation


class Tally:
    """What a process says one rank does, counted by running it."""

    def __init__(self, process: Process, sizes: Mapping[str, int]) -> None:
        self.totals: Counter[str] = Counter()
        self.regions: list[tuple[str, int, tuple[int, ...], tuple[int, ...]]] = []
        self.collectives: Counter[tuple[str, int, int]] = Counter()
        self._process(process, dict(sizes))

    @property
    def sizes(self) -> list[int]:
        """Elements of each message, ascending."""
        return sorted(prod(counts) for _, _, counts, _ in self.regions)

    def _process(self, process: Process, sizes: dict[str, int]) -> None:
        match process:
            case Sequential(parts):
                for part in parts:
                    self._process(part, sizes)
            case SeqLoop(variable, low, high, body):
                first, last = _number(low, sizes), _number(high, sizes)
                for index in range(first, last + 1):
                    self._process(body, {**sizes, variable: index})
            case Branch(condition, then, orelse):
                taken = _number(condition, sizes)
                assert taken in (0, 1)
                self._process(then if taken else orelse, sizes)
            case Leaf(work):
                self._work(work, sizes)
            case _:
                raise AssertionError(f"{process} is not expected here")

    def _work(self, work: Work, sizes: Mapping[str, int]) -> None:
        totals = self.totals
        match work:
            case Message(region, label):
                counts = tuple(_number(count, sizes) for count in region.counts)
                pitches = tuple(_number(pitch, sizes) for pitch in region.pitches_bytes)
                assert prod(counts) > 0, "an empty message"
                totals["messages"] += 1
                totals["elements"] += prod(counts)
                totals["bytes"] += prod(counts) * region.itemsize_bytes
                self.regions.append((label, region.itemsize_bytes, counts, pitches))
            case Computation(accesses, operations, _):
                for access in accesses:
                    counts = tuple(_number(count, sizes) for count in access.region.counts)
                    totals["stores" if access.store else "loads"] += prod(counts)
                totals["operations"] += _number(operations, sizes)
            case PrefixScan(_, _, block, _):
                totals["scanned"] += prod(_number(count, sizes) for count in block.counts)
            case Collective(kind, ranks, region, _):
                counts = tuple(_number(count, sizes) for count in region.counts)
                self.collectives[str(kind), _number(ranks, sizes), prod(counts)] += 1
            case Interpretation(loop=False):
                pass  # what the interpreter does for single elements is counted elsewhere
            case _:
                raise AssertionError(f"{work} is not expected here")


def _number(expr: Expr, sizes: Mapping[str, int]) -> int:
    found = evaluate(expr, sizes)
    assert found == int(found)
    return int(found)
