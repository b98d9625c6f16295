"""Loops over elements as people write them, drawn: what is raised comes to the same.

Guards, lists that are appended to, places that only the data know, ranges that count down. They
run with NaN, infinities and zeros, on no elements and on one, and where every warning is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Proposal
from advisor.source import apply_edits
from tests.transforms.case_files import bodies as cases_of
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
    *(
        "x[i - 1]",
        "y[i - 2]",
        "t / x[i]",
        "x[i] ** 2",
        "n[i] / y[i]",
        "x[-1 - i]",
        "max(x[i], 0.0)",
        "g[0, i]",
    ),
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
        given = one(
            ("np.array(out)", "out", "np.asarray(out)", "len(out), out", "out, np.array(out)")
        )
        again = "if len(x) > 2:\n    out = []"
        bound = one(
            ("", "", "out = np.array(out)", "out = np.array(out) + 1", "out = out[::-1]", again)
        )
        return "\n".join(["out = []", *loop, *bound.splitlines(), f"return {given}"])
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


def assert_same(one: Any, other: Any, exact: bool, told: str, of_numpy: bool) -> None:
    """Check that two results are equal, their types included; but for numbers `of_numpy`."""
    # a sum of nothing is a number of Python, and a float64 of NumPy is a float
    same = type(one) is type(other) or one == 0.0 or (of_numpy and type(other) is np.float64)
    assert same, (type(one), type(other), told)
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
        of_numpy = "may be a number of NumPy where it was one of Python" in legality.argument
        for size in (0, 1, 2, 3, 7):
            for errors, spoilt in (("ignore", True), ("raise", False)):
                before = called(source, size, seed, errors, spoilt)
                if isinstance(before, Exception):
                    continue
                if size < 3 and (IF_NOT_EMPTY in legality.argument):
                    continue
                if "something is appended" in legality.argument and not np.size(before[-1]):
                    continue
                if "NaN" in legality.argument and spoilt:
                    continue
                if "overflow there" in legality.argument and errors == "raise":
                    continue
                after = called(edited, size, seed, errors, spoilt)
                assert not isinstance(after, Exception), (after, edited)
                for one, other in zip(before, after, strict=True):
                    of_none = size < 2 and "what no iteration adds to" in legality.argument
                    if (of_none or "of no terms" in legality.argument) and not np.ndim(one):
                        one = type(other)(one)
                    assert_same(one, other, exact, edited, of_numpy)
    return bool(offered)


@given(bodies(), st.sampled_from(("N", "M")), st.integers(0, 99))
def test_what_is_raised_comes_to_the_same(body: str, shape: str, seed: int) -> None:
    event("raised" if check(source_of(body, shape), seed) else "left")


@st.composite
def bodies_with_rows(draw: st.DrawFn) -> str:
    """Draw a function whose iterations make arrays of their own and fill them in parts."""

    def one(*texts: str) -> str:
        return draw(st.sampled_from(texts))

    a, b, c = (one(*FLOATS) for _ in range(3))
    made = one(
        "np.zeros(3)", "np.ones(3)", f"np.array([{a}, {b}, {c}])", "g[i, :3] * t", "g[i, :3]"
    )
    store = f"v[{one('0', '1', '2', 'k[i] % 3')}] {one('=', '=', '+=')} {one(*FLOATS)}"
    fill = one(
        store,
        f"v[1] = {a}\nv[2] = v[1] * v[0]",
        f"if {one(*TESTS)}:\n    {store}",
        "for j in range(3):\n    v[j] += g[i, j] * t",
        f"for j in range(2):\n    v[j + 1] = v[j] + {b}",
    )
    end = one(
        *("out.append(v)", "out.append(v)\nv[0] = 1.0", "out.append([x[i], v[1], t])"),
        *("out.append((n[i], 1))", "y[i] = v.sum()", "y[i] = v[0] - v[2]", "g[i, :3] = v"),
        *("y[i] = v @ v", "g[i, :3] = np.array([v[0], x[i], g[i, 0]])", "x[i] = (v * v).max()"),
    )
    lines = "\n".join([f"v = {made}", fill, end]).split("\n")
    loop = [f"for i in {one('range(len(x))', 'range(1, len(x))')}:", *indented(lines)]
    before = one("out = []", "out = []", "out = []\nv = np.zeros(3)")
    return "\n".join([before, *loop, f"return {one('np.array(out)', 'np.array(out)', 'out, y')}"])


@given(bodies_with_rows(), st.integers(0, 99))
def test_arrays_of_iterations_come_to_the_same(body: str, seed: int) -> None:
    event("raised" if check(source_of(body), seed) else "left")


@st.composite
def generators(draw: st.DrawFn) -> str:
    """Draw a function that has Python go through what comprehensions give."""

    def one(*texts: str) -> str:
        return draw(st.sampled_from(texts))

    def number() -> str:
        term = one(*FLOATS, *WHOLE, *TESTS, "1", "g[i, j]")
        inner = " for j in range(len(x))" * ("j" in term or not draw(st.integers(0, 4)))
        rest = one("", "", f" if {one(*TESTS)}")
        given = f"{term} for i in {one(*RANGES)}{inner}{rest}"
        return f"{one('sum', 'sum', 'max', 'min', 'any', 'all')}({one(given, given, f'[{given}]')})"

    made = one(number(), number(), f"{number()} * t", f"{number()} + {number()}")
    row = number().replace("y[i]", "g[i, j]") if draw(st.booleans()) else number()
    return one(
        *(f"return {made}", f"x[0] = {made}\nreturn 1"),
        f"out = {made}\nreturn out, i if n[0] > 9 else 0",
        f"i = 3\nout = {made}\nreturn out, i",
        f"for j in range(len(y)):\n    y[j] = {row}\nreturn 1",
        f"if {number()}:\n    return 1.0\nout = {made}\nreturn out",
    )


@given(generators(), st.integers(0, 99))
@example(
    "for j in range(len(y)):\n    y[j] = sum((1 / x[i] if x[i] else 0.0) for i in range(len(x))"
    " if g[i, j] != 0)\nreturn 1",
    0,
)
@example(
    "return any(x[i] for i in range(len(x))) + sum(n[i] for i in range(1, len(x)))",
    0,
)
def test_generators_come_to_the_same(body: str, seed: int) -> None:
    event("raised" if check(source_of(body), seed) else "left")


STAYS = cases_of("loops/written.txt", "stays")
BECOMES = cases_of("loops/written.txt", "becomes")
MAY_STAY = cases_of("loops/written.txt", "may stay")


@pytest.mark.parametrize("title", STAYS)
def test_traps_stay(title: str) -> None:
    assert proposals(source_of(STAYS[title][0])) == []


@pytest.mark.parametrize("title", BECOMES)
def test_what_becomes_array_statements_comes_to_the_same(title: str) -> None:
    body, wanted = BECOMES[title]
    source = source_of(body)
    assert any(wanted.rstrip() in dedented(edited) for _, edited in proposals(source))
    assert all(check(source, seed) for seed in range(4))


def dedented(text: str) -> str:
    return text.replace("\n    ", "\n")


@pytest.mark.parametrize("title", MAY_STAY)
def test_what_may_stay_comes_to_the_same(title: str) -> None:
    for seed in range(4):
        check(source_of(MAY_STAY[title][0]), seed)


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


@pytest.mark.parametrize("number", ["x[i - 1]", "(y[i] - y[i - 2]) * x[i - 1]", "g[i - 1, 0]"])
@pytest.mark.parametrize("length", ["len(x)", "n[0]", "len(x) // 2"])
def test_subscripts_from_the_end_are_followed_round_it(number: str, length: str) -> None:
    source = source_of(
        f"out = np.zeros(len(x))\nfor i in range({length}):\n    out[i] = {number}\nreturn out"
    )
    assert any("np.roll" in text for _, text in proposals(source)) == (length == "len(x)")
    assert [check(source, seed) for seed in range(3)]
