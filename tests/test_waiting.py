"""A test that waits for ever fails with its name and place; it never holds up the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = """
import threading

def test_of_what_comes():
    pass

def test_of_what_never_comes():
    threading.Event().wait()

def test_of_what_comes_later():
    pass
"""


def test_one_that_waits_for_ever_is_named_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    ended = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-n", "1", "-c", str(ROOT / "pyproject.toml"),
            "--rootdir", str(tmp_path), "-o", "faulthandler_timeout=2", "-p", "no:cacheprovider",
            str(tmp_path),
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "FAILED test_it.py::test_of_what_never_comes" in ended.stdout
    assert "1 failed, 2 passed" in ended.stdout
    assert 'test_it.py", line 8 in test_of_what_never_comes' in ended.stderr
