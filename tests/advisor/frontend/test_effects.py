"""What functions of a file change, keep and reach, as Python itself shows by running them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from advisor.frontend.declarations import FileReader
from advisor.frontend.effects import Called
from advisor.frontend.trees import tree_of

HEAD = (
    "import math\nimport time\nimport numpy as np\nSEEN = []\n\n\ndef bump(v):\n    v += 1.0\n\n\n"
)
FUNCTIONS = {
    "return a * 2.0 + b": "",
    "x = a * 2.0\n    x[0] = 1.0\n    return x": "",
    "n = len(a)\n    print(n, time.time())\n    return math.sqrt(n)": "",
    "return {'sum': a.sum(), 'all': [float(v) for v in b]}": "",
    "a[0] = 1.0": "a",
    "a += b": "a",
    "x = a\n    x[1:] *= 2.0": "a",
    "x = a[1:]\n    y = x.reshape(-1)\n    y[0] = 9.0": "a",
    "bump(b)": "b",
    "np.add(a, b, out=b)": "b",
    "np.copyto(a, b)": "a",
    "a.sort()": "a",
    "held = [a]\n    held.append(b)\n    held[1][0] = 5.0": "b",
    "held = {'x': a}\n    held['x'][0] = 5.0": "a",
    "for v in (a, b):\n        v[0] = 8.0": "ab",
    "for x, y in zip([a], [b]):\n        y[0] = 3.0": "b",
    "f = lambda v: bump(v)\n    f(a)": "a",
    "list(map(bump, [a]))": "a",
    "def inner():\n        a[0] = 4.0\n    inner()": "a",
    "x = a if len(a) > 100 else b\n    x[0] = 2.0": "b",
    "with np.errstate(all='ignore'):\n        np.fill_diagonal(b.reshape(2, 2), 7.0)": "b",
}


def called(body: str) -> Called:
    source = f"{HEAD}def f(a, b):\n    {body}\n"
    tree = tree_of("f.py", source)
    reader = FileReader("f.py", tree.span_of, ())
    reader.visit(tree.module)
    return reader.functions.called("f")


@pytest.mark.parametrize("body", FUNCTIONS)
def test_all_that_a_run_changes_is_told(body: str) -> None:
    space: dict[str, Any] = {}
    exec(f"{HEAD}def f(a, b):\n    {body}\n", space)
    given = {"a": np.arange(4.0)[::-1].copy(), "b": np.arange(4.0) + 10}
    before = copy.deepcopy(given)
    space["f"](**given)
    changed = {name for name in given if not np.array_equal(given[name], before[name])}
    assert changed == set(FUNCTIONS[body])
    told = called(body)
    assert told.changed is None or changed <= told.changed
    # what changes nothing is told to change nothing
    assert changed or (told.changed == frozenset() and not told.reaches)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("return a[1:]", "a"),
        ("return [a, 1.0]", "a"),
        ("x = [b]\n    return {'x': x}", "b"),
        ("SEEN.append(a)", "a"),
        ("return a + 1.0", ""),
        ("return a.copy(), float(b.sum())", ""),
    ],
)
def test_what_results_lead_to_is_told(body: str, kept: str) -> None:
    told = called(body).kept
    assert told is not None
    assert set(kept) <= told
    assert kept or not told


def test_what_calls_itself_or_what_nobody_knows_may_do_anything() -> None:
    assert called("return f(a, b)").reaches
    assert called("unknown(a)").changed != frozenset()
    assert called("global SEEN\n    SEEN = a").reaches
