"""Loops that call functions of the file for each element, drawn: what is raised comes to the same.

The functions return early, choose, bind names and call one another. Others do what no array
statement does, and stay where they are.
"""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from advisor.frontend.kernels import read_kernels
from advisor.ir.statements import Loop, walk
from tests.transforms.loops.test_written_loops import check, indented, proposals, source_of

VALUES = (
    *("v", "w", "v + w", "v / w", "0.0", "1.5", "2 * v", "-w", "abs(v)", "math.exp(-v * v)", "3"),
    *("math.sqrt(v)", "v // w", "v if v > w else w", "max(v, 0.0)", "min(v, w)", "LIMIT - v"),
)
NAMED = ("v + w", "1.5", "2 * v", "abs(v)", "v if v > w else w", "LIMIT - v", "math.exp(-v * v)")
"""None is 0 for a number alone, which would divide also where no iteration does."""
TESTS = (
    *("v > w", "v <= 0", "v != 0", "w", "not v > 1", "0 <= v < w", "v == w or w > 0"),
    *("v > LIMIT", "v / w > 1"),
)
CALLS = (
    *("h(x[i], t)", "h(x[i], y[i])", "h(x[i], y[i]) - h(y[i], x[i])", "h(w=t, v=y[i])"),
    *("h(h(x[i], t), y[i])", "2 * h(x[k[i]], 0.5)", "h(x[i - 1], x[i])", "h(n[i], k[i])"),
    *("h(t, x[i])", "h(float(x[i]), t)", "h(g[i, k[i]], x[i])", "h(i, x[i])"),
)
LOOPS = (
    *("out[i] = {0}", "out[i] = {0}", "out[i] += {0}", "x[i] = {0}", "total += {0}"),
    *("if {0} > 0:\n        out[i] = {1}", "v = {0}\n    out[i] = v * {1}", "whole[i] = {0}"),
    *("if x[i] > 0:\n        total += {0}", "out[k[i]] += {0}", "out[i] = max({0}, {1})"),
    *("if {0} > {1}:\n        continue\n    out[i] = {1}", "out[i], whole[i] = {0}, 1"),
)
AROUND = """\
out = np.zeros(len(x))
whole = np.zeros(len(x), dtype=int)
total = 0.0
for i in range(len(x)):
    {}
return out, whole, total"""
LISTED = ("return np.array([{} for i in range(len(x))])",)


@st.composite
def helpers(draw: st.DrawFn) -> str:
    """Draw a function of two numbers."""

    def one(texts: tuple[str, ...]) -> str:
        return draw(st.sampled_from(texts))

    def block(depth: int, ends: bool) -> list[str]:
        lines = []
        for _ in range(draw(st.integers(0, 2))):
            name = one(("u", "v", "w"))
            lines.append(f"{name} = {one(NAMED)}")
        if depth < 2 and draw(st.booleans()):
            lines += [f"if {one(TESTS)}:", *indented(block(depth + 1, draw(st.booleans())))]
            if draw(st.integers(0, 2)) == 0:
                lines += [f"elif {one(TESTS)}:", *indented(block(depth + 1, True))]
            if draw(st.booleans()):
                lines += ["else:", *indented(block(depth + 1, draw(st.booleans())))]
        if ends or not lines:
            lines.append(f"return {one(VALUES)}")
        return lines

    ends = draw(st.integers(0, 9)) > 0
    return "\n".join(["def h(v, w):", *indented(block(0, ends))])


def program_of(helper: str, body: str) -> str:
    head, mark, rest = source_of(body).partition("# advise: kernel")
    return f"{head}LIMIT = 0.25\n\n{helper}\n\n{mark}{rest}"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Draw a function that calls another one in a loop."""
    calls = [draw(st.sampled_from(CALLS)) for _ in range(2)]
    if draw(st.integers(0, 4)) == 0:
        body = draw(st.sampled_from(LISTED)).format(calls[0])
    else:
        body = AROUND.format(draw(st.sampled_from(LOOPS)).format(*calls))
    return program_of(draw(helpers()), body)


@given(programs(), st.integers(0, 99))
def test_calls_that_are_raised_come_to_the_same(source: str, seed: int) -> None:
    event("raised" if check(source, seed) else "left")


STAYS = {
    "one that counts its calls": "def h(v, w):\n    global LIMIT\n    LIMIT += 1\n    return v",
    "one that may return nothing": "def h(v, w):\n    if v > w:\n        return v",
    "one that calls itself": "def h(v, w):\n    if v > w:\n        return v\n    return h(w, v)",
    "one that returns from a loop": (
        "def h(v, w):\n    for _ in range(2):\n        if v:\n            return v\n    return w"
    ),
    "one that fails": "def h(v, w):\n    if v > w:\n        raise ValueError\n    return v",
    "one that prints": "def h(v, w):\n    if v > w:\n        print(v)\n    return v",
    "one that keeps what it is given": (
        "KEPT = []\n\ndef h(v, w):\n    if v > w:\n        KEPT.append(v)\n    return v"
    ),
    "one of other types": "def h(v, w):\n    if v > w:\n        return 'x'\n    return v",
    "a generator": "def h(v, w):\n    if v > w:\n        return 1.0\n    yield v",
}


@pytest.mark.parametrize("title", STAYS)
def test_functions_that_do_more_are_called(title: str) -> None:
    body = AROUND.format("out[i] = h(x[i], t)")
    assert proposals(program_of(STAYS[title], body)) == []


def test_names_of_a_function_are_its_own() -> None:
    helper = "def h(v, w):\n    i = v\n    if i > w:\n        return i\n    x = i * 2\n    return x"
    source = program_of(helper, AROUND.format("out[i] = h(x[i], t) + x[i]"))
    wanted = "out[:] = np.where(x > t, x, x * 2) + x"
    assert any(wanted in edited for _, edited in proposals(source))
    assert all(check(source, seed) for seed in range(3))


def test_each_call_has_its_own_arguments() -> None:
    source = program_of(
        "def h(v, w):\n    return v - 2 * w",
        AROUND.format(
            "if h(x[i], t) > h(y[i], x[i]):\n        out[i] = h(x[i], y[i]) / h(y[i], t)"
        ),
    )
    assert all(check(source, seed) for seed in range(3))


@pytest.mark.parametrize("through", ["v.ravel()", "v.flat", "v[1:].flatten()"])
def test_loops_over_all_elements_stand_where_the_function_does(through: str) -> None:
    loop = f"for one in {through}:\n        out += one"
    helper = f"def h(v, w):\n    out = w\n    {loop}\n    return out"
    source = program_of(helper, "return h(g, t)")
    (kernel,) = read_kernels("f.py", source)
    lines = {one.span.start_line for one in walk(kernel.body) if isinstance(one, Loop)}
    assert lines == {1 + source.splitlines().index(f"    for one in {through}:")}
