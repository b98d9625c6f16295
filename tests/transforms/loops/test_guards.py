"""Loops whose conditions keep subscripts inside, drawn: what is raised comes to the same.

Conditions hold for part of a range, for all of it or for none, and some keep nothing inside, so
that subscripts count from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from advisor.finding import Applicability
from tests.transforms.loops.test_written_loops import indented, proposals
from transforms.loops.array_statements import IF_NOT_EMPTY

HEAD = """\
import numpy as np

# advise: kernel
# advise: x: f8[N]
# advise: y: f8[M]
# advise: g: f8[N, M]
# advise: out: f8[N]
# advise: n: i8[N]
def f(x, y, g, out, n):
    s = 0.0
{body}
    return s
"""
OUTER = ("range(-3, 4)", "range(len(y))", "range(3)", "range(1, len(x))")
INNER = ("range(len(x))", "range(1, len(x))", "range(len(y))", "range(len(x) - 1)")
TESTS = (
    *("i - d >= 0", "0 <= i + d < len(x)", "i >= d and i - d < len(x)", "d <= i", "i + d < len(x)"),
    *("0 <= i - d and i < len(y)", "not i < d", "i != d", "i - 2 * d >= 0", "i + d - 1 >= 0"),
    *("i > d and x[i] > 0", "i < d", "d - i >= 0", "-1 < i + d < len(y)", "i - d >= 0 or d == 1"),
)
ACTIONS = (
    *("out[i] += x[i - d]", "out[i] = x[i + d]", "s += x[i] * x[i - d]", "out[i] -= x[i - d] * d"),
    *("out[d] += x[i - d]", "out[i] += y[i - d]", "g[i, d] = x[i - d]", "g[i] += x[i + d]"),
    *("out[i] += x[i + d - 1]", "n[i] += n[i - d]", "out[i] = x[d - i]", "x[i] = x[i - d]"),
    *("x[i] -= x[i] * x[d]", "g[i] -= g[i, 0] * g[d]", "g[i, 0] -= g[d, 0]"),
    *("n[i] += 1", "s = max(s, x[i - d])", "out[i] += x[i - 2 * d]", "out[i] += g[i + d, 0]"),
)
SIZES = ((0, 0), (1, 3), (3, 1), (2, 5), (4, 4), (9, 4))


@st.composite
def nests(draw: st.DrawFn) -> str:
    """Draw two loops with a condition, or with what skips an iteration."""

    def one(texts: tuple[str, ...]) -> str:
        return draw(st.sampled_from(texts))

    test, action, way = one(TESTS), one(ACTIONS), draw(st.integers(0, 5))
    inner = [f"if {test}:", f"    {action}"]
    if way == 1:
        inner = [f"if not ({test}):", "    continue", action]
    elif way == 2:
        inner += ["else:", "    n[i] = 0"]
    elif way == 3:
        inner = ["k = i - d", "if 0 <= k:", f"    {action.replace('i - d', 'k')}"]
    elif way == 4:
        inner = ["if i < d or i - d >= len(x):", "    continue", action]
    if draw(st.integers(0, 3)) == 0:
        inner = [f"for j in {one(('range(len(y))', 'range(2)'))}:", *indented(inner)]
    loop = [f"for i in {one(INNER)}:", *indented(inner)]
    return "\n".join(indented([f"for d in {one(OUTER)}:", *indented(loop)]))


def called(source: str, sizes: tuple[int, int], seed: int) -> list[Any] | Exception:
    random, names = np.random.default_rng(seed), dict[str, Any]()
    exec(compile(source, "f.py", "exec"), names)
    shapes = (sizes[0], sizes[1], sizes, sizes[0])
    arrays = [random.integers(-3, 4, shape) / 2.0 for shape in shapes]
    arrays.append(random.integers(-3, 4, sizes[0]))
    try:
        return [*arrays, names["f"](*arrays)]
    except IndexError as error:
        return error


def check(source: str, seed: int) -> bool:
    """Run a program as written and with each of its edits; return whether there were any."""
    offered = proposals(source)
    for proposal, edited in offered:
        argued = proposal.legality
        exact = argued.applicability is Applicability.SAFE or "bit" in argued.argument
        for sizes in SIZES[-1:] if IF_NOT_EMPTY in argued.argument else SIZES:
            before = called(source, sizes, seed)
            if isinstance(before, Exception):
                continue
            after = called(edited, sizes, seed)
            assert not isinstance(after, Exception), (after, sizes, edited)
            for one, other in zip(before, after, strict=True):
                tolerance = 0.0 if exact else 1e-12
                np.testing.assert_allclose(other, one, tolerance, tolerance, err_msg=edited)
    return bool(offered)


@given(nests(), st.integers(0, 99))
def test_loops_under_conditions_come_to_the_same(body: str, seed: int) -> None:
    event("raised" if check(HEAD.format(body=body), seed) else "left")


WRITTEN = {
    "for d in range(len(y)):\n    for i in range(len(x)):\n        if i - d >= 0:\n"
    "            y[d] += x[i] * x[i - d]": "y[d] += x[d:max(d, x.shape[0])] @ x[:",
    "for d in range(-3, 4):\n    for i in range(len(x)):\n        k = i + d\n"
    "        if k < 0 or k >= len(x):\n            continue\n"
    "        out[i] += x[k]": "out[max(-d, 0):max(-d, min(",
    "for i in range(len(x)):\n    for d in range(len(y)):\n        if i >= d:\n"
    "            out[i] += y[d] * x[i - d]": "out[i] += y[:min(y.shape[0], i + 1)] @ ",
}


@pytest.mark.parametrize("body", WRITTEN)
def test_ranges_end_where_conditions_do(body: str) -> None:
    source = HEAD.format(body="\n".join(indented(body.splitlines())))
    assert any(WRITTEN[body] in edited for _, edited in proposals(source))
    assert all(check(source, seed) for seed in range(3))


STACKS = """\
import numpy as np

# advise: kernel
# advise: s: f8[E, A, R, R]
# advise: g: f8[E, A, R, R]
# advise: d: f8[W, A, R, R]
# advise: n: i8[A]
def f(s, g, d, n):
    for e in range(s.shape[0]):
        for w in range(d.shape[0]):
            for a in range(s.shape[1]):
                if e - w >= 0:
                    s[e, a] += {} @ d[w, a]
"""
WITHIN = {
    "g[e - w, a]": "        s[e, :, :, :] += (g[e - min(d.shape[0], e + 1) + 1:e + 1",
    "g[e - w, n[a]]": "        for w in range(min(d.shape[0], e + 1)):\n            s[e, :, :",
}


@pytest.mark.parametrize("matrix", WITHIN)
def test_what_is_within_goes_with_the_range_that_its_condition_leaves(matrix: str) -> None:
    source = STACKS.format(matrix)
    texts = [edited for _, edited in proposals(source)]
    assert any(WITHIN[matrix] in text for text in texts)
    for shapes in ((3, 5), (5, 3), (4, 1)):
        stacks = [np.random.default_rng(1).random((n, 2, 3, 3)) for n in (*shapes[:1], *shapes)]
        left = []
        for text in (source, *texts):
            names, given = dict[str, Any](), [one.copy() for one in stacks]
            exec(compile(text, "f.py", "exec"), names)
            names["f"](*given, np.array([1, 0]))
            left.append(given[0])
        for one in left[1:]:
            np.testing.assert_allclose(one, left[0], 1e-12)


STAYS = {
    "draws for every iteration": (
        "for i in range(len(x)):\n    v = np.random.random()\n    if i - len(y) >= 0:\n"
        "        out[i] += v * x[i - len(y)]"
    ),
    "a condition that draws": (
        "for i in range(len(x)):\n    if np.random.random() < 0.5 and i - len(y) >= 0:\n"
        "        out[i] += x[i - len(y)]"
    ),
    "a number that goes on changing": (
        "k = 0\nfor i in range(len(x)):\n    k = k + n[i]\n    if i - k >= 0:\n"
        "        out[i] += x[i - k]"
    ),
    "a range that is left": (
        "for i in range(len(x)):\n    if i - len(y) >= 0:\n        out[i] += x[i - len(y)]\n"
        "        if x[i] > 1:\n            break"
    ),
}


@pytest.mark.parametrize("title", STAYS)
def test_what_runs_besides_the_condition_stays(title: str) -> None:
    assert proposals(HEAD.format(body="\n".join(indented(STAYS[title].splitlines())))) == []
