"""Loops that are shown go to the same in any order of their iterations; others say who waits."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import njit

from advisor.engine import Options, check_source
from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.functions import names_around
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Compiled, Loop, ScalarBind, Unknown, walk
from advisor.ir.waiting import what_waits
from advisor.ranking.compare import Costed, cost_at, time_s
from advisor.source import apply_edits
from advisor.transform_registry import transforms
from costdb.machines import load_machine
from transforms.kit.kernels import with_statement
from transforms.loops.vectorise import considered, is_compilable

HEAD = """\
import numpy as np

# advise: kernel
# advise: x: f8[N]
# advise: y: f8[N]
# advise: p: i8[N]
# advise: m: f8[N, N]
# advise: h: float
def f(x, y, p, m, h):
    out = np.zeros(len(x))
"""
SHOWN = {
    "a place that is computed": (
        "for i in range(len(x)):\n    out[i] = x[p[i] % 5 // 2] + y[(i * i) % 7]\n"
    ),
    "one that the loop within goes on with": (
        "for i in range(len(x)):\n"
        "    odd = False\n"
        "    j = len(y) - 1\n"
        "    for k in range(len(y)):\n"
        "        if (y[k] > x[i]) != (y[j] > x[i]):\n"
        "            odd = not odd\n"
        "        j = k\n"
        "    out[i] = odd\n"
    ),
    "conditions of several": (
        "for i in range(len(x)):\n"
        "    s = x[(i * i) % 7]\n"
        "    if s > h:\n"
        "        s = h - s\n"
        "    out[i] = s * y[i]\n"
    ),
    "windows that end where the array does": (
        "for i in range(len(x)):\n    out[i] = np.median(x[max(0, i - 2):min(len(x), i + 3)])\n"
    ),
    "a list for each": (
        "for i in range(len(x)):\n"
        "    c = [x[k * i % 7] - y[k] for k in range(len(y)) if k != i]\n"
        "    out[i] = np.argmin(c)\n"
    ),
    "elements of what is computed": (
        "z = np.unwrap(y)\nfor i in range(len(x)):\n"
        "    out[i] = x[i * i % 7] + np.interp(h, x, z)\n"
    ),
}
WAITING = {
    "the number before": (
        "z = 0.0\nfor i in range(len(x)):\n    out[i] = x[i] + z\n    z = h * out[i] - x[i]\n",
        "`z`",
    ),
    "the index before": (
        "j = 0\nfor i in range(len(x)):\n    out[i] = x[i] - x[j]\n    j = i\n",
        "`j`",
    ),
    "a sum of terms that need it": (
        "z = x.copy()\nfor i in range(len(x)):\n    z += (y[i] - np.dot(m[i], z)) * m[i]\n"
        "out[:] = z\n",
        "`z`",
    ),
    "an extreme of what it was": (
        "z = 0.0\nfor i in range(len(x)):\n    z = max(z, x[i * i % 7] - h * z)\nout[:] = z\n",
        "`z`",
    ),
    "the element before": (
        "for i in range(1, len(x)):\n    out[i] = x[i * i % 7] + h * out[i - 1]\n",
        "`out[i - 1]`",
    ),
    "the element of a matrix": (
        "for k in range(len(x)):\n    for i in range(len(x)):\n        for j in range(len(x)):\n"
        "            m[i, j] = min(m[i, j], m[i, k] + m[k, j])\nout[:] = m[0]\n",
        "`m[i, k]`",
    ),
    "an element of a row": (
        "for k in range(len(x)):\n    for i in range(len(x)):\n        z = m[i, k] + m[k]\n"
        "        m[i][z < m[i]] = h\nout[:] = m[0]\n",
        "`m[i, k]`",
    ),
    "slices that overlap": (
        "for i in range(len(x) - 2):\n    out[i:i + 2] += x[i * i % 7]\n",
        "may overlap",
    ),
    "one place of several": (
        "for i in range(len(x)):\n    out[p[i] % 5] = h * out[p[i] % 5] + x[i * i % 7]\n",
        "in several iterations",
    ),
    "an early end": (
        "for i in range(len(x)):\n    if x[i * i % 7] > h:\n        break\n    out[i] = 1.0\n",
        "left early",
    ),
    "a generator": (
        "rng = np.random.default_rng(0)\n"
        "for i in range(len(x)):\n"
        "    out[i] = rng.random() * x[i * i % 7]\n",
        "numbers of `rng`",
    ),
    "places that are drawn": (
        "for i in range(len(x)):\n    k = np.random.randint(0, 12)\n"
        "    out[i] = h * out[i - 1] + x[(k + 3) % 12]\n",
        "`np.random`, and a compiler has its own",
    ),
    "elements of a window": (
        "for i in range(1, len(x) - 1):\n    w = m[i - 1:i + 2, :3].ravel()\n"
        "    m[i, 1] = h * np.delete(w, 4).min()\nout[:] = m[0]\n",
        "`m[i - 1:i + 2, :3]`",
    ),
}


def source_of(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}{lines}    return out\n"


def kernel_of(body: str) -> Kernel:
    (kernel,) = read_kernels("a.py", source_of(body))
    return kernel


def result(source: str) -> np.ndarray[Any, Any]:
    drawn = np.random.default_rng(3)
    names: dict[str, Any] = {}
    exec(compile(source, "a.py", "exec"), names)
    given = drawn.normal(size=12), drawn.normal(size=12), drawn.integers(0, 12, 12)
    made: np.ndarray[Any, Any] = names["f"](*given, drawn.random((12, 12)), 0.4)
    return made


def first_loop(body: str) -> ast.For:
    return next(one for one in ast.walk(ast.parse(body)) if isinstance(one, ast.For))


def waits_for(body: str, helpers: str = "") -> str:
    """Return what the first loop waits for, after helpers of its file."""
    source = f"import math\nimport numpy as np\n{helpers}\n{body}"
    loop = next(one for one in ast.parse(source).body if isinstance(one, ast.For))
    return what_waits(loop, names_around(source, loop.lineno))


@pytest.mark.parametrize("case", SHOWN)
def test_a_loop_that_is_shown_comes_to_the_same_in_the_opposite_order(case: str) -> None:
    body = SHOWN[case]
    (proposal,) = considered(kernel_of(body))
    assert proposal.legality.applicability is Applicability.DISPLAY
    assert not proposal.edits()
    assert "`i`" in proposal.title
    backward = body.replace("for i in range(len(x)):", "for i in reversed(range(len(x))):", 1)
    assert backward != body
    assert np.array_equal(result(source_of(body)), result(source_of(backward)))


@pytest.mark.parametrize("case", WAITING)
def test_a_loop_that_waits_is_to_be_compiled_and_says_for_what(case: str) -> None:
    body, why = WAITING[case]
    outer = first_loop(body)
    assert why in waits_for(body)
    line = HEAD.count("\n") + outer.lineno
    (proposal,) = (one for one in considered(kernel_of(body)) if one.span.start_line == line)
    assert proposal.title.startswith("compile the loop")
    assert why in proposal.reason
    assert not proposal.edits()


def test_memory_under_another_name_is_another_iterations() -> None:
    body = "tail = out[3:]\nfor i in range(len(tail)):\n    tail[i] = 0.5 * out[i] + x[i * i % 7]\n"
    assert not waits_for(body)
    (proposal,) = considered(kernel_of(body))
    assert "elements of `out` that are read" in proposal.reason


NOT_COMPILED = {
    "a text": "for i in range(len(x)):\n    out[i] = x[i * i % 7]\n    print(f'{i}')\n",
    "a call of what is given": "for i in range(len(x)):\n    out[i] = h.of(x[i * i % 7])\n",
    "a dictionary": "for i in range(len(x)):\n    out[i] = {0: x[i], 1: y[i]}[i % 2]\n",
    "a file": ("for i in range(len(x)):\n    out[i] = x[i * i % 7]\n    np.save('a', out)\n"),
    "short array statements that wait": (
        "z = x.copy()\nfor i in range(len(x)):\n    z = z * 0.5 + y\nout[:] = z\n"
    ),
    "slices from places that iterations compute": (
        "for i in range(len(x)):\n    k = max(i * i % 7, (i + 3) // 2)\n    out[k::3] = False\n"
    ),
    "masks of whole arrays": (
        "for i in range(len(x)):\n    out[i] = y[(x > i) & (x < i * i + 2)].sum()\n"
    ),
    "rows that get longer, and wait": (
        "z = np.zeros(len(x))\nfor i in range(len(x)):\n    z[:i] = z[:i] * h + y[:i]\nout[:] = z\n"
    ),
}


@pytest.mark.parametrize("case", NOT_COMPILED)
def test_what_no_compiler_takes_is_not_shown(case: str) -> None:
    assert not list(considered(kernel_of(NOT_COMPILED[case])))


def test_loops_that_are_read_for_each_written_out_value_are_shown_together() -> None:
    body = (
        "for b in (2, 3, 7):\n    for i in range(len(x)):\n"
        "        out[i] = out[i] + b * x[i * i % 7]\n"
    )
    kernel = kernel_of(body)
    (proposal,) = considered(kernel)
    both = [one.compiled for one in walk(proposal.variant.body) if isinstance(one, Loop)]
    assert both == [Compiled.ALONE] * 3
    assert proposal.rest is not None
    assert not any(isinstance(one, Loop) for one in walk(proposal.rest.body))


def test_functions_of_the_file_are_compiled_with_their_loops() -> None:
    body = "for i in range(len(x)):\n    out[i] = g(x[i * i % 7])\n"
    function = "\n\ndef g(v):\n    {}\n    return v\n"
    until = "while v > 1.0:\n        if v > 99.0:\n            break\n        v -= 2.0"
    given = "v = v.weight * 2.0"
    for made, shown in (
        ("v = v * v + 1.0", True),
        ("v = open(v).read()", False),
        (until, True),
        (given, False),
    ):
        (kernel,) = read_kernels("a.py", source_of(body) + function.format(made))
        assert bool(list(considered(kernel))) == shown
        unread = (type(one) is Unknown for one in walk(kernel.body))
        assert any(unread) != shown


@pytest.mark.parametrize(
    ("made", "shown"), [("sorted(p)", False), ("np.array(sorted(p))", True), ("[1, 2]", True)]
)
def test_lists_of_callers_are_not_handed_to_what_is_compiled(made: str, shown: bool) -> None:
    body = "for k in p:\n    out[0] += x[k] if out[0] < h else y[k]\n"
    caller = f"\n\ndef g(x, y, p, m, h):\n    q = {made}\n    return f(x, y, q, m, h)\n"
    (kernel,) = (one for one in read_kernels("a.py", source_of(body) + caller) if one.name == "f")
    assert bool(list(considered(kernel))) == shown


def test_a_compiler_takes_methods_and_draws_and_they_come_to_the_same() -> None:
    body = (
        "for i in range(len(out)):\n"
        "    w = m[i:i + 3, i:i + 3].ravel()\n"
        "    a = m[i].clip(0.2, 0.8).conjugate().cumprod()\n"
        "    b = m.flatten().repeat(2).take(np.arange(2 * i + 3)).cumsum()\n"
        "    b.sort()\n"
        "    c = m.transpose().copy()\n"
        "    c.fill(rng.random() + rng.uniform(1.0, 3.0) + rng.exponential(2.0))\n"
        "    out[i] = a[-1] + b[i] + c[1, 1] + np.delete(w, 4).min() + b.nonzero()[0].sum()\n"
        "    out[i] += rng.integers(0, 3) + rng.normal(0.5, 2.0) + rng.poisson(3.0)\n"
    )
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"import numpy as np\ndef f(m, out, rng):\n{lines}    return out\n"
    assert is_compilable(first_loop(source), source)
    names: dict[str, Any] = {}
    exec(source, names)
    results = [
        one(np.arange(49.0).reshape(7, 7) % 5 / 4, np.zeros(4), np.random.default_rng(1))
        for one in (names["f"], njit(names["f"]))
    ]
    np.testing.assert_allclose(*results, rtol=1e-14)


def test_a_compiled_loop_costs_its_operations_and_one_that_waits_more() -> None:
    machine = load_machine("node2026")
    kernel = kernel_of(WAITING["the element before"][0])
    (proposal,) = considered(kernel)
    (loop,) = (one for one in proposal.variant.body if isinstance(one, Loop))
    alone = replace(loop, compiled=Compiled.ALONE)
    variants = [
        kernel,
        proposal.variant,
        proposal.variant.with_body(with_statement(proposal.variant.body, loop, (alone,))),
    ]
    costs = [cost_at(one, machine, {"N": 10_000}) for one in variants]
    times = [time_s(one, {"N": 10_000}) for one in costs if isinstance(one, Costed)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 10 * times[1] > 10 * times[2]


CARRIED = {
    "a number of a filter": WAITING["the number before"][0],
    "an index": WAITING["the index before"][0],
    "an element that changes later": (
        "d = x.copy()\n"
        "for i in range(1, len(x)):\n"
        "    w = y[i - 1] / d[i - 1]\n"
        "    d[i - 1] = 2.0\n"
        "    out[i] = w * y[i]\n"
    ),
    "two that are exchanged": (
        "for i in range(len(x)):\n"
        "    t = x[i]\n"
        "    x[i] = y[i]\n"
        "    y[i] = t\n"
        "    out[i] = t + x[i]\n"
    ),
    "one that is computed from the index": (
        "w = 1\nfor i in range(len(x)):\n    out[i] = x[i] * w\n    w = abs(i - 3)\n"
    ),
    "one that a condition changes": (
        "w = 0\n"
        "for i in range(len(x)):\n"
        "    if x[i] > h and abs(i - 3) > w:\n"
        "        w = abs(i - 3)\n"
        "    out[i] = w\n"
    ),
    "a place that goes on": (
        "w = 1\nfor i in range(len(x)):\n    out[w] = x[i]\n    w = (w * 3 + 1) % 5\n"
    ),
    "numbers that are drawn": (
        "rng = np.random.default_rng(0)\nfor i in range(len(x)):\n    k = rng.integers(0, 12)\n"
        "    x[k] = h * x[(k + 5) % 12] + rng.normal(0.0, 2.0)\n    out[i] = x[i] * rng.random()\n"
    ),
    "what is stored under another name": (
        "w = x[::-1]\nfor i in range(len(x)):\n    t = w.sum()\n    x[i] = t * h + w[i]\n"
        "    out[i] = w.sum() + np.sqrt(abs(x)).sum()\n"
    ),
    "one that is used before it is bound": (
        "t = h\nfor i in range(len(x)):\n    out[i] = t * x[i]\n    t = y[i]\n"
    ),
}


@pytest.mark.parametrize("case", CARRIED)
def test_numbers_that_iterations_pass_on_are_read_and_no_edit_makes_one_of_them(case: str) -> None:
    source = source_of(CARRIED[case])
    (kernel,) = read_kernels("a.py", source)
    statements = list(walk(kernel.body))
    assert not any(isinstance(one, Unknown) for one in statements)
    assert any(isinstance(one, Loop) for one in statements)
    assert any(isinstance(one, ScalarBind) for one in statements)
    expected = result(source)
    for transform in transforms():
        for proposal in transform.propose(kernel):
            if edits := proposal.edits():
                assert np.allclose(result(apply_edits(source, edits)), expected), transform.code


ONE_AFTER_ANOTHER = {
    "values that come again": (
        "for n, k in enumerate(p):\n    out[k] = h * out[k] + x[n]\n",
        "for n, k in reversed(list(enumerate(p))):\n    out[k] = h * out[k] + x[n]\n",
    ),
    "an extreme or another": (
        "w = 0.0\nfor k in p:\n    if x[k] > h or y[k] > w:\n        w = y[k]\nout[0] = w\n",
        "w = 0.0\nfor k in p[::-1]:\n    if x[k] > h or y[k] > w:\n        w = y[k]\nout[0] = w\n",
    ),
    "an index that changes": (
        "for i in range(len(x)):\n    i = i // 2\n    out[i] = h * out[i] + x[i]\n",
        "for i in range(len(x)):\n    i = (i + 1) // 2\n    out[i] = h * out[i] + x[i]\n",
    ),
}


@pytest.mark.parametrize("case", ONE_AFTER_ANOTHER)
def test_loops_that_come_out_otherwise_in_another_order_wait(case: str) -> None:
    body, other = ONE_AFTER_ANOTHER[case]
    assert not np.array_equal(result(source_of(body)), result(source_of(other)))
    assert waits_for(body)


def test_an_extreme_of_some_terms_waits_for_nothing() -> None:
    body = "w = 0.0\nfor k in p:\n    if x[k] > h and y[k] > w:\n        w = y[k]\nout[0] = w\n"
    assert not waits_for(body)
    backward = source_of(body.replace("in p:", "in p[::-1]:"))
    assert np.array_equal(result(source_of(body)), result(backward))


HELPERS = """\
x, y, m, out, h = data()

def wrap(a):
    return (a + h) % 2 - h

def turned(a, k):
    b = np.zeros(3)
    b[k % 3] = a
    return b.sum()

def moved(a):
    return a * x[0]

def put(a, k):
    y[k] = a
    return a

def kept(a):
    a += 1.0
    return a

def told(a):
    print(a)
    return a
"""


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("out[i] = wrap(x[i])", False),
        ("out[i] = wrap(out[i]) + turned(y[i], i)", False),
        ("out[i] = moved(y[i])", False),
        ("x[i] = moved(y[i])", True),
        ("x[i] = moved(x[i])", True),
        ("x[i] = wrap(x[i - 1])", True),
        ("out[i] = put(x[i], i)", True),
        ("out[i] = kept(m[i])[0]", True),
        ("out[i] = told(x[i])", True),
        ("out.reshape(-1)[i] = out[i - 1]", True),
    ],
)
def test_functions_of_the_file_make_a_loop_wait_for_what_they_read_and_change(
    line: str, waits: bool
) -> None:
    body = f"for i in range(len(x)):\n    {line}\n"
    assert bool(waits_for(body, HELPERS)) == waits

    def run(text: str) -> list[bytes]:
        random = np.random.default_rng(1)
        given = (*random.random((2, 5)), random.random((5, 2)), random.random(5), 0.5)
        exec(compile(HELPERS + text, "program.py", "exec"), {"np": np, "data": lambda: given})
        return [np.asarray(one).tobytes() for one in given]

    if not waits:
        assert run(body) == run(body.replace("range(len(x))", "reversed(range(len(x)))"))


@pytest.mark.parametrize(("rows", "told"), [(6000, "compile the loop"), (6, "as array statements")])
def test_loops_that_compute_more_than_they_call_are_to_be_compiled(rows: int, told: str) -> None:
    body = (
        "for i in range(len(x)):\n    d = np.sqrt(((m - m[i]) ** 2).sum(axis=1))\n"
        "    out[i] = np.sort(d)[:7].sum() + d[np.argsort(d)[3]]\n"
    )
    source = source_of(body).replace("m: f8[N, N]", "m: f8[M, 40]").replace("out[i]", "out[i % 5]")
    options = Options("node2026", {"N": 1000, "M": rows}, (), (), 1.0, everything=True)
    findings = check_source("f.py", source, options).findings
    (one,) = [found for found in findings if found.code == "ADV401"]
    assert told in one.title


def test_a_loop_of_sorts_is_none_to_be_compiled() -> None:
    """What sorts for a compiler of loops is no faster than what sorts for NumPy."""
    body = (
        "for i in range(len(x)):\n    s = np.sort(m[i])\n    out[i] = s[7] + np.tanh(out[i - 1])\n"
    )
    source = source_of(body).replace("m: f8[N, N]", "m: f8[N, M]")
    options = Options("node2026", {"N": 1000, "M": 6000}, (), (), 1.0, everything=True)
    findings = check_source("f.py", source, options).findings
    assert not any(one.title.startswith("compile the loop") for one in findings)


def test_loops_that_read_alike_are_each_told() -> None:
    body = "s = s * 0.5 + np.sin(a[i])\n        if s > 3:\n            s = 0.1"
    loop = f"    for i in range(n):\n        {body}\n"
    call = "f(np.ones(100000), 0.0, 100000)\n"
    source = f"import numpy as np\n\n\ndef f(a, s, n):\n{loop}{loop}    return s\n\n\n{call}"
    found = check_source("program.py", source, Options("node2026", {}, (), (), 1.0)).findings
    assert [one.span.start_line for one in found if one.code == "ADV401"] == [5, 9]
