"""Calls of functions that were given: told where each number costs one, and no iteration waits."""

from __future__ import annotations

import pytest

from advisor.engine import Options, check_source
from advisor.ir.handed_on import handed_on

TOLD = {
    "s = 0\nfor i in range(1, n):\n    s += f(a + i * h)\nreturn s": "`a + i * h`",
    "ys = []\nfor i in range(n):\n    x = a + i * h\n    ys.append(2 * f(x))\nreturn ys": "`x`",
    "return h * sum(f(a + i * h) for i in range(n))": "`a + i * h`",
    "xs = np.linspace(a, h, n)\nreturn [f(x) for x in xs[1:]]": "`x`",
    "xs = np.linspace(a, h, n)\nfor i in range(n):\n    y[i] = f(xs[i])\nreturn y": "`xs[i]`",
    "return sum(map(f, np.arange(n)))": "`np.arange(n)`",
    "return np.apply_along_axis(f, 1, y).sum()": "vectors of `y`",
}
QUIET = [
    # one waits for the one before; each may end it; it is called for what it does
    "x = a\nfor i in range(n):\n    x = x - f(x + i * h)\nreturn x",
    "for i in range(n):\n    if f(a + i * h) < 0:\n        return i\nreturn n",
    "for i in range(n):\n    f(a + i * h)",
    # what it is given is no number, or nobody tells; or another function by then
    "return [f(i) for i in range(n)]",
    "return [f(y[i]) for i in range(n)]",
    "return [f(a, *y) for a in range(n)]",
    "f = abs\nreturn sum(f(a + i * h) for i in range(n))",
    "return sum(f(a + i * h) for i in range(3))",
]


def function(body: str) -> str:
    inside = body.replace("\n", "\n    ")
    return f"import numpy as np\n\ndef rule(f, a, h, n, y):\n    {inside}\n"


@pytest.mark.parametrize("body", TOLD)
def test_a_call_for_each_number_is_told(body: str) -> None:
    (one,) = handed_on(function(body))
    assert (one.function, one.name, one.passed) == ("rule", "f", TOLD[body])


@pytest.mark.parametrize("body", QUIET)
def test_what_waits_or_is_no_number_is_not(body: str) -> None:
    assert not [*handed_on(function(body))]


def test_it_is_a_finding_without_a_price_or_an_edit() -> None:
    source = function(next(iter(TOLD)))
    (one,) = check_source("program.py", source, Options("node2026", {}, (), (), 1.0)).findings
    assert (one.code, one.span.start_line, one.fix, one.prediction) == ("ADV401", 6, None, None)
