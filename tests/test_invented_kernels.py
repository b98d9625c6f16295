"""Kernels of many kinds, and what has to be said of each: a rule, a direction, or why nothing.

A file says in its first lines which rule must find something (``says``, with part of the message),
which must not (``quiet``), or what the note at the line marked ``# <--`` holds (``unknown``).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.engine import Options, check_source

FILES = sorted((Path(__file__).parent / "data" / "kernels").glob("*.py"))
ANY_GAIN = Options("t3e", {}, (), (), 1.0, plans=False)


def stated(source: str, what: str) -> list[str]:
    return re.findall(rf"^# {what}: (.+)$", source, re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_has_to_be_said_is_said(path: Path) -> None:
    source = path.read_text("utf-8")
    result = check_source(path.name, source, ANY_GAIN)
    says, quiet, unknown = (stated(source, what) for what in ("says", "quiet", "unknown"))
    assert says or quiet or unknown
    messages = {(finding.code, finding.message) for finding in result.findings}
    for wanted in says:
        code, _, part = wanted.partition(" ")
        assert any(one == code and part in message for one, message in messages), messages
    assert not {finding.code for finding in result.findings} & set(" ".join(quiet).split())
    if not unknown:
        noted = stated(source, "noted")
        assert len(result.remarks) == len(noted)
        for remark, part in zip(result.remarks, noted, strict=True):
            assert part in remark.message
        return
    (line,) = [n for n, text in enumerate(source.splitlines(), 1) if text.endswith("# <--")]
    (remark,) = result.remarks
    assert unknown[0] in remark.message
    assert remark.span.start_line <= line <= remark.span.end_line
    assert not result.findings


def test_all_kinds_of_answers_are_held() -> None:
    kinds = [next(w for w in ("says", "quiet", "unknown") if stated(p.read_text(), w))
             for p in FILES]  # fmt: skip
    assert len(FILES) >= 25
    assert min(map(kinds.count, ("says", "quiet", "unknown"))) >= 5
