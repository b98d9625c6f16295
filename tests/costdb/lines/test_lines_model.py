"""Prices of the lines model against hand-made sums, on machines made for the test."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from costdb.evaluate import Missing, Priced, evaluate_price
from costdb.expr import Expr, num, sym
from costdb.lines.model import (
    price_collective,
    price_message,
)
from costdb.machines import Json, Machine, MachineError, machine_of
from costdb.quantity import Provenance
from costdb.work import Collective, CollectiveKind, Message, Region
from tests.costdb.made_up import HEADING, LOCAL, MESSAGE, graded, microseconds, quantity

N, P = sym("N"), sym("P")


STEP: dict[str, Json] = {
    "call_us": quantity(3, "us"),
    "pieces": graded([(None, 0.002)]),
}


def machine(origin: str = "test.json", /, collectives: Json = None, **lines: Json) -> Machine:
    sections = {"message": MESSAGE, "scan": LOCAL, "statement": LOCAL, **lines}
    return machine_of(
        {
            **HEADING,
            "sources": {"test": "made up"},  # not a calibration
            "hardware": {"cache_line_bytes": quantity(64, "byte")},
            "lines": {k: v for k, v in sections.items() if v is not None},
            **({"collectives": collectives} if collectives else {}),
        },
        origin,
    )


def region(counts: tuple[Expr | int, ...], pitches: tuple[Expr | int, ...]) -> Region:
    def exprs(sizes: tuple[Expr | int, ...]) -> tuple[Expr, ...]:
        return tuple(num(s) if isinstance(s, int) else s for s in sizes)

    return Region(4, exprs(counts), exprs(pitches))


ROW = region((1, N), (4 * N, 4))
COLUMN = region((N, 1), (4 * N, 4))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 8, 17])
def test_collectives_follow_their_textbook_algorithms(ranks: int) -> None:
    message = microseconds(price_message(Message(COLUMN), machine()), N=100)
    add = 0.003 * 100
    tree, doubling = math.ceil(math.log2(ranks)), math.floor(math.log2(ranks))
    odd = tree - doubling
    expected = {
        CollectiveKind.BROADCAST: tree * message,
        CollectiveKind.REDUCE: tree * (message + add),
        CollectiveKind.ALLREDUCE: (doubling + 2 * odd) * message + (doubling + odd) * add,
        CollectiveKind.ALLGATHER: (ranks - 1) * message,
        CollectiveKind.ALLTOALL: (ranks - 1) * message,
        CollectiveKind.GATHER: (ranks - 1) * message,
        CollectiveKind.SCATTER: (ranks - 1) * message,
        CollectiveKind.ALLGATHERV: (ranks - 1) * message,
        CollectiveKind.ALLTOALLV: (ranks - 1) * message,
        CollectiveKind.PREFIX: tree * (message + add),
        CollectiveKind.REDUCE_SCATTER: halving(100, ranks),
    }
    assert set(expected) == set(CollectiveKind)
    for kind, time in expected.items():
        priced = price_collective(Collective(kind, P, COLUMN), machine())
        assert microseconds(priced, N=100, P=ranks) == pytest.approx(time)


def halving(count: int, ranks: int) -> float:
    """Return what halving takes that sends and adds as many blocks as there are other ranks."""
    tree = math.ceil(math.log2(ranks))
    if not tree:
        return 0.0
    numbers = Fraction(count * (ranks - 1), tree)
    lines = (math.ceil(numbers * 4 / 64) + (math.ceil(numbers * 4 / 64) + 1)) / 2
    return tree * (10 + 0.01 * float(4 * numbers) + 0.5 * lines + 0.003 * float(numbers))


@pytest.mark.parametrize("kind", CollectiveKind)
@pytest.mark.parametrize("measured", [(), tuple(CollectiveKind)])
def test_what_is_derived_says_so_and_is_uncertain(
    kind: CollectiveKind, measured: tuple[str, ...]
) -> None:
    here = machine(collectives={"steps": dict.fromkeys(measured, STEP)} if measured else None)
    priced = price_collective(Collective(kind, num(4), ROW), here)
    assert isinstance(priced, Priced)
    found = evaluate_price(priced, {"N": 5000})
    if kind is CollectiveKind.REDUCE_SCATTER and not measured:
        assert found.provenance is Provenance.DERIVED
        assert found.high > 1.9 * found.mid
        assert found.low < 0.9 * found.mid
        assert f"collectives.{kind}.derived" in priced.coefficients
    else:
        assert not [name for name in priced.coefficients if name.endswith("derived")]


@pytest.mark.parametrize(
    ("notes", "remedy"),
    [
        (("steady",), "advise calibrate, on this machine"),
        (("messages: left out: mpi4py missing",), "pip install 'kernel-advisor[calibrate]', then "),
    ],
)
def test_what_a_calibration_left_out_needs_its_packages(
    notes: tuple[str, ...], remedy: str
) -> None:
    measured = machine("store", message={"alpha_us": MESSAGE["alpha_us"]})
    poor = replace(measured, notes=notes, sources={"calibration": "2026-11-22"})
    missing = price_message(Message(COLUMN), poor)
    assert isinstance(missing, Missing)
    assert missing.remedy.startswith(remedy)


def test_a_profile_without_a_line_size_says_so() -> None:
    whole = machine()
    document = {k: v for k, v in whole.document.items() if k != "hardware"}
    missing = price_message(Message(COLUMN), machine_of(document, "mine.json"))
    assert isinstance(missing, Missing)
    assert missing.what == 'machine "test" has no hardware.cache_line_bytes'


def test_a_malformed_section_is_refused_with_its_place() -> None:
    place = "/lines/range/message_bytes"
    with pytest.raises(MachineError, match=rf"^test.json: {place}: expected \[low, high"):
        price_message(Message(COLUMN), machine(range={"message_bytes": [9, 8]}))
