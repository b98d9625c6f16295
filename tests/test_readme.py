"""The README shows what the tool prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_excerpt_is_what_the_tool_prints() -> None:
    text = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- excerpt -->\n```console\n\$ (.*?)\n(.*?)```", text, re.DOTALL)
    assert block is not None
    command, shown = block.groups()
    found = subprocess.run(
        [sys.executable, "-m", "advisor", *command.split()[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**{k: v for k, v in os.environ.items() if k != "COLUMNS"}, "NO_COLOR": "1"},
    )
    assert found.stdout == shown


def test_the_commands_are_the_ones_that_are_tested() -> None:
    text = (ROOT / "README.md").read_text()
    assert "<!-- test-command -->" in text
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
