"""``select`` takes what the prices say, and the first variant where they say nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import advisor
from advisor import select
from advisor.frontend.kernels import read_kernels
from advisor.observed import Seen, SeenArray, SeenNumber
from advisor.ranking.compare import Costed, cost
from advisor.selection import Selection
from costdb.evaluate import Priced, evaluate_price
from costdb.machines import load_machine
from tests.advisor.selection import selected_kernels as kernels
from tests.ranks import on_ranks

ROOT = Path(__file__).parents[3]
FILE = Path(kernels.__file__)


def predicted(name: str, sizes: dict[str, int], machine: str = "t3e") -> float:
    """The price of a kernel on whole arrays, found by the front end and the models alone."""
    priced = _priced(name, machine)
    return evaluate_price(priced, sizes).mid * 1e6


@cache
def _priced(name: str, machine: str) -> Priced:
    seen = Seen(
        name,
        1,
        "call",
        (SeenArray("image", "float64", 2, "C"),),
        (SeenNumber("b", "int64"),),
    )
    (kernel,) = [k for k in read_kernels(str(FILE), FILE.read_text(), [seen]) if k.name == name]
    found = cost(kernel, load_machine(machine))
    assert isinstance(found, Costed)
    return found.priced


CHOOSERS = {
    machine: select(kernels.many_passes, kernels.few_passes, machine=machine)
    for machine in ("t3e", "sp2")
}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 12), st.sampled_from(["t3e", "sp2"]))
def test_a_choice_is_the_least_of_the_models_prices(n: int, m: int, b: int, machine: str) -> None:
    decision = CHOOSERS[machine].decide(np.zeros((n, m)), b)
    sizes = {"image.axis0": n, "image.axis1": m, "b": b}
    times = [predicted(name, sizes, machine) for name in ("many_passes", "few_passes")]
    assert decision.times_us == pytest.approx(times)
    least = min(times)
    assert decision.variant == (0 if times[0] <= 1.01 * least else 1)
    assert decision.why == ("predicted" if max(times) > 1.01 * least else "tie")


def test_the_chosen_variant_is_called_with_the_same_arguments() -> None:
    best = select(kernels.many_passes, kernels.few_passes, machine="t3e")
    image = np.arange(12.0).reshape(3, 4)
    assert np.array_equal(best(image, 5), image * 6)
    assert np.array_equal(best(image, b=5), image * 6)
    assert np.array_equal(best(b=5, image=image), image * 6)
    assert best.counts == {"many_passes": {}, "few_passes": {"predicted": 3}}
    assert best.__name__ == "many_passes"
    text = best.explain()
    assert text.startswith("few_passes: predicted to be fastest\n  at b = 5, image.axis0 = 3")
    assert "few_passes 3 times (predicted)" in text
    assert best.explain(image, 5) == text


def test_layout_and_element_type_decide_too() -> None:
    walk = select(kernels.by_rows, kernels.by_columns, machine="t3e")
    rows = np.zeros((400, 320))
    assert walk.decide(rows, rows.copy()).variant == 0
    columns = np.asfortranarray(rows)
    assert walk.decide(columns, columns.copy(order="F")).variant == 1
    # as many lines either way: the first one
    assert walk.decide(rows, columns).why == "tie"


def test_compiled_variants_are_priced_by_their_source() -> None:
    walk = select(numba.njit(kernels.by_columns), numba.njit(kernels.by_rows), machine="t3e")
    rows = np.arange(40.0 * 30).reshape(40, 30)
    out = np.empty_like(rows)
    walk(rows, out)
    assert np.array_equal(out, 2 * rows)
    assert walk.counts["by_rows"] == {"predicted": 1}


def test_equal_prices_take_the_first_and_say_so() -> None:
    best = select(kernels.few_passes, kernels.few_passes, machine="t3e")
    assert best.decide(np.zeros((3, 3)), 2).why == "tie"
    assert "within 1%, so the first one is taken" in best.explain()


def test_without_a_price_the_first_is_taken_and_the_line_is_named() -> None:
    best = select(kernels.many_passes, kernels.not_understood, machine="t3e")
    image = np.ones((3, 3))
    assert np.array_equal(best(image, 2), 3 * image)
    assert best.counts["many_passes"] == {"no price": 1}
    line = FILE.read_text().splitlines().index("    return sorted(image.tolist())[b]") + 1
    assert "`not_understood` has no price" in best.explain()
    assert f"(line {line})" in best.explain()
    assert best.decide("text", 2).why == "no price"
    assert best.decide([], {}).why == "no price"


def test_an_uncalibrated_machine_takes_the_first(tmp_path: Path) -> None:
    best = select(kernels.few_passes, kernels.many_passes, machine="nowhere")
    assert np.array_equal(best(np.ones((2, 2)), 2), 3 * np.ones((2, 2)))
    assert best.counts["few_passes"] == {"no price": 1}
    assert 'unknown machine "nowhere"' in best.explain()
    assert "advise calibrate" in best.explain()


def test_outside_the_calibrated_range_the_first_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from advisor import selection as choosing
    from costdb.evaluate import Domain
    from costdb.expr import sym

    priced = choosing.cost

    def bounded(kernel: object, machine: object) -> object:
        found = priced(kernel, machine)
        only = Domain("elements of a row", sym("image.axis1"), 2, 50)
        return replace(found, priced=replace(found.priced, domains=(only,)))

    monkeypatch.setattr(choosing, "cost", bounded)
    best = select(kernels.many_passes, kernels.few_passes, machine="t3e")
    inside, outside = np.ones((9, 50)), np.ones((9, 51))
    assert best.decide(inside, 5).variant == 1
    assert best.decide(outside, 5).variant == 0
    assert best.counts == {"many_passes": {"outside range": 1}, "few_passes": {"predicted": 1}}
    text = best.explain()
    assert "outside the calibrated range: elements of a row: 51 is not in 2 to 50" in text
    assert best.decide(np.ones((0, 4)), 5).why == "outside range"


def test_an_error_of_ours_takes_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr("advisor.selection.plan_for", fail)
    best = select(kernels.few_passes, kernels.many_passes, machine="t3e")
    assert np.array_equal(best(np.ones((2, 2)), 2), 3 * np.ones((2, 2)))


def test_decisions_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.selection.MOST_DECISIONS", 8)
    best = select(kernels.few_passes, kernels.many_passes, machine="t3e")
    image = np.ones((4, 4))
    for b in range(1, 40):
        first = best.decide(image, b)
        assert best.decide(image, b) is first
        assert best.decide(image, np.int64(b)).variant == first.variant
        assert len(best._known) <= 8


def test_threads_that_choose_at_once_lose_no_count() -> None:
    best = select(kernels.few_passes, kernels.many_passes, machine="t3e")
    image = np.ones((4, 4))

    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            threads.submit(lambda: [best.decide(image, b) for b in range(1, 101)])
    assert sum(sum(why.values()) for why in best.counts.values()) == 400


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [((), ValueError), ((len,), TypeError), ((3,), TypeError)],
)
def test_what_is_no_function_is_refused(wrong: tuple[object, ...], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        select(*wrong)
    with pytest.raises(ValueError, match="1 variants, but 0 kernels"):
        select(kernels.few_passes, kernels=())


SPMD = """\
import json, sys
import numpy as np
from mpi4py import MPI
from tests.advisor.selection import selected_kernels as kernels
from advisor import select

world = MPI.COMM_WORLD
twins = (kernels.shifts, kernels.scans)
best = select(
    kernels.ranks_shift, kernels.ranks_scan, machine="t3e", kernels=twins,
    sizes=lambda part, size, b, world: {"N": size, "M": size, "b": b, "P": world.size},
)
unstated = select(kernels.ranks_shift, kernels.ranks_scan, machine="t3e", kernels=twins)
taken = []
for size in (7, 101, 800):
    # the parts of the ranks have unlike shapes and storage orders
    part = np.asarray(np.zeros((size // 2 + world.rank, size)), order="CF"[world.rank])
    for b in (1, 2, 9):
        name, shapes = best(part, size, b, world)
        assert len(set(map(tuple, shapes))) == 2
        taken.append((size, b, name))
    assert unstated(part, size, 2, world)[0] == "shifts"
alike = world.allgather(taken)
assert alike[0] == alike[1], alike
if world.rank == 0:
    print(json.dumps([taken, unstated.explain(), dict(best.counts)]))
"""


def test_ranks_decide_alike_from_what_they_all_know(tmp_path: Path) -> None:
    program = tmp_path / "spmd.py"
    program.write_text(SPMD)
    path = {"PYTHONPATH": f"{FILE.parent}:{ROOT}", "PATH": "/usr/bin:/bin"}
    said = on_ranks(2, str(program), folder=tmp_path, environment=path)
    taken, why, counts = json.loads(said)
    assert {name for _, _, name in taken} == {"shifts", "scans"}
    assert [name for size, b, name in taken if b == 1] == ["shifts"] * 3
    assert "is not among what all ranks know alike: pass sizes= to select" in why
    assert sum(sum(one.values()) for one in counts.values()) == 9


def test_select_and_numba_are_imported_when_they_are_asked_for() -> None:
    program = (
        "import sys, advisor, advisor.compiler\n"
        "heavy = {'libcst', 'numpy', 'numba', 'costdb.expr'}\n"
        "assert not heavy & set(sys.modules)\nassert advisor.select.__name__ == 'select'\n"
        "try:\n    advisor.nothing\nexcept AttributeError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "module 'advisor' has no attribute 'nothing'\n"
    assert isinstance(advisor.select(kernels.few_passes, machine="t3e"), Selection)
