"""What loops do one by one: told where that is all they do, and no iteration waits."""

from __future__ import annotations

import pytest

from advisor.engine import Options, check_source
from advisor.ir.one_by_one import one_by_one

TOLD = {
    "s = 0\nfor i in range(1, n):\n    s += f(a + i * h)\nreturn s": "`a + i * h`",
    "ys = []\nfor i in range(n):\n    x = a + i * h\n    ys.append(2 * f(x))\nreturn ys": "`x`",
    "return h * sum(f(a + i * h) for i in range(n))": "`a + i * h`",
    "xs = np.linspace(a, h, n)\nreturn [f(x) for x in xs[1:]]": "`x`",
    "xs = np.linspace(a, h, n)\nfor i in range(n):\n    y[i] = f(xs[i])\nreturn y": "`xs[i]`",
    "return sum(map(f, np.arange(n)))": "`np.arange(n)`",
    "return np.apply_along_axis(f, 1, y).sum()": "vectors of `y`",
}
DRAWN = "for i in range(n):\n    x = y.random()\n    if x * x < a:\n        h += 1\nreturn h"
TOLD |= {
    DRAWN: "`y.random()` of all iterations",
    DRAWN.replace("y.random()", "np.random.rand()"): "`np.random.rand()` of all iterations",
    "for i in range(n):\n    if y.random() < a: n += 1\nreturn n": "`y.random()` of all",
    "return [y.index(i) for i in h]": "`i` up in a dictionary of `y`",
    "k = list(y)\nfor i in h:\n    if i not in k: a += i\nreturn a": "`i` up in a set of `k`",
}
QUIET = [
    # not in each iteration, or others each time; arrays take longer; it may end before
    DRAWN.replace("h += 1", "h += y.random()").replace("x = y.random()", "x = a"),
    DRAWN.replace("y.random()", "y.normal(h, 1)"),
    # a generator of Python's own draws one number at a time
    "y = random.Random(n)\n" + DRAWN,
    DRAWN.replace("x * x", "a[i:] @ a[i:]"),
    DRAWN.replace("h += 1", "break"),
    # what is searched may be no list, changes, or is short; what is sought stays the same
    "for i in h:\n    if i in y:\n        a += i\nreturn a",
    "for i in h:\n    y.append(i)\n    a += y.index(i)\nreturn a",
    "y = ['a', 'b']\nreturn [y.index(i) for i in h]",
    "for i in h:\n    a += y.index(n)\nreturn a",
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
    return f"import random\nimport numpy as np\ndef rule(f, a, h, n, y):\n    {inside}\n"


@pytest.mark.parametrize("body", TOLD)
def test_what_is_done_one_by_one_is_told(body: str) -> None:
    (one,) = one_by_one(function(body))
    assert one.function == "rule" and TOLD[body] in one.title


@pytest.mark.parametrize("body", QUIET)
def test_what_waits_or_is_something_else_is_not(body: str) -> None:
    assert not [*one_by_one(function(body))]


def test_it_is_a_finding_without_a_price_or_an_edit() -> None:
    source = function(next(iter(TOLD)))
    (one,) = check_source("program.py", source, Options("node2026", {}, (), (), 1.0)).findings
    assert (one.code, one.span.start_line, one.fix, one.prediction) == ("ADV401", 6, None, None)
