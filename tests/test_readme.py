"""What the README says to type works; what it shows is held by `test_docs`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("mpi4py", "numba", "pygls"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def test_what_is_shown_for_use_runs_as_it_stands(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- use-commands -->\n```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    program = tmp_path / "bin" / "advise"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m advisor "$@"\n')
    program.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ADVISE_")}
    # the command above them installs no extra
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "sitecustomize.py").write_text(ABSENT)
    environment = {
        **kept,
        "PATH": f"{program.parent}{os.pathsep}{kept['PATH']}",
        "PYTHONPATH": f"{plain}{os.pathsep}{ROOT}",
        "ADVISE_DATA_DIR": str(tmp_path / "data"),
    }
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    for line in block[1].splitlines():
        if f"$ {line.partition('#')[0].strip()}\n" in pages:
            continue  # a page runs it, and shows what it prints
        ended = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        # findings are no failure; what goes wrong costs a line that starts like this, and a 2
        assert ended.returncode in (0, 1), (line, ended.stderr)
        assert ended.stdout, line


def test_the_commands_are_the_ones_that_are_tested() -> None:
    text = (ROOT / "README.md").read_text()
    assert "<!-- test-command -->" in text
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
