"""The page on the PGAS model shows what its example prints."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_the_tables_are_what_the_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "models" / "pgas_programs.py"))["main"]()
    printed = capsys.readouterr().out
    assert printed.count("\n") > 20
    assert f"```\n{printed}```" in (ROOT / "docs" / "models" / "pgas.md").read_text()
