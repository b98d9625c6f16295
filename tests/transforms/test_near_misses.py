"""Programs that look like what a rule rewrites and are not: no edit, or an explicit unknown.

Each file says what it forbids, and ``says`` what the note at the line marked ``# <--`` holds.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.engine import Options, check_source

FILES = sorted((Path(__file__).parent / "near_misses").glob("*.py"))
ANY_GAIN = Options("t3e", {}, (), (), 1.0, everything=True)


def stated(source: str, what: str) -> str | None:
    found = re.search(rf"^# {what}: (.+)$", source, re.MULTILINE)
    return found[1] if found else None


def marked_line(source: str) -> int:
    (line,) = [n for n, text in enumerate(source.splitlines(), 1) if text.endswith("# <--")]
    return line


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_near_misses_get_no_edit(path: Path) -> None:
    source = path.read_text("utf-8")
    forbidden = stated(source, "forbids")
    assert forbidden is not None, "a file says what must not be proposed for it"
    result = check_source(path.name, source, ANY_GAIN)
    assert not {finding.code for finding in result.findings} & set(forbidden.split())
    says = stated(source, "says")
    if says is None:
        assert not result.remarks or all(r.message.startswith("best plan") for r in result.remarks)
    else:
        (remark,) = result.remarks
        assert says in remark.message
        assert remark.span.start_line <= marked_line(source) <= remark.span.end_line
        assert not result.findings


def test_every_file_holds_one_near_miss() -> None:
    assert len(FILES) >= 20
    for path in FILES:
        assert path.read_text("utf-8").count("\ndef kernel(") == 1
