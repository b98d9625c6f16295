"""What tests with a real editor share: its page, a program to start, an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsp_session import KERNEL

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "editors.md"
# The kernel with a letter of several bytes before what the finding is about.
TEXT = KERNEL.replace("field", "fäld")
REWRITTEN = TEXT.replace('None, Block("rank")', 'Block("rank"), None')


def section(title: str) -> str:
    """Return what the page says below a heading."""
    return PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def setup(title: str, name: str) -> str:
    """Return the configuration that the page names so below a heading."""
    pattern = rf"<!-- config: {re.escape(name)} -->\n```\w+\n(.*?)```"
    block = re.search(pattern, section(title), re.DOTALL)
    assert block is not None, f"{title} has no {name}"
    return block[1]


def said_by(command: Sequence[str], folder: Path, **added: str) -> dict[str, Any]:
    """Return what a script says that opens the kernel in an editor, and takes the first action."""
    kernel, report = folder / "smooth.py", folder / "report.json"
    kernel.write_text(TEXT, encoding="utf-8")
    places = {"ADVISE_TEST_FILE": str(kernel), "ADVISE_TEST_REPORT": str(report)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder, **places, **added),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert report.is_file(), done.stderr
    said: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    assert said.get("problem") is None, said
    (found,) = said["found"]
    assert "of sp2" in found["message"]
    assert "N = 4096 (editor)" in said["hover"]
    assert kernel.read_text(encoding="utf-8") == REWRITTEN
    return {**said, "found": found}


def environment(folder: Path, **added: str) -> dict[str, str]:
    """Return an environment with `advise` on the path, and nobody's settings."""
    commands = folder / "bin"
    commands.mkdir()
    # the program's own entry point is not on the path of every environment that runs tests
    program = commands / "advise"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m advisor "$@"\n')
    program.chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("ADVISE_")},
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        **added,
    }
