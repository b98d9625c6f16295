"""Predictions of what was measured here, at its sizes, between them, or of one rank's part."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cli.app import main
from advisor.evidence import between
from advisor.measure.pieces import NoPiece, Piece
from advisor.measure.predicted import Measurement, changes_between, faster_from
from advisor.verify.cases import Case, Variant
from costdb.documents import store_profile

CALIBRATED = Path(__file__).parents[2] / "data" / "decisions" / "calibrated.json"
KERNELS = """\
import numpy as np

# advise: kernel N=600 P=64
# advise: a: f8[N, N] over (none, block(p)) on mesh(p=P)
def eliminate(a):
    for k in range(a.shape[0] - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, None, k + 1 :]
    return a

# advise: kernel
# advise: a: f8[M, M]
def rows(a):
    return (a[1:] - a[:-1]).sum()

# advise: kernel
# advise: a: f8[M, M]
def angles(a):
    return np.unwrap(np.interp(a, np.linspace(0.0, 1.0, 7), np.arange(7.0)))

# advise: kernel N=64 P=4
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
def waves(a):
    return np.fft.fft(np.fft.fft(a, axis=1), axis=0)

open("ran", "w")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("ADVISE_MACHINE", "here")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(KERNELS)
    store_profile({**json.loads(CALIBRATED.read_text("utf-8")), "name": "here"}, "made up")
    return tmp_path


def document(command: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main([*command, "--output-format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_a_rank_of_many_is_measured_and_its_messages_are_modelled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", "kernels.py", "--kernel", "eliminate"]
    before = document(command, capsys)
    after = document([*command, "--measure"], capsys)
    kept = document(command, capsys)
    assert after == kept
    parts = after["parts"]
    assert before["parts"]["measured_s"] == 0 < parts["measured_s"]  # type: ignore[index]
    own, *sent = after["terms"]  # type: ignore[misc]
    assert own["model"] == "measured" and own["label"] == "what a rank of 64 does"
    assert {one["model"] for one in sent} == {"lines"}
    assert parts["measured_s"] == own["seconds"]["mid"]
    # what is sent is what the models said before
    assert sent == [one for one in before["terms"] if one["model"] == "lines"]  # type: ignore[attr-defined]
    assert parts["measured_s"] + parts["modelled_s"] == pytest.approx(after["seconds"]["mid"])
    assert main(command) == 0
    assert "measured, " in capsys.readouterr().out
    # ten numbers of a row: 64 times less than all of it, but each of 600 steps is called for
    assert 600e-6 < parts["measured_s"] < 1.0
    assert not (folder / "ran").exists()


def test_what_ranks_fetch_of_each_other_is_made_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(["predict", "kernels.py", "--kernel", "waves", "--measure"], capsys)
    assert found["terms"][0]["label"] == "what a rank of 4 does"  # type: ignore[index]
    assert 0 < found["parts"]["measured_s"] < found["seconds"]["mid"]  # type: ignore[index]


def test_what_no_model_prices_is_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["predict", "kernels.py", "--kernel", "angles", "-D", "M=300"]
    bound = document(command, capsys)
    assert not bound["complete"] and bound["missing"]
    found = document([*command, "--measure"], capsys)
    assert found["complete"] and found["provenance"] == "measured"
    assert document(command, capsys) == found
    assert not document([*command[:-1], "M=301"], capsys)["complete"]


def test_between_measured_sizes_is_said_to_be_between(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", "kernels.py", "--kernel", "rows", "-D"]
    ends = [document([*command, f"M={size}", "--measure"], capsys) for size in (200, 800)]
    found = document([*command, "M=400"], capsys)
    assert found["parts"]["interpolated_s"] == found["seconds"]["mid"]
    low, high = (one["seconds"]["mid"] for one in ends)
    assert low < found["seconds"]["mid"] < high
    assert document([*command, "M=900"], capsys)["parts"]["interpolated_s"] == 0


def test_choices_are_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["choose", "kernels.py", "--kernel", "rows,angles", "-D", "M=300", "--measure"]
    found = document(command, capsys)
    assert [one["provenance"] for one in found["choices"]] == ["measured", "measured"]
    assert found["choices"][0]["bindings"] == {"program": "rows"}


@pytest.mark.parametrize("more", [[], ["--measure"]])
@pytest.mark.parametrize("name", ["rows", "eliminated"])
def test_a_size_without_a_value_is_asked_for(
    folder: Path, name: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = KERNELS.replace("def eliminate", "def eliminated").replace(" N=600 P=64", "")
    (folder / "kernels.py").write_text(text)
    assert main(["predict", "kernels.py", "--kernel", name, *more]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1 and "is not bound" in told


def test_of_another_machine_nothing_is_measured(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", "kernels.py", "--kernel", "eliminate", "--machine", "t3e", "--measure"]
    assert main(command) == 2
    assert "asked of t3e" in capsys.readouterr().err


@given(
    st.floats(0.1, 3.0),
    st.floats(0.1, 3.0),
    st.integers(70, 4000),
    st.integers(65, 4095),
)
def test_a_bend_between_sizes_is_inside(one: float, other: float, bend: int, at: int) -> None:
    """What grows by one power up to some size and by another from there on."""

    def seconds(size: float) -> float:
        return 1e-6 * min(size, bend) ** one * (max(size, bend) / bend) ** other

    points = [({"N": n}, (seconds(n),) * 3) for n in (4, 16, 64, 4096, 2**14, 2**16)]
    found = between(points, {"N": at})
    assert found is not None
    (low, mid, high), around, name = found
    assert around == (64, 4096) and name == "N"
    assert low <= seconds(at) <= high
    if math.isclose(one, other, rel_tol=1e-3):
        assert mid == pytest.approx(seconds(at), rel=0.02)


def test_nothing_lies_between_one_size() -> None:
    one = ({"N": 5, "M": 2}, (1.0, 1.0, 1.0))
    assert between([one], {"N": 6, "M": 2}) is None
    other = ({"N": 7, "M": 3}, (2.0, 2.0, 2.0))
    assert between([one, other], {"N": 6, "M": 2}) is None
    assert between([one, ({"N": 7, "M": 2}, (2.0, 2.0, 2.0))], {"N": 6, "M": 2}) is not None


def measured(size: int, *times: float) -> Measurement:
    ways = [Variant(code, title, "", True, None, None) for code, title in WAYS]
    case = Case("f.py", "f", {"N": size}, (), tuple(ways))
    pieces = [Piece(time, time, time, {}, {}, 0.0) for time in times]
    return Measurement(case, (NoPiece(0, ""),) * len(ways), tuple(pieces), "N")


WAYS = [("", "as written"), ("ADV1", "one"), ("ADV2", "other")]


def test_where_a_rewrite_gets_faster_is_told_with_where_it_was_measured() -> None:
    made = [measured(64, 1, 2, 0.5), measured(256, 3, 4, 2), measured(1024, 9, 8, 7)]
    assert [line.partition(": f, ")[2] for line in faster_from(made)] == [
        "ADV1: faster from N = 1024 (measured at 64, 256, 1024)",
        "ADV2: faster for every N tried (measured at 64, 256, 1024)",
    ]
    assert changes_between(made[1], made[2]) and not changes_between(made[0], made[1])
    ends = [measured(64, 1, 2, 2), measured(256, 3, 2, 4), measured(1024, 9, 10, 8)]
    told = [line.partition("ADV")[2] for line in faster_from(ends)]
    assert "faster at N = 256 only" in told[0] and "faster from N = 1024" in told[1]
    assert "never faster for N up to 256" in next(faster_from([measured(256, 1, 2, 2)]))


def test_a_size_without_a_value_is_measured_at_several(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(programs, effort, told):
        """Loops over rows take ten times as long as whole arrays."""
        for program, arguments in programs:
            (rows, _) = arguments["x"]["shape"]
            seconds = rows * (1e-6 if "clock.loop" in program.text else 1e-7)
            yield Piece(seconds, seconds, seconds, {}, {}, seconds)

    monkeypatch.setattr("advisor.measure.pieces.sample", sample)
    text = """\
import numpy as np
# advise: kernel
# advise: x: i4[N, 8]
def moved(x):
    total = np.zeros((x.shape[0], x.shape[1]), dtype=np.int32)
    for i in range(x.shape[0]):
        total[i] = 3 * x[i]
    return total
"""
    (folder / "open.py").write_text(text)
    assert main(["measure", "open.py", "--budget", "2"]) == 0
    told = capsys.readouterr().out
    assert "moved N=64" in told and "moved N=256" in told
    assert "faster for every N tried (measured at 64, 256" in told
    assert main(["open.py", "-D", "N=100"]) in (0, 1)
    assert "between N = 64 and 256" in " ".join(capsys.readouterr().out.split())
    two = text.replace("i4[N, 8]", "i4[N, M]")
    (folder / "two.py").write_text(two)
    assert main(["measure", "two.py"]) == 2
    assert "M and N have no value" in capsys.readouterr().err
