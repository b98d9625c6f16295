"""Loops over elements as people write them, drawn: what is raised comes to the same.

Guards, lists that are appended to, places that only the data know, ranges that count down. They
run with NaN, infinities and zeros, on no elements and on one, and where every warning is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.proposal import Proposal
from advisor.source import apply_edits
from transforms.loops import raised, scattered_sums, vectorise
from transforms.loops.array_statements import IF_NOT_EMPTY

RULES = (vectorise.TRANSFORM, raised.TRANSFORM, scattered_sums.TRANSFORM)
HEAD = """\
import math

import numpy as np

# advise: kernel
# advise: x: f8[N]
# advise: y: f8[{shape}]
# advise: n: i8[N]
# advise: k: i8[N]
# advise: g: f8[N, N]
# advise: t: float
def f(x, y, n, k, g, t):
{body}
"""
FLOATS = (
    *("x[i]", "y[i]", "x[i] / y[i]", "np.sqrt(x[i])", "np.log(y[i])", "x[i] + y[i]", "-x[i]"),
    *("2 * x[i]", "abs(y[i])", "y[k[i]]", "x[k[i]] * t", "i * t", "g[i, k[i]]", "g[k[i], k[i]]"),
    *("x[i - 1]", "t / x[i]", "x[i] ** 2", "n[i] / y[i]", "x[-1 - i]", "max(x[i], 0.0)", "g[0, i]"),
    *("(x[i] if x[i] > 0 else y[i])", "(1 / x[i] if x[i] else 0.0)", "float(n[i])", "math.exp(t)"),
)
WHOLE = (
    "n[i]",
    "i",
    "n[i] + k[i]",
    "2 * i + 1",
    "n[k[i]]",
    "n[i] // k[i]",
    "abs(n[i])",
    "int(x[i])",
)
TESTS = (
    *("x[i] > 0", "y[i] != 0", "x[i] > t and y[i] > 0", "n[i] % 2 == 0", "not x[i] > y[i]"),
    *("0 <= x[i] < t", "k[i] == n[i]", "x[i] == 0 or y[i] == 0", "x[i] / y[i] > t", "n[i]"),
)
RANGES = ("range(len(x))", "range(1, len(x))", "range(len(x) - 1, 0, -1)", "range(len(x) - 1)")
TARGETS = (
    "out[i]",
    "out[i]",
    "x[i]",
    "out[k[i]]",
    "whole[i]",
    "out[len(x) - 1 - i]",
    "h[n[i], k[i]]",
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Draw a function that makes an array or a list, or changes what it is given."""

    def one(texts: tuple[str, ...]) -> str:
        return draw(st.sampled_from(texts))

    appends = draw(st.booleans())
    numbers = FLOATS if draw(st.integers(0, 3)) else WHOLE

    def action() -> list[str]:
        if appends:
            return [f"out.append({one(numbers)})"]
        target = one(TARGETS)
        number = one(WHOLE if target.startswith("whole") else FLOATS)
        sign = "+=" if target.startswith("h[") else one(("=", "=", "=", "+="))
        more = draw(st.sampled_from(([], [], [], ["count += 1"], [f"total += {one(FLOATS)}"])))
        return [f"{target} {sign} {number}", *more]

    def inside() -> list[str]:
        lines = action()
        ways = ("plain", "if", "if", "else", "elif", "continue", "nested", "number")
        match draw(st.sampled_from(ways)):
            case "number":
                lines = [f"v = {one(FLOATS)}", "if v > t:", *indented(lines), "u = v * t"]
            case "if":
                lines = [f"if {one(TESTS)}:", *indented(lines)]
            case "else":
                lines = [f"if {one(TESTS)}:", *indented(lines), "else:", *indented(action())]
            case "elif":
                lines = [f"if {one(TESTS)}:", *indented(lines)]
                lines += [f"elif {one(TESTS)}:", *indented(action())]
            case "continue":
                lines = [f"if {one(TESTS)}:", "    continue", *lines]
            case "nested":
                lines = [f"if {one(TESTS)}:", *indented([f"if {one(TESTS)}:", *indented(lines)])]
        return lines

    loop = [f"for i in {one(RANGES)}:", *indented(inside())]
    if appends:
        given = one(("np.array(out)", "out", "np.asarray(out)", "len(out), out"))
        return "\n".join(["out = []", *loop, f"return {given}"])
    made = [
        "out = np.zeros(len(x))",
        "whole = np.zeros(len(x), dtype=int)",
        "h = np.zeros(g.shape)",
    ]
    made += ["count = 0", "total = 0.0"]
    return "\n".join([*made, *loop, "return out, whole, h, count, total"])


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def source_of(body: str, shape: str = "N") -> str:
    return HEAD.format(shape=shape, body="\n".join(indented(body.splitlines())))


def proposals(source: str) -> list[tuple[Proposal, str]]:
    (kernel,) = read_kernels("f.py", source)
    offered = [one for rule in RULES for one in rule.propose(kernel)]
    return [(one, apply_edits(source, one.edits())) for one in offered if one.edits()]


def called(source: str, size: int, seed: int, errors: str, spoilt: bool) -> list[Any] | Exception:
    """Return what a function gives and leaves in its arguments, or why it fails."""
    random, names = np.random.default_rng(seed), dict[str, Any]()
    exec(compile(source, "f.py", "exec"), names)
    x, y, g = (random.integers(-2, 3, s) / 2.0 for s in (size, size, (size, size)))
    if spoilt and size > 2:
        x[0], y[1], x[2] = np.nan, np.inf, -0.0
    n, k = random.integers(-1, 3, size), random.integers(0, max(1, size), size)
    arrays = [x, y, np.minimum(n, size - 1), k, g]
    with np.errstate(all=errors):
        try:
            result = names["f"](*arrays, 0.75)
        except Exception as error:
            return error
    return [*arrays, *(result if isinstance(result, tuple) else (result,))]


def assert_same(one: Any, other: Any, exact: bool, told: str) -> None:
    """Check that two results are equal, their types included."""
    # a sum of nothing is a number of Python
    assert type(one) is type(other) or one == 0.0, (type(one), type(other), told)
    if isinstance(one, list):
        assert [type(part) for part in one] == [type(part) for part in other], told
    first, second = np.asarray(one), np.asarray(other)
    assert (first.dtype, first.shape) == (second.dtype, second.shape), told
    if exact:
        # of NaN the sign is none of arithmetic
        np.testing.assert_array_equal(first, second, told)
    else:
        np.testing.assert_allclose(second, first, 1e-12, 1e-12, err_msg=told)


def check(source: str, seed: int) -> bool:
    """Run a program as written and with each of its edits; return whether there were any."""
    offered = proposals(source)
    for proposal, edited in offered:
        legality = proposal.legality
        exact = legality.applicability is Applicability.SAFE or "bit" in legality.argument
        for size in (0, 1, 2, 3, 7):
            for errors, spoilt in (("ignore", True), ("raise", False)):
                before = called(source, size, seed, errors, spoilt)
                if isinstance(before, Exception):
                    continue
                if size < 3 and (IF_NOT_EMPTY in legality.argument):
                    continue
                if "something is appended" in legality.argument and not np.size(before[5]):
                    continue
                if "NaN" in legality.argument and spoilt:
                    continue
                if "overflow there" in legality.argument and errors == "raise":
                    continue
                after = called(edited, size, seed, errors, spoilt)
                assert not isinstance(after, Exception), (after, edited)
                for one, other in zip(before, after, strict=True):
                    assert_same(one, other, exact, edited)
    return bool(offered)


@given(bodies(), st.sampled_from(("N", "M")), st.integers(0, 99))
def test_what_is_raised_comes_to_the_same(body: str, shape: str, seed: int) -> None:
    event("raised" if check(source_of(body, shape), seed) else "left")


STAYS = {
    "a value of the iteration before": "for i in range(1, len(x)):\n    x[i] = t * x[i - 1] + y[i]",
    "what a condition guards within a condition": (
        "for i in range(len(x)):\n    if y[i] != 0 and x[i] / y[i] > t:\n        x[i] = 0"
    ),
    "an early exit": (
        "out = []\nfor i in range(len(x)):\n    if x[i] > t:\n        break\n    out.append(x[i])\n"
        "return np.array(out)"
    ),
    "a log on the way": (
        "out = []\nlog = []\nfor i in range(len(x)):\n    if x[i] < 0:\n"
        "        log.append(str(x[i]))\n"
        "    out.append(x[i])\nreturn np.array(out), log"
    ),
    "a list that is looked at": (
        "out = []\nfor i in range(len(x)):\n    if not out or x[i] > out[-1]:\n"
        "        out.append(x[i])\nreturn out"
    ),
    "a list that held something": (
        "out = [1.0]\nfor i in range(len(x)):\n    out.append(x[i])\nreturn np.array(out)"
    ),
    "two to a list": (
        "out = []\nfor i in range(len(x)):\n    out.append(x[i])\n    out.append(y[i])\nreturn out"
    ),
    "numbers of two kinds": (
        "out = []\nfor i in range(len(x)):\n    out.append(max(x[i], 0.0))\nreturn out"
    ),
}


@pytest.mark.parametrize("name", STAYS)
def test_traps_stay(name: str) -> None:
    assert proposals(source_of(STAYS[name])) == []


COMPREHENSIONS = {
    "return np.array([x[i] * t for i in range(len(x))])": "return x * t",
    "out = np.array([v * t for v in x])\nreturn out + 1": "out = x * t",
    "out = np.array([x[i] for i in range(len(x)) if n[i] > 0])\nreturn out": "out = x[n > 0]",
    "return np.asarray([a * b for a, b in zip(x, y)])": "return x * y",
    "return np.array([x[i] - y[k[i]] for i in range(len(x)) if n[i] > 0])": (
        "mask = n > 0\n    return x[mask] - y[k[mask]]"
    ),
    "return np.array([[1.0 if c == v else 0.0 for c in range(4)] for v in n])": (
        "return np.where(np.arange(4) == n[:, None], 1.0, 0.0)"
    ),
    "return np.array([[v * w for w in y] for v in x])": "return x[:, None] * y",
    "return np.array([v * w for w in y for v in x])": "return (x * y[:, None]).ravel()",
    "return np.array([row for row in g])": "return g.copy()",
    "return np.array([row.sum() for row in g])": "return g.sum(axis=1)",
    "return np.array([i for i in range(len(x))])": "return np.arange(x.shape[0])",
    "return np.array([v > t for v in x if v != 0 if v < 2])": "return x[(x != 0) & (x < 2)] > t",
    "return np.array([\n    # twice\n    2 * v\n    for v in x\n])": "# twice\n    return 2 * x",
    "i = 1\nout = np.array([x[i] for i in range(len(x))])\nout[i:] += i\nreturn out": (
        "out = x.copy()"
    ),
}


@pytest.mark.parametrize("body", COMPREHENSIONS)
def test_comprehensions_come_to_the_same(body: str) -> None:
    source = source_of(body)
    assert any(COMPREHENSIONS[body] in edited for _, edited in proposals(source))
    assert all(check(source, seed) for seed in range(4))


STAYING = {
    "numbers of two kinds": "np.array([1.0 if v > 0 else 0 for v in x])",
    "two kinds, by an extreme": "np.array([max(v, 0) for v in x])",
    "rows of several lengths": "np.array([[v for v in x[:i]] for i in range(len(x))])",
    "a row that conditions shorten": "np.array([[v for v in x if v > w] for w in x])",
    "what it binds": "np.array([(z := v) for v in x])",
    "a name of the function that is an array": "np.array([x for x in x])",
    "functions": "np.array([lambda: v for v in x])",
    "a list that stays one": "[v * t for v in x]",
    "another type of elements": "np.array([v * t for v in x], dtype='f4')",
    "several lines ahead": "(\n        np.array([v * t for v in x])\n    )",
}


@pytest.mark.parametrize("name", STAYING)
def test_other_comprehensions_stay(name: str) -> None:
    assert proposals(source_of(f"return {STAYING[name]}")) == []


PAIRS = "p = np.zeros((len(x), 2), dtype={})\np[:, 0] = {}\np[:, 1] = {}\n"
THROUGH = {
    "out = np.zeros(g.shape[0])\nfor v in g.ravel():\n    out[0] += v\nreturn out": "g.sum()",
    "return np.array([v * t for v in g.ravel()])": "return (g * t).ravel()",
    "return np.array([v * t for v in g.T.copy().flat])": "",
    "p = g.T\nreturn np.array([v * t for v in p.flat])": "(p * t).ravel()",
    "h = np.zeros(9, dtype=int)\nfor v in k.flatten():\n    h[v] += 1\nreturn h": "h",
    f"{PAIRS.format('float', 'x', 'y')}return np.array([a * b for a, b in p])": (
        "return p[:, 0] * p[:, 1]"
    ),
    f"{PAIRS.format('float', 'x', 'y')}out = np.zeros(len(x))\nfor i, (a, b) in enumerate(p):\n"
    "    out[i] = a - b\nreturn out": "out[:] = p[:, 0] - p[:, 1]",
    f"{PAIRS.format('int', 'k', 'k')}for a, b in p:\n    g[a, b] += 1\nreturn g": (
        "np.add.at(g, (p[:, 0], p[:, 1]), 1)"
    ),
    # columns that are not there, and what changes on the way
    f"{PAIRS.format('float', 'x', 'y')}return np.array([a for a, b, c in p])": "",
    "for v in g.flatten():\n    g[0] += v\nreturn g": "",
    "out = np.zeros(g.shape)\nfor v in g.ravel():\n    if v > t:\n        break\n    out += v\n"
    "return out": "",
}


@pytest.mark.parametrize("body", THROUGH)
def test_loops_through_all_elements_and_columns_come_to_the_same(body: str) -> None:
    source = source_of(body)
    offered = proposals(source)
    assert any(THROUGH[body] in edited for _, edited in offered) or not THROUGH[body], offered
    for seed in range(4):
        check(source, seed)


def test_a_comprehension_in_a_loop_comes_to_the_same() -> None:
    body = "for j in range(len(x)):\n    new = np.array([v * w for v, w in zip(x, y)])\n"
    assert check(source_of(f"{body}    x[j] = new[0]\nreturn x"), 1)


NARROW = """\
import numpy as np

# advise: kernel
# advise: img: u1[H, W]
# advise: out: u1[H, W]
# advise: wide: i8[H, W]
# advise: t: float
def f(img, out, wide, t):
    for i in range(img.shape[0]):
        for j in range(img.shape[1]):
            {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        *("out[i, j] = img[i, j] + 100", "wide[i, j] = img[i, j] + 100", "out[i, j] = -img[i, j]"),
        *("out[i, j] = min(int(img[i, j]) + 100, 255)", "wide[i, j] = int(img[i, j]) * 3"),
        *("wide[i, j] = img[i, j] * wide[i, j]", "out[i, j] = img[i, j] if img[i, j] > 9 else i"),
        *("out[i, j] = img[i, j] - out[i, j]", "wide[i, j] = i * img[i, j]"),
    ],
)
def test_narrow_whole_numbers_wrap_around_as_before(line: str) -> None:
    source = NARROW.format(line=line)
    random = np.random.default_rng(3)
    given = [random.integers(0, 256, (4, 5)).astype(t) for t in ("u1", "u1", "i8")]
    for _, edited in proposals(source):
        left = []
        for text in (source, edited):
            names, arrays = dict[str, Any](), [one.copy() for one in given]
            exec(compile(text, "f.py", "exec"), names)
            with np.errstate(all="ignore"):
                try:
                    names["f"](*arrays, 0.5)
                except OverflowError:
                    arrays = []
            left.append(arrays)
        if left[0]:
            for one, other in zip(*left, strict=True):
                np.testing.assert_array_equal(one, other, edited)
