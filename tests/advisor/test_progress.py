"""Loops behind a bar of progress are read as what they go through."""

from __future__ import annotations

import ast

import pytest

from advisor.engine import Options, check_source
from advisor.source import apply_edits, without_progress

IMPORTS = (
    "import numpy as np\nimport tqdm as bars\nfrom tqdm import tqdm, trange\n"
    "from rich.progress import track\nimport own\nfrom own import trange as follow\n\n\n"
)
LOOPS = {
    'for i in tqdm(range(n), desc="é"):': "for i in (range(n)):",
    'for i in tqdm(\n        range(n),  # all\n        desc="a",\n    ):': "for i in (range(n)):",
    "for i in trange(1, n, leave=False):": "for i in range(1, n):",
    "for i, v in enumerate(bars.tqdm(x, total=n)):": "for i, v in enumerate((x)):",
    "for i in track(range(n)):": "for i in (range(n)):",
    "for i in [k for k in tqdm(x)]:": "for i in [k for k in (x)]:",
    # they show none, or are none
    "for i in mine(range(n)):": "for i in mine(range(n)):",
    "for i in own.track(x, n):": "for i in own.track(x, n):",
    "for i in follow(x, n):": "for i in follow(x, n):",
    "for i in tqdm(total=n):": "for i in tqdm(total=n):",
    "for i in range(len(tqdm)):": "for i in range(len(tqdm)):",
}
SCRIPT = (
    "def f(x, n):\n    {loop}\n        x[i] = 2 * x[i]\n    return x\n\n\nf(np.ones(9999), 9999)\n"
)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_goes_through_what_the_bar_is_given(loop: str) -> None:
    source = IMPORTS + SCRIPT.format(loop=loop)
    plain = without_progress(source)
    expected = ast.parse(IMPORTS + SCRIPT.format(loop=LOOPS[loop]))
    assert ast.unparse(ast.parse(plain)) == ast.unparse(expected)
    # all else stands where it stood
    assert len(plain) == len(source)
    assert [*map(len, plain.splitlines())] == [*map(len, source.splitlines())]


@pytest.mark.parametrize("loop", [*LOOPS][:3])
def test_it_is_told_as_any_loop_and_its_edit_leaves_no_bar(loop: str) -> None:
    source = IMPORTS + SCRIPT.format(loop=loop)
    (found,) = check_source("bars.py", source, Options("node2026", {}, (), (), 1.0)).findings
    assert found.span.start_line == 10 and found.fix is not None
    left = apply_edits(source, found.fix.edits)
    assert "for" not in left.partition("def")[2] and "x[i]" not in left
