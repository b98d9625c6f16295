"""A fix that leaves no Python behind is a bug of its rule: nothing is written, and that is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from advisor.cli.fixing import apply_fixes
from advisor.config.files import CommandError
from advisor.engine import Options, check_source
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
