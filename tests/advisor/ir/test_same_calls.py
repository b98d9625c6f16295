"""What loops compute again by what they call: told only where every run shows the same value."""

from __future__ import annotations

import random
from textwrap import indent

import pytest

from advisor.engine import Options, check_source
from advisor.finding import Finding, Verdict
from advisor.ir.same_calls import same_in_calls
from tests.advisor.ir.recorded import recorded

HEAD = """\
import numpy as np

WEIGHTS = np.arange(4.0)
COUNT = 0


class Grid:
    def __init__(self, n):
        self.n = n
        self.x = np.linspace(0.0, 1.0, n)
        self.y = self.x
        self.z = np.ones(n)


class Flow:
    def __init__(self, grid):
        self.grid = grid
        self.u = np.zeros(grid.n)

    def mask(self):
        made = np.ones(self.grid.n)
        for i in range(self.grid.n):
            if self.grid.z[i] > 2:
                made[i] = 0.0
        return made

    def step(self, rate):
        self.u = self.u * self.mask() + rate

    def push(self):
        self.grid.x[0] += 1.0

    def swap(self):
        self.grid, self.other = Grid(4), self.grid


def kernel(grid, z):
    wave = np.exp(grid.z * 2.0)
    return wave * z


def weighted(values):
    return np.sqrt(WEIGHTS + 1.0) * values.sum()


def scaled(values, by):
    values *= by
    return np.exp(values).sum() + np.exp(WEIGHTS).sum()


def kept(values, into):
    found = np.exp(values)
    into.append(found)
    return found


def counted():
    global COUNT
    COUNT += 1
    return np.exp(WEIGHTS * COUNT)


def drawn(rng, values):
    return np.exp(rng.normal(size=4)) + np.exp(values)


def sampled(values, by, seeds):
    rng = np.random.default_rng([seeds[0], by])
    return np.exp(values) * rng.random() + np.exp(WEIGHTS)


def sampled_by(values, by):
    rng = np.random.default_rng(by)
    return np.exp(values) * rng.random()


def deeper(values, depth):
    return np.exp(values).sum() if depth < 1 else deeper(values * 2.0, depth - 1)


def both(first, second):
    first[0] += 1.0
    return np.exp(second).sum()


def squared(values, of):
    return np.square(of).sum() + values


def tabled(values, by):
    total = 0.0
    for k, (one, two) in enumerate(zip(values, WEIGHTS)):
        total += by * np.exp(WEIGHTS * one).sum() + np.sqrt(WEIGHTS + two).sum()
    return total


def again_bound(values, by):
    values = np.exp(values) + 1.0
    return values.sum() * by


def run():
    n = 4
    grid, other, rng = Grid(n), Grid(n), np.random.default_rng(1)
    flow, values, out = Flow(grid), np.ones(n), []
    again, total = values, 0.0
    for k in range(4):
"""
CASES = [
    ("total += kernel(grid, k)", ["np.exp(grid.z * 2.0)"]),
    ("total += kernel(other, k)\ngrid.z = values * k", []),
    ("total += kernel(other, k)\ngrid.x[0] = k", ["np.exp(grid.z * 2.0)"]),
    ("total += kernel(grid, k)\nother = Grid(n)\nother.z[0] = k", []),
    ("grid = Grid(n)\ntotal += kernel(grid, k)", []),
    ("grid.z[0] = k\ntotal += kernel(grid, k)", []),
    ("total += kernel(grid, k) + kernel(other, k)", []),
    ("flow.step(k)", ["self.mask()"]),
    ("flow.step(k)\ngrid.z[0] = 3.0 * k", []),
    ("flow.step(k)\nflow.grid.z = values * k", []),
    ("flow.step(k)\nflow.push()", ["self.mask()"]),
    ("flow.step(k)\nflow.swap()", []),
    ("flow.step(k)\nsetattr(flow, 'grid', other)\nother.z[0] = 5.0", []),
    ("total += weighted(values * k)", ["np.sqrt(WEIGHTS + 1.0)"]),
    ("total += weighted(values * k)\nWEIGHTS[0] = k", []),
    ("total += scaled(values, k)", ["np.exp(WEIGHTS).sum()"]),
    ("total += scaled(values * 1.0, 2.0) + both(values, again)", ["np.exp(WEIGHTS).sum()"]),
    ("total += both(values, again)", []),
    ("total += both(values, values * 2.0)", []),
    ("total += both(grid.x, grid.y)", []),
    ("total += both(grid.z, grid.y)", []),
    ("out = [1.0]\ntotal += both(out, values)", ["np.exp(second)"]),
    ("total += kept(values, out).sum()", []),
    ("total += kept(values, out).sum()\nout[0][0] = k", []),
    ("total += counted().sum()", []),
    ("total += drawn(rng, values)", ["np.exp(values)"]),
    ("total += drawn(rng, values)\nvalues = values + 1.0", []),
    ("total += sampled(values, k, [3, 4])", ["np.exp(values)", "np.exp(WEIGHTS)"]),
    ("total += sampled(values * k, k, [1, k])", ["np.exp(WEIGHTS)"]),
    ("total += sampled_by(values * rng.random(), rng)", []),
    ("total += sampled_by(values, None).sum() + sampled_by(values, 2)", []),
    ("total += deeper(values, 2)", []),
    ("total += deeper(values, k)", []),
    ("total += squared(k, values)", ["np.square(of).sum()"]),
    ("total += squared(k, of=values)", ["np.square(of).sum()"]),
    ("total += squared(k, *[values])", []),
    ("call = squared if k else kernel\ntotal += squared(k, values)", ["np.square(of).sum()"]),
    ("values.sort()\ntotal += squared(k, values)", []),
    ("again += 1.0\ntotal += squared(k, values)", []),
    ("np.add.at(values, 0, 1.0)\ntotal += squared(k, values)", []),
    ("view = values[1:]\nview[0] = k\ntotal += squared(k, values)", []),
    (
        "total += sum(squared(j, values) for j in range(3))\nvalues = values + 1",
        ["np.square(of).sum()"],
    ),
    ("total += sum(map(float, kernel(grid, values)))\ngrid.z[k] = 9.0", []),
    ("try:\n    total += squared(k, values)\nfinally:\n    values = values * 2.0", []),
    ("if k == 2:\n    values[0] = 7.0\ntotal += squared(k, values)", []),
    ("total += tabled(values, k)", ["np.exp(WEIGHTS * one).sum()", "np.sqrt(WEIGHTS + two).sum()"]),
    ("total += tabled(values * k, 1.0)", ["np.sqrt(WEIGHTS + two).sum()"]),
    ("total += tabled(values, k)\nWEIGHTS[0] = k", []),
    ("total += again_bound(values, k)", ["np.exp(values)"]),
    ("total += again_bound(values, k)\nvalues[0] += 1.0", []),
    ("method = flow.mask\ntotal += method().sum() * k", ["method().sum()"]),
    ("method = flow.mask\ntotal += method().sum()\nflow.grid.z[0] += 2.0", []),
    ("method = flow.mask\ntotal += method().sum()\nflow = Flow(other)\nother.z[0] = 5.0 * k", []),
    (
        "one, two = weighted(values), weighted(values * k)\ntotal += one * two",
        ["np.sqrt(WEIGHTS + 1.0)", "weighted(values)"],
    ),
    ("total += sum([k for j in range(9) if j in set(again[1:])])", ["set(again[1:])"]),
    ("if k in set(again[1:]):\n    again[1] += k", []),
    ("first, second = np.ones(3), Grid(n)\ntotal += first.sum() * second.z.sum()", []),
    (
        "total += sum([weighted(values) + j for j in range(3)])\nvalues = values * k",
        ["np.sqrt(WEIGHTS + 1.0)", "weighted(values)"],
    ),
]


def program(body: str) -> str:
    return f"{HEAD}{indent(body, ' ' * 8)}\n    return total\n\n\nrun()\n"


@pytest.mark.parametrize(("body", "wanted"), CASES)
def test_only_what_is_the_same_in_each_call_is_told(body: str, wanted: list[str]) -> None:
    source = program(body)
    found = same_in_calls(source)
    assert [text for one in found for text in one.texts] == wanted
    recorder = recorded(source, found)
    assert not recorder.differing
    assert all(recorder.seen.values())
    assert bool(recorder.seen) == bool(wanted)


def test_a_call_in_what_a_loop_goes_through_runs_once() -> None:
    source = (
        program("pass") + "found = [one for one in squared(1.0, np.ones(3) * np.ones(3))[:0]]\n"
    )
    assert not same_in_calls(source)


def test_what_ranks_reduce_is_the_same_where_all_give_the_same() -> None:
    source = """\
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD


def dot(a, b):
    return comm.allreduce(np.sum(a * b))


def solve(b):
    r = b * 2.0
    for k in range(5):
        r = r * 0.5
        if dot(r, r) < 1e-9 * np.sqrt(dot(b, b)):
            break


def given(b):
    for k in range(5):
        comm.Bcast(b)
        print(np.sqrt(dot(b, b)))
"""
    assert [one.texts for one in same_in_calls(source)] == [("1e-09 * np.sqrt(dot(b, b))",)]


# --- drawn programs -------------------------------------------------------------------------------

READ = ["grid.x", "grid.y", "grid.z", "values", "again", "WEIGHTS", "flow.u", "flow.grid.z"]
CALLED = [
    "kernel(grid, k)",
    "kernel(flow.grid, k)",
    "kernel(other, 2.0)",
    "weighted({0})",
    "scaled({0} * 1.0, 2.0)",
    "scaled({0}, 1.5)",
    "squared(k, {0})",
    "squared({0}, {1})",
    "both({0}, {1})",
    "deeper({0}, 1)",
    "kept({0}, out)",
    "drawn(rng, {0})",
    "flow.mask()",
    "helper({0}, {1})",
    "helper({0}, k)",
    "outer(flow, {0})",
]
DONE = [
    "total += np.sum({call})",
    "total = total + np.sum({call})",
    "if k % 2:\n    total += np.sum({call})",
    "for j in range(2):\n    total += np.sum({call})",
    "flow.step(k)",
    "flow.push()",
    "{0}[0] += 1.0",
    "{0}[1:] = k",
    "again = {0}",
    "values = {0} * 1.0",
    "other = grid",
    "grid.z = {0} + k",
    "flow.u = {0}",
    "flow.grid = other",
    "again = {0}[1:]\nagain[0] = k",
    "out.append({0})",
    "total += np.sum({call})",
]
HELPERS = [
    "return np.exp(first) * np.sum(second)",
    "local = np.exp(first)\nlocal[0] = np.sum(second)\nreturn local",
    "first[0] = np.sum(second)\nreturn np.exp(first)",
    "local = first\nlocal += 1.0\nreturn np.square(second)",
    "return squared(np.sum(second), first) + np.sum(np.exp(second))",
    "total = 0.0\nfor one in first:\n    total += np.sum(np.exp(second) * one)\nreturn total",
    "total = 0.0\nfor k, one in enumerate(second):\n    total += np.sum(np.exp(first) * one) * k\n"
    "    second[k] = total\nreturn total",
    "total = 0.0\nfor one, two in zip(first, second):\n    total += np.sum(np.exp(WEIGHTS * two))"
    " * one\nreturn total",
    "second = np.exp(second) + 1.0\nreturn np.sum(second * np.exp(first))",
    "def inner(by):\n    return np.sum(np.exp(first) * by)\n\n"
    "return inner(1.0) + inner(2.0) + np.sum(second)",
]
OUTER = [
    "return np.sum(flow.mask() * np.exp(values))",
    "flow.push()\nreturn np.exp(flow.grid.y).sum() + np.exp(values).sum()",
    "flow.u = values\nreturn np.exp(flow.u).sum() + np.exp(flow.grid.z).sum()",
    "grid = flow.grid\ngrid.z[0] += 1.0\nreturn np.exp(flow.grid.z).sum()",
]


OWN = [
    *DONE,
    "if k > 1:\n    total += np.sum({call})",
    "if total < 9.0:\n    total += np.sum({call})\nelse:\n    {0}[0] = 2.0",
    "total += np.linalg.norm({0}) * k",
    "total += np.cumsum({0}).sum()\n{0}[0] += 1.0\ntotal -= np.cumsum({0}).sum()",
    "total += np.cumsum({0}).sum() + np.cumsum({0}).max()",
    "one = np.cumsum({0})\ntotal += np.sum({call})\ntotal += np.cumsum({0}).sum() + one[0]",
    "total += sum([one * 2.0 for one in {0}])",
    "row = np.array([one * other.n + k * 0 for one in {0}])\ntotal += sum(one for one in row)",
    "for one in [{0}]:\n    one[0] += 1.0\ntotal += sum([one + 2.0 for one in {1}])",
    "step = 0.0\nwhile step < 2.0:\n    step += 1.0 + 0.0 * np.hypot(total, k)",
    "step = 0.0\nwhile step < 2.0:\n    step += 1.0 + 0.0 * np.hypot(total, k)\n    total += step",
    "step = 0.0\nwhile step < 2.0:\n    step += 1.0 + 0.0 * np.hypot({0}[0], k)\n    {1}[0] = step",
]

TURNS = [
    *DONE,
    "for j in range(3):\n    total += np.sum(np.exp({0} * j) * total)",
    "for one in {0}:\n    wide = np.exp({1} * one)\n    total += np.sum(wide * total)",
    "for one in {0}:\n    near = {1} - one\n    far = np.exp(near) * total\n"
    "    total += np.sum(far)",
    "for j in range(3):\n    made = np.exp({0} * j)\n    made[0] = total\n    total += made.sum()",
    "for j in range(3):\n    row = np.exp({0} * j)\n    out.append(row)\n    out[-1][0] = k",
    "for j in range(3):\n    if total > 9.0:\n        break\n    total += np.sum(np.exp({0} * j))",
    "for j in range(k):\n    total += np.sum(np.exp({0} * j)) * total\n"
    "for j in range(3):\n    out.append(j)",
    "for j in range(k + 1, 4):\n    total += np.sum(np.exp({0} * j)) * total",
    "for j in range(k, k + 2):\n    total += np.sum(np.exp({0} * j)) * total",
    "for j in range(k):\n    total += np.sum(np.exp({0} * j)) * total",
    "for i in range(3):\n    i = i + k\n    total += np.sum(np.exp({0} * i))",
    "for j in range(3):\n    if j:\n        total += np.sum(np.exp(last * j))\n    last = {0} * j",
    "if total > 50.0:\n    break\nfor j in range(3):\n    total += np.sum(np.exp({0} * j) * k)",
    "if k == 1:\n    continue\nfor j in range(3):\n    total += np.sum(np.exp({0} * j) * k)",
    "for j in range(3):\n    total += np.sum(np.exp({0} * j) * total)\n    last = (total, j)\n"
    "    total += last[0] * 0.5",
    "for i in range(2):\n    for j in range(3):\n        total += np.sum(np.exp({0} * j) * i)",
    "for i in range(2):\n    base = np.exp({0} * i)\n    for j in range(3):\n"
    "        total += np.sum(np.cumsum(base + j) * total)",
    "for j in range(3):\n    part = np.exp({0} * j)\n    total += np.sum(np.cumsum({1} * part))",
]


def drawn(number: int, done: list[str] = DONE) -> str:
    """Return a program that calls, changes and renames what it computes with."""
    draw = random.Random(number)

    def statement() -> str:
        names = draw.choice(READ), draw.choice(READ)
        call = draw.choice(CALLED).format(*names)
        form = draw.choice(done)
        others = [draw.choice(READ) for _ in range(1 + ("{1}" in form))]
        return form.format(*others, call=call)

    body = "\n".join(statement() for _ in range(draw.randint(2, 4)))
    helpers = (
        f"def helper(first, second):\n{indent(draw.choice(HELPERS), '    ')}\n\n\n"
        f"def outer(flow, values):\n{indent(draw.choice(OUTER), '    ')}\n\n\n"
    )
    return program(body).replace("def run():", helpers + "def run():")


@pytest.mark.parametrize(("done", "least"), [(DONE, 45), (OWN, 130), (TURNS, 100)])
def test_of_drawn_programs_nothing_else_is_told(done: list[str], least: int) -> None:
    told = 0
    for number in range(200):
        source = drawn(number, done)
        found = same_in_calls(source)
        if found:
            try:
                recorder = recorded(source, found)
            except (ValueError, IndexError, TypeError):  # shapes that do not fit
                continue
            assert not recorder.differing, f"{number}: {recorder.differing}\n{source}"
            told += len(recorder.seen)
    assert told > least


# --- as a finding ---------------------------------------------------------------------------------

SHOWN = """\
import numpy as np


def wave(z, x):
    kernel = np.exp(x[1:] * 2.0)
    return kernel * z


def run(x):
    total = 0.0
    for k in range(5):
        total += wave(k, x)
    return total
"""


def findings(source: str, **chosen: tuple[str, ...]) -> tuple[Finding, ...]:
    given = {"sizes": {}, "select": (), "ignore": (), "min_speedup": None, **chosen}
    return check_source("a.py", source, Options("node2026", **given)).findings  # type: ignore[arg-type]


def test_it_is_shown_without_a_price_or_an_edit() -> None:
    (found,) = findings(SHOWN)
    assert (found.code, found.kernel, found.span.start_line) == ("ADV506", "wave", 5)
    assert found.title == "compute `np.exp(x[1:] * 2.0)` once, not in each call"
    assert "line 11" in found.reason
    assert found.prediction is None and found.fix is None
    assert found.verdict is Verdict.UNCERTAIN


def test_it_is_left_out_as_its_rule_is() -> None:
    assert not findings(SHOWN, ignore=("ADV506",))
    line = "    kernel = np.exp(x[1:] * 2.0)"
    assert not findings(SHOWN.replace(line, f"{line}  # advise: ignore[ADV506]"))


@pytest.mark.parametrize("number", ["len(x) * 2 - 1", "float(x[0]) + 1.0", "-int(x[0])"])
def test_a_number_of_an_array_is_no_work(number: str) -> None:
    source = f"{SHOWN}\n\nrun(np.ones(9))\n"
    assert findings(source)
    assert not findings(source.replace("np.exp(x[1:] * 2.0)", number))


INSTANCE = """\
import numpy as np

class Propagator:
    def __init__(self, n):
        self.n = n

    def __call__(self, field, z):
        f = np.fft.fftfreq(self.n)
        fx, fy = np.meshgrid(f, f)
        kernel = np.exp(1j * z * np.sqrt(1.0 + fx ** 2 + fy ** 2))
        return np.fft.ifft2(np.fft.fft2(field) * kernel)

prop = Propagator(64)
field = np.ones((64, 64))
for step in range(10):
    field = np.abs(prop(field, 0.5))
"""


def test_an_instance_that_is_called_is_told_of_by_the_command() -> None:
    assert any("not in each call" in one.message for one in findings(INSTANCE))


CAST = """\
import numpy as np


def cast(world, x, angle):
    r = 0.0
    while r < 5.0:
        if world[int(x + r * np.cos(angle))]:
            return r
        r += 0.05
    return r
"""


def test_numbers_in_a_loop_that_runs_nobody_knows_how_often() -> None:
    (found,) = findings(CAST)
    assert found.title == "compute `np.cos(angle)` once, before the loop of line 6"
    assert found.prediction is None and found.fix is None
    assert not findings(CAST.replace("r += 0.05", "angle += 0.05"))
    assert not findings(CAST.replace("np.cos(angle)", "np.cos(r)"))
    # a compiler may do so
    compiled = CAST.replace("def cast", "@numba.njit\ndef cast")
    assert not findings(compiled.replace("import", "import numba\nimport", 1), select=("ADV506",))


FILTER = """\
import numpy as np


def update(model, P):
    S = model.H @ P @ model.H.T
    K = model.H @ np.linalg.inv(S)
    {between}
    return K, model.H @ np.linalg.inv(S)
"""


def test_what_a_block_computes_again_by_itself() -> None:
    (found,) = same_in_calls(FILTER.format(between="pass"))
    assert found.own and not found.line and found.texts == ("np.linalg.inv(S)",)
    assert [one.lineno for one in found.found] == [6, 8]
    assert not same_in_calls(FILTER.format(between="S[0] = 1.0"))
    # a pass over elements is worth no word without a price
    assert not same_in_calls(FILTER.format(between="pass").replace("linalg.inv", "cos"))


def test_what_a_block_asks_a_function_of_the_file_again() -> None:
    given = "import numpy as np\n\n\ndef sigmoid(x):\n    return 1 / (1 + {}(-x))\n"
    slope = "\n\ndef slope(x):\n    {}\n    return s * (1 - sigmoid(x))\n"
    (found,) = same_in_calls(given.format("np.exp") + slope.format("s = sigmoid(x)"))
    assert found.texts == ("sigmoid(x)",) and found.function == "slope"
    assert not same_in_calls(given.format("np.exp") + slope.format("s = sigmoid(x); x = x + 1"))


DERIVED = """\
import numpy as np
{imports}

class Base:
    def function(self, x):
        return np.tanh(x)

    def scale(self, x):
        return np.exp(x)


class Sigmoid({base}):
    def function(self, x):
        return 1.0 / (1.0 + np.exp(-x))

    def slope(self, x):
        return self.function(x) * (1 - self.function(x)) * self.scale(x) / self.scale(x)
{end}
"""
OWN = "\n    def scale(self, x):\n        return np.exp(x)"
NARROW = "class Narrow(Sigmoid):\n    def scale(self, x):\n        self.x = x"


@pytest.mark.parametrize(
    ("imports", "base", "end", "texts"),
    [
        ("", "Base", "", {"self.function(x)", "self.scale(x)"}),
        ("from abc import ABC", "ABC", OWN, {"self.function(x)", "self.scale(x)"}),
        # others may have other methods, which do more
        ("from others import Other", "Other", OWN, set()),
        ("import others", "others.Base", "", set()),
        ("import others", "Base, others.Base", "", set()),
        ("", "Base", NARROW, set()),
    ],
)
def test_methods_of_classes_that_are_derived(
    imports: str, base: str, end: str, texts: set[str]
) -> None:
    found = same_in_calls(DERIVED.format(imports=imports, base=base, end=end))
    assert {text for one in found for text in one.texts} == texts


UNDER = """\
import numpy as np


def unit(v):
    return v / np.sqrt(np.sum(v**2))


def search(Q, L):
    out = []
    for k in range(len(L)):
        {test}
            out.append(unit(Q) @ unit(L[k]))
            {end}
    return out
"""


@pytest.mark.parametrize(
    ("test", "end", "told"),
    [
        ("if abs(L[k, 0]) > 0.5:", "", True),
        ("if L[k, 0] > 0.5:", "break", False),
        ("if k == 3:", "", False),
        ("if out is None:", "", False),
        ("if not out:", "", False),
        ("if k > 0 and not out:", "", False),
        ("if k > 0:", "Q = Q + 1.0", False),
    ],
)
def test_under_a_condition_it_is_told_where_that_may_hold_often(
    test: str, end: str, told: bool
) -> None:
    found = findings(UNDER.format(test=test, end=end))
    titles = [title for one in found for title in (one.title, *one.others)]
    assert any("`unit(Q)`" in one for one in titles) == told
