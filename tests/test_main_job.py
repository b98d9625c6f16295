"""The main job, as a user has it done: ``advise kernel.py``, once in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.advisor.cli.commands import Program, isolated

ROOT = Path(__file__).parent.parent
BOX_SUM = ROOT / "examples" / "box_sum.py"


def advise(*arguments: str) -> int:
    """Run it in a process of its own."""
    return subprocess.run([sys.executable, "-m", "advisor", *arguments], check=False).returncode


def findings(program: Program, *arguments: str, code: str = "ADV201") -> list[dict[str, Any]]:
    done = program(*arguments, "--output-format", "json")
    assert done.code in (0, 1), done.err
    document = json.loads(done.out)
    assert document["schema_version"] == 2
    found: list[dict[str, Any]] = document["findings"]
    return [finding for finding in found if finding["code"] == code]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def box_by_definition(image: Any, b: int) -> Any:
    total = np.zeros_like(image)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            box = image[max(0, i - b + 1) : i + 1, max(0, j - b + 1) : j + 1]
            total[i, j] = box.sum(dtype=image.dtype)
    return total


@pytest.fixture
def program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Program:
    """Return the program in an empty directory."""
    return isolated(monkeypatch, capsys, tmp_path)


@pytest.mark.parametrize(("machine", "threshold"), [("t3e", 3), ("e5000", 7)], ids=["t3e", "e5000"])
@pytest.mark.parametrize("size", [500, 2000])
def test_the_published_crossovers(
    program: Program, machine: str, threshold: int, size: int
) -> None:
    for b in (threshold - 1, threshold, threshold + 1):
        sizes = ("-D", f"b={b}", "-D", f"N={size}")
        found = findings(program, str(BOX_SUM), "--machine", machine, *sizes)
        assert bool(found) == (b >= threshold)
        for finding in found:
            flips = [c for c in finding["crossover"] if c["variable"] == "b"]
            assert flips and flips[0]["values"] == [threshold]
            prediction = finding["prediction"]
            assert prediction["speedup"] == pytest.approx(
                prediction["before_s"] / prediction["after_s"]
            )
            assert prediction["low"] <= prediction["speedup"] <= prediction["high"]


def test_fixed_programs_give_equal_results(tmp_path: Path) -> None:
    copy = tmp_path / "box_sum.py"
    shutil.copy(BOX_SUM, copy)
    assert advise(str(copy), "--machine", "t3e", "--fix") == 0
    once = copy.read_bytes()
    assert once != BOX_SUM.read_bytes()
    assert advise(str(copy), "--machine", "t3e", "--fix") == 0
    assert copy.read_bytes() == once
    original, fixed = load(BOX_SUM), load(copy)
    random = np.random.default_rng(1)
    limits = np.iinfo(np.int32)
    for size in (1, 2, 3, 5, 8, 13):
        for b in (1, 2, 3, 4, 7, 12, 20):
            image = random.integers(limits.min, limits.max, (size, size), dtype=np.int32)
            want = box_by_definition(image, b)
            for module in (original, fixed):
                given = image.copy()
                got = module.box_sum(given, b)
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(got, want)
                np.testing.assert_array_equal(given, image)


COLUMNS = """\
import os
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=16)


@kernel(N=1000)
def smooth(
    field: Annotated[NDArray[np.int32], Dist("N", "N", None, Block("rank"), on=mesh)],
) -> NDArray[np.int32]:
    out = field.copy()
    out[1:-1, 1:-1] = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
    return out
"""


def test_columns_of_a_row_major_array(program: Program) -> None:
    path = Path("smooth.py")
    path.write_text(COLUMNS)
    (finding,) = findings(program, "smooth.py", "--machine", "sp2", code="ADV101")
    facts = " ".join(finding["evidence"]["facts"])
    # the part of a column that is read, each element on a line of its own, against one run
    assert "998 elements of 4 B each time, on 998 cache lines of 64 B" in facts
    assert "998 elements of 4 B each time, on 63 to 64 cache lines of 64 B" in facts
    titles = [finding["message"], *(a["title"] for a in finding["alternatives"])]
    assert any("by rows" in title for title in titles)
    assert any('order="F"' in title for title in titles)
    program("smooth.py", "--machine", "sp2", "--fix")
    assert 'Dist("N", "N", Block("rank"), None, on=mesh)' in path.read_text()
    assert not findings(program, "smooth.py", "--machine", "sp2", code="ADV101")


def test_nothing_of_a_scanned_file_is_executed(tmp_path: Path) -> None:
    victim = tmp_path / "precious"
    victim.write_text("data")
    path = tmp_path / "smooth.py"
    path.write_text(COLUMNS + f"\nos.remove({str(victim)!r})\n")
    assert advise(str(path), "--machine", "sp2") == 1
    assert victim.read_text() == "data"
