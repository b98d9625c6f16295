"""Prices of kernels grow with what they count, and with nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.cli.app import main
from advisor.ranking.compare import time_s
from costdb.machines import Machine, machine_of
from tests.advisor.analysis.tally import Tally
from tests.advisor.ranking.priced_kernels import BOX, PROFILE, halo, kernel_of, priced


def machine_with(*kept: str) -> Machine:
    """Return the machine with all message and statement numbers 0 but those named."""
    document = json.loads(PROFILE.read_text())
    for section in document["lines"].values():
        for key, quantity in section.items():
            if key not in kept:
                quantity.update(value=0, low=0, high=0)
    return machine_of(document, "test")


def test_start_ups_count_messages_and_nothing_else() -> None:
    kernel = halo()
    machine = machine_with("alpha_us")
    sizes = {"N": 100, "M": 50, "T": 7, "w": 20}
    told = Tally(priced(kernel, machine).process, sizes)
    assert told.totals["messages"] == 7
    assert time_s(priced(kernel, machine), sizes) == pytest.approx(7 * 100e-6)


def test_bytes_count_payload_and_nothing_else() -> None:
    machine = machine_with("beta_us_per_byte")
    sizes = {"N": 100, "M": 50, "T": 7, "w": 20}
    for dtype, itemsize in (("f4", 4), ("f8", 8), ("c16", 16)):
        costed = priced(halo(dtype), machine)
        assert Tally(costed.process, sizes).totals["bytes"] == 7 * 20 * itemsize
        assert time_s(costed, sizes) == pytest.approx(7 * 20 * itemsize * 0.01e-6)


def test_lines_tell_a_row_from_a_column() -> None:
    machine = machine_with("gamma_us_per_line")
    sizes = {"N": 1024, "M": 1024, "T": 1, "w": 512}
    row, column = (time_s(priced(halo("f8", axis), machine), sizes) for axis in (0, 1))
    assert column == pytest.approx(512 * 0.1e-6)
    assert row == pytest.approx((64 + 65) / 2 * 0.1e-6)
    turned = time_s(priced(halo("f8", 1, "F"), machine), sizes)
    assert turned == pytest.approx(row)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from((0, 1)),
    st.sampled_from("CF"),
    st.integers(2, 60),
    st.integers(0, 5),
    st.data(),
)
def test_prices_never_fall(
    axis: int, order: str, side: int, trips: int, data: st.DataObject
) -> None:
    """With more elements a message, more messages, wider elements."""
    width = data.draw(st.integers(1, side - 1))
    at: Mapping[str, int] = {"N": side, "M": side, "T": trips, "w": width}
    costed = PRICED[axis, order, "f4"]
    base = time_s(costed, at)
    assert time_s(costed, {**at, "w": width + 1}) >= base
    assert time_s(costed, {**at, "T": trips + 1}) >= base
    assert time_s(PRICED[axis, order, "f8"], at) >= base


PRICED = {
    (axis, order, dtype): priced(halo(dtype, axis, order))
    for axis in (0, 1)
    for order in "CF"
    for dtype in ("f4", "f8")
}


def test_a_variant_without_a_statement_is_never_slower() -> None:
    kernel = kernel_of(BOX)
    for count in range(1, len(kernel.body)):
        shorter = replace(kernel, body=kernel.body[:-count])
        sizes = {"N": 1000, "b": 6}
        assert time_s(priced(shorter), sizes) <= time_s(priced(kernel), sizes)


# More ranks than cores is nothing that a calibration has seen, and is told.


MESHES = """\
# advise: kernel N=1000 P=6
# advise: u: f8[N, N] over (block(x), block(y)) on mesh(x=P, y=3)
# advise: v: f8[N] over (block(x)) on mesh(x=P)
# advise: w: f8[N]
def shift(u, v, w, N: int):
    v[1:] = v[:-1]
"""


def profile_with(cores: int | None) -> str:
    document = json.loads(PROFILE.read_text())
    if cores is not None:
        sources = document.setdefault("sources", {})
        sources["system"] = "made up"
        document.setdefault("hardware", {})["cores"] = {
            "value": cores, "unit": "core", "provenance": "published", "source": "system",
        }  # fmt: skip
    return json.dumps(document)


@pytest.mark.parametrize(("ranks", "told"), [(2, False), (3, True)])
@pytest.mark.parametrize("program", [True, False])
def test_a_prediction_tells_of_more_ranks_than_cores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: bool, ranks: int, told: bool
) -> None:
    (tmp_path / "machine.json").write_text(profile_with(2))
    (tmp_path / "kernel.py").write_text(MESHES.replace("y=3", "y=1"))
    (tmp_path / "program.py").write_text(
        "from mpi4py import MPI\n"
        "import numpy as np\n"
        "def total():\n"
        "    comm = MPI.COMM_WORLD\n"
        "    x = np.zeros(1000)\n"
        "    comm.Bcast(x)\n"
    )
    file = tmp_path / ("program.py" if program else "kernel.py")
    assert main(["predict", str(file), "-m", str(tmp_path / "machine.json"), f"-DP={ranks}"]) == 0
    said = capsys.readouterr().out
    assert (f"as if each of {ranks} ranks had a core of its own" in said) == told
