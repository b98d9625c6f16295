"""Groups of remote references priced by the published rates of four UPC platforms."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.evaluate import Missing, Priced, evaluate_price
from costdb.expr import num, sym
from costdb.machines import Machine, MachineError, load_machine, machine_of
from costdb.pgas.partition import price_remote_group, served_pattern
from costdb.pricing import price_process
from costdb.quantity import Provenance
from costdb.work import Leaf, Pattern, RemoteGroup

PUBLISHED = json.loads((Path(__file__).parents[2] / "data" / "pgas_upc.json").read_text())
PLATFORMS = tuple(PUBLISHED["rates"])
MACHINES = {name: load_machine(name) for name in PLATFORMS}
T = sym("T")


def gap_by_hand(platform: str, pattern: str, kind: str, threads: int) -> Fraction:
    rates = PUBLISHED["rates"][platform][pattern]
    few, many = (Fraction(1_000_000) / rates[count][kind] for count in ("2", "12"))
    return few + (many - few) * Fraction(min(max(threads, 2), 12) - 2, 10)


def priced(group: RemoteGroup, machine: Machine) -> Priced:
    found = price_remote_group(group, machine)
    assert not isinstance(found, Missing)
    return found


@given(
    platform=st.sampled_from(PLATFORMS),
    pattern=st.sampled_from(list(Pattern)),
    store=st.booleans(),
    mixed=st.booleans(),
    count=st.integers(0, 10**9),
    threads=st.integers(1, 20),
)
@settings(max_examples=60, deadline=None)
def test_a_group_takes_its_count_times_its_gap(
    platform: str, pattern: Pattern, store: bool, mixed: bool, count: int, threads: int
) -> None:
    machine = MACHINES[platform]
    kind = "write" if store else "read"
    served = served_pattern(machine, pattern, store)
    each = gap_by_hand(platform, served, kind, threads)
    if mixed:
        local = gap_by_hand(platform, "local", kind, threads)
        each = each * Fraction(threads - 1, threads) + local * Fraction(1, threads)
    group = RemoteGroup(sym("N"), T, pattern, store, mixed)
    estimate = evaluate_price(priced(group, machine), {"N": count, "T": threads})
    assert estimate.mid == pytest.approx(float(each * count) * 1e-6, rel=1e-9)
    assert estimate.low <= estimate.mid <= estimate.high
    assert (estimate.low < estimate.high) is (count > 0)
    assert estimate.in_range is (2 <= threads <= 12)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_interval_is_the_worst_published_precision(platform: str) -> None:
    printed = PUBLISHED["precision"]
    worst = max(
        printed["matmul"][platform],
        printed["sobel"][platform],
        *map(abs, printed["histogram"].get(platform, [0])),
    )
    found = priced(RemoteGroup(num(1000), num(2), Pattern.BASELINE), MACHINES[platform])
    estimate = evaluate_price(found, {})
    # (predicted - measured) / measured, either way.
    assert estimate.mid / estimate.low == pytest.approx(1 + worst / 100, abs=1e-3)
    assert estimate.mid / estimate.high == pytest.approx(1 - worst / 100, abs=1e-3)
    assert estimate.provenance is Provenance.PUBLISHED


def test_a_machine_without_rates_says_what_is_missing() -> None:
    group = RemoteGroup(num(1), T, Pattern.VECTOR)
    missing = price_remote_group(group, load_machine("powerchallenge"))
    assert isinstance(missing, Missing)
    assert "pgas.rates.baseline for reads" in missing.what
    assert price_process(Leaf(group), load_machine("powerchallenge")) == missing


@pytest.mark.parametrize(
    ("pgas", "said"),
    [
        ({"rates": {"baseline": {"2": {}}}}, "/pgas/rates/baseline/2: expected t and a number"),
        ({"rates": {"baseline": {"t2": {"read": 5}}}}, "/pgas/rates/baseline/t2/read: expected"),
        ({"optimizations": {"vector": "reads"}}, "/pgas/optimizations/vector: expected a list"),
    ],
)
def test_a_malformed_section_is_refused_with_its_place(pgas: dict[str, object], said: str) -> None:
    document = json.loads(json.dumps(dict(MACHINES["mupc"].document)))
    document["pgas"] |= pgas
    with pytest.raises(MachineError, match=said):
        price_remote_group(
            RemoteGroup(num(1), T, Pattern.VECTOR), machine_of(document, "mine.json")
        )


@pytest.mark.parametrize("rate", [0, -5.0])
def test_a_rate_that_is_not_positive_is_refused(rate: float) -> None:
    document = json.loads(json.dumps(dict(MACHINES["mupc"].document)))
    document["pgas"]["rates"]["baseline"]["t2"]["read"]["value"] = rate
    with pytest.raises(MachineError, match=r"negative|above 0") as caught:
        price_remote_group(
            RemoteGroup(num(1), T, Pattern.BASELINE), machine_of(document, "mine.json")
        )
    assert "/pgas/rates" in str(caught.value)
