"""A fix that leaves no Python behind is a bug of its rule: nothing is written, and that is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from advisor import engine
from advisor.cli.fixing import apply_fixes
from advisor.config.files import CommandError
from advisor.engine import FileResult, Options, check_source
from advisor.source import Edit, Span

SOURCE = """\
import numpy as np

# advise: kernel M=3000 N=200
# advise: a: f8[M, N]
def kept(a, M: int, N: int):
    found = np.zeros((0, N))
    for i in range(M):
        found = np.vstack([found, a[i] * 0.5])
    return found
"""


@pytest.mark.parametrize("text", ["<c, s>[0]", "    return found(", "if found"])
def test_what_does_not_parse_is_not_written(text: str) -> None:
    options = Options("node2026", {}, (), (), None)
    result = check_source("kept.py", SOURCE, options)
    (finding,) = result.findings
    assert finding.fix is not None
    assert apply_fixes(result, options, unsafe=False)[1] == [finding]
    fix: Any = replace(finding.fix, edits=(Edit(Span(8, 8, 8, 13), text),))
    broken = replace(result, findings=(replace(finding, fix=fix),))
    with pytest.raises(CommandError, match=r"ADV507 breaks the file .*nothing was changed"):
        apply_fixes(broken, options, unsafe=False)


def test_functions_are_fixed_together_and_read_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    head, _, body = SOURCE.partition("\n\n")
    source = head + "".join(f"\n\n\n{body.replace('kept', f'kept{n}')}".rstrip() for n in range(5))
    options, texts = Options("node2026", {}, (), (), None), list[str]()
    result = check_source("kept.py", source, options)

    def counted(path: str, text: str, given: Options) -> FileResult:
        texts.append(text)
        return check_source(path, text, given)

    monkeypatch.setattr(engine, "check_source", counted)
    fixed, applied = apply_fixes(result, options, unsafe=False)
    assert sorted(one.kernel for one in applied) == [f"kept{n}" for n in range(5)]
    assert texts == [fixed.source]
    assert fixed.source.count("np.vstack(") == fixed.source.count(".append(") == 5
