"""The example that prints the three programs of the PGAS study, which its page points to."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_the_example_prints_groups_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "models" / "pgas_programs.py"))["main"]()
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "histogram table rw mixed baseline" in printed
    assert "matmul B r mixed vector" in printed
    assert "matmul mupc-cache 6.371 4.100 2.434 1.799" in printed
    assert "python examples/models/pgas_programs.py" in (ROOT / "docs" / "models.md").read_text()
