"""The other MPI sections: fits recover what made the times, and two real ranks do every action."""

from __future__ import annotations

import numpy as np
import pytest

from costdb.calibration import pickled, remote
from costdb.calibration.fitting import fit_above, graded_columns, predict
from costdb.calibration.pickled import COLLECTIVES, LIMITS, STEP_LIMITS
from costdb.calibration.section import Point
from costdb.evaluate import Priced, evaluate_price
from costdb.expr import num
from costdb.machines import Machine
from costdb.pricing import price_work
from costdb.work import (
    PICKLED_KINDS,
    Barrier,
    Collective,
    CollectiveKind,
    Pattern,
    PickledCollective,
    PickledMessage,
    Region,
    RemoteGroup,
    Work,
)
from tests.costdb.calibration.simulated import profile_of, timings
from tests.costdb.hosts import EPYC
from tests.ranks import on_ranks


def microseconds(work: Work, here: Machine) -> float:
    priced = price_work(work, here)
    assert isinstance(priced, Priced), priced
    return evaluate_price(priced, {}).mid * 1e6


def array(size_bytes: float) -> Region:
    return Region(8, (num(int(size_bytes) // 8),), (num(8),))


def graded(size: float, call: float, rates: tuple[float, ...], limits: tuple[int, ...]) -> float:
    coefficients = {"call_us": call, **{f"pieces.{n}": rate for n, rate in enumerate(rates)}}
    return float(predict(graded_columns(np.array([size]), limits), coefficients)[0])


@pytest.mark.parametrize("seed", range(5))
def test_graded_steps_are_recovered(seed: int) -> None:
    draw = np.random.default_rng(seed)
    sizes = np.exp(draw.uniform(np.log(8), np.log(4e6), 60))
    rates = tuple(draw.uniform(1e-5, 1e-3, len(LIMITS) + 1))
    exact = np.array([graded(size, 4.0, rates, LIMITS) for size in sizes])
    columns = graded_columns(sizes, LIMITS)
    found = fit_above(columns, exact)
    assert found["call_us"] == pytest.approx(4.0)
    assert [found[f"pieces.{n}"] for n in range(len(rates))] == pytest.approx(rates)
    noisy = fit_above(columns, exact * np.exp(0.05 * draw.standard_normal(60)))
    assert min(noisy.values()) > 0
    errors = predict(columns, noisy) / exact - 1
    assert np.median(np.abs(errors)) < 0.05


# Pickled messages.

PARTS = {
    "dump": (4.0, (4e-5, 1e-5, 3e-5, 9e-4, 4e-4)),
    "load": (2.5, (2e-5, 1e-5, 2e-5, 2e-5, 3e-5)),
    "combine": (0.3, (4e-5, 2e-5, 2e-5, 2e-5, 4e-5)),
    "transfer": (1.0, (2e-4, 2e-4, 8e-5, 8e-4, 3e-4)),
}
ITEM_US = 0.02


def pickled_us(point: Point) -> float:
    size = float(point.features["bytes"])
    dump, load, combine, transfer = (
        graded(size, *PARTS[name], LIMITS) for name in ("dump", "load", "combine", "transfer")
    )
    sizes = PARTS["transfer"][0]
    name = point.operation.removeprefix("pickle.")
    up = 2 * dump + 2 * load + sizes + transfer + combine
    return {
        "dump": dump,
        "load": load,
        "combine": combine,
        "number": 0.2,
        "message": dump + transfer + load,
        "items": dump + transfer + load + ITEM_US * size / 8,
        "broadcast": dump + sizes + transfer + load,
        "gather": dump + sizes + transfer + 2 * load,
        "allgather": dump + sizes + transfer + 2 * load,
        "scatter": 2 * dump + sizes + transfer + load,
        "alltoall": 1.4 * (2 * dump + sizes + transfer + 2 * load),
        "reduce": up,
        "allreduce": up + dump + sizes + transfer + load,
    }[name]


@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 0.001), (0.05, 0.08)])
def test_pickled_steps_and_factors_are_recovered(noise: float, tolerance: float) -> None:
    made = timings(pickled.SECTION, pickled_us, noise)
    fitted = pickled.SECTION.fit(made, EPYC)
    here = profile_of(fitted.parts)
    for kind in PICKLED_KINDS:
        factor = here.quantity("pickle", "collectives", kind)
        assert factor is not None
        assert factor.value == pytest.approx(1.4 if kind == "alltoall" else 1, rel=0.03)
    for timing in made[::7]:
        name = timing.point.operation.removeprefix("pickle.")
        region = array(float(timing.point.features["bytes"]))
        work: Work
        if name == "message":
            work = PickledMessage(region)
        elif name == "items":
            work = PickledMessage(region, region.counts[0])
        elif name in PICKLED_KINDS:
            work = PickledCollective(CollectiveKind(name), num(2), region)
        else:
            continue
        expected = pickled_us(timing.point)
        assert microseconds(work, here) == pytest.approx(expected, rel=tolerance + 0.002), name
    assert {quality.operation for quality in fitted.qualities} >= {
        f"pickle.{kind}" for kind in (*PICKLED_KINDS, "dump", "load", "message")
    }
    assert max(quality.median_error for quality in fitted.qualities) < tolerance


# One-sided references.

RATES = {"baseline": (0.0, 1.25), "coalesce": (1.4, 3e-4), "vector": (1.2, 1e-4)}


def remote_us(point: Point) -> float:
    _, name, *kind = point.operation.split(".")
    words = float(point.features["words"])
    dearer = 1.1 if kind == ["write"] else 1.0
    if name == "barrier":
        return 2.3
    call, word = RATES.get(name, (0.0, 0.03 if name == "local" else 0.5))
    return dearer * (call + word * words)


def test_rates_and_calls_are_recovered() -> None:
    fitted = remote.SECTION.fit(timings(remote.SECTION, remote_us, 0.02), EPYC)
    here = profile_of(fitted.parts)
    for store, dearer in ((False, 1.0), (True, 1.1)):
        for pattern in Pattern:
            call, word = RATES.get(pattern.value, (0.0, 0.03))
            for calls in (0, 3):
                work = RemoteGroup(num(3000), num(2), pattern, store, calls=num(calls))
                expected = dearer * (3000 * word + calls * call)
                assert microseconds(work, here) == pytest.approx(expected, rel=0.04)
    assert microseconds(Barrier(num(2)), here) == pytest.approx(2.3, rel=0.03)
    assert microseconds(Barrier(num(8)), here) == pytest.approx(6.9, rel=0.03)


def test_calls_of_a_mixed_group_go_to_other_ranks_only() -> None:
    here = profile_of(remote.SECTION.fit(timings(remote.SECTION, remote_us), EPYC).parts)
    work = RemoteGroup(num(1000), num(2), Pattern.VECTOR, mixed=True, calls=num(10))
    expected = (1000 * 1e-4 + 10 * 1.2) / 2 + 1000 * 0.03 / 2
    assert microseconds(work, here) == pytest.approx(expected, rel=0.01)


# Collectives and scans.

STEP = (3.0, (3e-4, 6e-4, 1e-4, 5e-4, 1e-4, 9e-5, 1e-4))


def collective_us(point: Point) -> float:
    return graded(float(point.features["bytes"]), *STEP, STEP_LIMITS)


def test_steps_of_collectives_are_recovered() -> None:
    made = timings(COLLECTIVES, collective_us, 0.02)
    here = profile_of(COLLECTIVES.fit(made, EPYC).parts)
    for kind in CollectiveKind:
        work = Collective(kind, num(2), array(50_000))
        expected = graded(50_000.0 / (2 if kind == "reduce_scatter" else 1), *STEP, STEP_LIMITS)
        assert microseconds(work, here) >= 0.5 * expected
    without = [one for one in made if one.point.operation != "collective.prefix"]
    with pytest.raises(ValueError, match="too few points"):
        COLLECTIVES.fit(without, EPYC)


ALL_ACTIONS = """
from mpi4py import MPI
from costdb.calibration.section import Host
from costdb.calibration.section import Effort, World, find_section
from tests.costdb.hosts import EPYC
comm = MPI.COMM_WORLD
host = Host(comm.Get_size(), (), 64, "made up", "made up")
world = World(host, comm.Get_rank(), comm.Get_size(), comm)
done = set()
for section in map(find_section, ("messages", "collectives", "pickled", "remote")):
    every = 2 if section.name == "messages" else 1
    for point in section.points(Effort.QUICK, world.size, host)[::every]:
        action = section.action(point, world)
        action.run()
        action.close()
        done.add(point.operation)
comm.Barrier()
if world.rank == 0:
    print(*sorted(done))
"""


def test_two_real_ranks_do_every_action() -> None:
    operations = set(on_ranks(2, "-c", ALL_ACTIONS).split())
    assert {f"pickle.{kind}" for kind in PICKLED_KINDS} <= operations
    assert {f"collective.{kind}" for kind in CollectiveKind} <= operations
    assert {f"message.{kind}" for kind in ("row", "column", "stride")} <= operations
    assert {f"remote.{p}.{k}" for p in Pattern for k in ("read", "write")} <= operations
