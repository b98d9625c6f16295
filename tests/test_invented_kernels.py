"""Kernels of many kinds, and what has to be said of each: a rule, a direction, or why nothing.

Near misses look like what a rule rewrites and are not: no edit, or an explicit unknown.
A file says in its first lines which rule must find something (``says``, with part of the message),
which must not (``quiet``), or what the note at the line marked ``# <--`` holds (``unknown``).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.engine import Options, check_source

HERE = Path(__file__).parent
FILES = sorted((HERE / "data" / "kernels").glob("*.py"))
NEAR_MISSES = sorted((HERE / "transforms" / "near_misses").glob("*.py"))
ANY_GAIN = Options("t3e", {}, (), (), 1.0, details=False, plans=False)


def stated(source: str, what: str) -> list[str]:
    return re.findall(rf"^# {what}: (.+)$", source, re.MULTILINE)


@pytest.mark.parametrize("path", [*FILES, *NEAR_MISSES], ids=lambda path: path.stem)
def test_what_has_to_be_said_is_said(path: Path) -> None:
    source = path.read_text("utf-8")
    options = replace(ANY_GAIN, everything=path in NEAR_MISSES)
    result = check_source(path.name, source, options)
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
    assert len(FILES) >= 25 and len(NEAR_MISSES) >= 20
    assert min(map(kinds.count, ("says", "quiet", "unknown"))) >= 5
