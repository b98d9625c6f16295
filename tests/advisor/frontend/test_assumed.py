"""What is assumed of arguments of which nothing tells, and what is said of that."""

from __future__ import annotations

import sys
from functools import cache, reduce
from textwrap import dedent, indent
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import FileResult, Options, check_source, seen_functions
from advisor.finding import Applicability
from advisor.frontend.assumed import assumed
from advisor.frontend.kernels import read_kernels
from advisor.ir.statements import Return, Unknown, walk
from advisor.observed import SeenArray
from advisor.ranking.open_sizes import SMALL
from advisor.source import apply_edits

SMOOTHED = """
    import numpy as np

    def smooth(a, b, weight):
        n, m = a.shape
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                b[i, j] = weight * (a[i - 1, j] + a[i + 1, j])
"""


@cache
def checked(source: str) -> FileResult:
    return check_source("a.py", dedent(source), Options("node2026", {}, (), (), None))


@pytest.mark.parametrize(
    ("text", "arrays"),
    [
        ("u[i, j] = 0.0", {"u": (2, "float64")}),
        ("u[i, j, :] = v[i, j]", {"u": (3, "float64"), "v": (2, "float64")}),
        ("n, m = u.shape", {"u": (2, "float64")}),
        ("n, m = np.shape(u)", {"u": (2, "float64")}),
        ("u[i, v[i, j]] = 0.0", {"u": (2, "float64"), "v": (2, "int64")}),
        (
            "t = u.dtype\n        u[v[i]] = 0.0\n        s = v.shape",
            {"u": (1, "float64"), "v": (1, "int64")},
        ),
        ("u[i, j] = u[i, j, 0]", {"u": (3, "float64")}),
        ("u[i, None] = 0.0", {"u": (1, "float64")}),
        ("s = u.shape\n        v[k] = u[k]", {"u": (1, "float64"), "v": (1, "float64")}),
        ("s = u.shape\n        if u[i] > 2: pass", {"u": (1, "float64")}),
        ("c = v > 0\n        t = u[:, c]", {"u": (2, "float64"), "v": (1, "float64")}),
        ("c = ~(v > 0) & (v < 9)\n        t = u[c, 0]", {"u": (2, "float64"), "v": (1, "float64")}),
        (
            "c, d = np.where(u > 0)\n        v[c] = u[c, d]",
            {"u": (2, "float64"), "v": (1, "float64")},
        ),
        (
            "c, d = np.linalg.eigh(u)\n        v[k] = c[k] * d[k, k]",
            {"u": (2, "float64"), "v": (1, "float64")},
        ),
        (
            "c = np.floor(v).astype(int)\n        t = u[c, 0]",
            {"u": (2, "float64"), "v": (1, "float64")},
        ),
        (
            "c = np.floor(j).astype(int)\n        for t in range(c): v[t, 0] = 0.0",
            {"v": (2, "float64")},
        ),
        ("c = np.c_[u, v]\n        v[k] = 2.0 * c[k, 0]", {"v": (1, "float64")}),
        ("c = v.reshape(j)\n        u[i] = 2.0 * c[k, k]", {"v": (1, "float64")}),
        ("t = np.sum(v[c] for c in range(3)) + v[0]", {"v": (1, "float64")}),
        (
            "u.v = 0.0\n        u.v = np.ones(3)\n        v[k] = u.v[k]",
            {"u.v": (1, "float64"), "v": (1, "float64")},
        ),
        # nothing, or not one thing, tells that these are arrays, or of how many dimensions
        ("u[i] = 0.0", {}),
        ("if u[i] > 2: pass", {}),
        ("u[k][k] = 2 * v[k] + 1", {"v": (1, "float64")}),
        ("u[k][k] = u.size", {"u": (2, "float64")}),
        ("u[i] = v[i]", {}),
        ("u[i, j].append(v)", {}),
        ("u[i, j] = u(i)", {}),
        ("u['a', i] = 0.0", {}),
        ("v[i] = u[i]\n        u.append(v)", {}),
        ("for k in range(u): u[i, j] = 0.0", {}),
        ("for c, d in v.items(): u[c] = 2.0 * d", {}),
    ],
)
def test_what_subscripts_tell(text: str, arrays: dict[str, tuple[int, str]]) -> None:
    head = "import numpy as np\ndef f(u, v, i, j):\n    for k in range(3):\n"
    (seen,) = assumed(f"{head}        {text}\n        w[k + 1]")
    assert {one.name: (one.ndim, one.dtype) for one in seen.arrays} == arrays


@pytest.mark.parametrize(
    ("head", "numbers"),
    [
        ("a, n", {"n": "int64"}),
        ("a, n: int = 3, w: float = 0.5", {"n": "int64", "w": "float64"}),
        ("a, n, w=None", {"n": "int64"}),
        ("a, n, *, w=2.0", {"n": "int64", "w": "float64"}),
        ("a, n: list", {}),
    ],
)
def test_what_is_a_number(head: str, numbers: dict[str, str]) -> None:
    (seen,) = assumed(f"def f({head}):\n    for i in range(n):\n        a[i, i] = 0.0")
    assert {one.name: one.dtype for one in seen.numbers} == numbers


def test_a_function_without_loops_over_subscripts_is_not_read() -> None:
    assert assumed("def f(a):\n    a[1, 2] = 0.0\n    for b in a:\n        print(b[0])") == ()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return np.linalg.inv(a) @ b", "solve(a, b)"),
        ("n, m = a.shape\n        return np.linalg.inv(a) @ b[:n]", "solve(a, b[:n])"),
        ("return np.linalg.inv(a + 1) * b", ""),
        ("n, m = a.shape\n        return a.T @ np.diag(b[:n]) @ a", "(a.T * b[:n]) @ a"),
        ("n, m = a.shape\n        return a.dot(a.T).dot(b[:n])", "a @ (a.T @ b[:n])"),
        (
            "n, m = a.shape\n        return (a * np.outer(b[:n], b[:m])).sum()",
            "(b[:n] @ a) @ b[:m]",
        ),
    ],
)
def test_functions_without_loops_are_read_where_a_rule_may_speak(body: str, told: str) -> None:
    """The matrix of an inverse is square, since the function runs."""
    source = dedent(
        f"""
    import numpy as np

    def f(a, b):
        {body}
    """
    )
    findings = checked(source).findings
    texts = [apply_edits(source, one.fix.edits) for one in findings if one.fix is not None]
    assert len(texts) == bool(told) and all(told in text for text in texts)


@pytest.mark.parametrize("shape", [(7,), (7, 1)])
def test_functions_of_python_go_over_rows_where_there_are_any(shape: tuple[int, ...]) -> None:
    source = dedent(
        """
        import numpy as np

        def spread(x, count):
            out = []
            for k in range(count):
                y = np.abs(x - k)
                out.append(sum(y) + (max(y) - min(y)) / sum(y > k))
            return out
        """
    )
    findings = [one for one in checked(source).findings if one.code == "ADV505"]
    (told,) = {one.fix.edits for one in findings if one.fix is not None}
    made = []
    for text in (source, apply_edits(source, told)):
        space: dict[str, Any] = {}
        exec(compile(text, "a.py", "exec"), space)
        made.append(space["spread"](np.arange(1.0, 8.0).reshape(shape), 3))
    assert np.allclose(*made) and np.shape(made[0]) == np.shape(made[1]) == (3, *shape[1:])


def test_what_is_only_shown_is_computed_too() -> None:
    source = """
    import numpy as np

    def main():
        x = np.random.rand(2000000)
        print("in all", sum(x), "at most", max(x))

    main()
    """
    source = dedent(source)
    for told in ("x.sum()", "x.max()"):
        (found,) = checked(source).findings
        assert found.fix is not None
        source = apply_edits(source, found.fix.edits)
        assert told in source


def test_an_inverse_is_not_told_that_may_meet_more_columns_than_it_has() -> None:
    """It is then twice as fast as solving, and nothing tells."""
    source = """
    import numpy as np

    def gain(p, h):
        n, m = p.shape
        k, l = h.shape
        return p @ np.linalg.inv(h)
    """
    assert not checked(source).findings


def test_little_that_is_saved_beside_what_has_no_price_is_not_told() -> None:
    source = """
    import numpy as np

    def step(angle, read):
        a, b = map(float, read(angle))
        one = np.sin(2 * a) * np.cos(b)
        return one, np.sin(2 * a) * np.cos(b) + 1.0

    def series(order, x, term):
        out = np.zeros(len(x))
        for n in range(order):
            out[n] = np.sqrt(4 * np.pi) * term(n) * x[n]
        return out
    """
    assert not [one for one in checked(source).findings if one.code == "ADV506"]


def test_what_a_loop_of_unknown_count_computes_in_each_iteration_is_told() -> None:
    source = """
    import numpy as np

    def settle(a, b, least):
        n, m = a.shape
        x = np.zeros(n)
        while np.abs(x).max() < least:
            x = np.linalg.solve(a, b + x)
        return x
    """
    (found,) = checked(source).findings
    assert found.code == "ADV505" and "from the second iteration on" in found.title


def test_functions_of_a_file_that_calls_them_need_no_loops() -> None:
    source = """
    import numpy as np

    def softmax(x):
        return np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)

    softmax(np.ones((2000, 500)))
    """
    (found,) = checked(source).findings
    assert found.code == "ADV506" and found.fix is not None
    assert found.fix.applicability is Applicability.SAFE or "plain array" in str(found.fix)


def test_what_is_assumed_is_said() -> None:
    (finding,) = checked(SMOOTHED).findings
    assert finding.code == "ADV401"
    assert finding.fix is not None and finding.fix.applicability is not Applicability.SAFE
    assert "assumed: a, b are each a plain array (2-d), float64" in finding.evidence.remarks[0]


def test_calls_of_the_file_tell_more() -> None:
    told = checked(SMOOTHED + "\n    smooth(np.ones((400, 300)), np.ones((400, 300)), 0.5)\n")
    (finding,) = told.findings
    assert finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
    assert "a, b are each a plain array (2-d)" in finding.fix.legality
    assert not any("assumed" in remark for remark in finding.evidence.remarks)


@pytest.mark.parametrize("made", ["np.asarray(a)", "np.ascontiguousarray(a, dtype=float)"])
def test_an_array_that_is_made_an_array_is_itself(made: str) -> None:
    result = checked(SMOOTHED.replace("n, m =", f"a = {made}\n        n, m ="))
    assert [one.code for one in result.findings] == ["ADV401"] and result.coverage.complete


SCRIPT = """
    import numpy as np

    n = 200
    a = np.linspace(0.0, 1.0, n * n).reshape(n, n)
    b = np.zeros((n, n))
    for step in range(3):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
        a[:, :] = b
"""


def test_scripts_are_read_outside_of_functions() -> None:
    source = dedent(SCRIPT)
    result = checked(source)
    (finding,) = result.findings
    assert (finding.kernel, finding.code) == ("<module>", "ADV401")
    assert result.coverage.complete and finding.fix is not None
    before: dict[str, np.ndarray] = {}
    after: dict[str, np.ndarray] = {}
    exec(compile(source, "a.py", "exec"), before)
    exec(compile(apply_edits(source, finding.fix.edits), "a.py", "exec"), after)
    assert np.array_equal(before["a"], after["a"])
    # other modules may look at what a module binds
    assert before.keys() - {"i", "j"} <= after.keys()


def test_arrays_of_self_are_arrays() -> None:
    (finding,) = checked(
        """
        import numpy as np

        class Grid:
            def step(self):
                for i in range(1, self.n - 1):
                    for j in range(1, self.n - 1):
                        self.v[i, j] = 0.5 * (self.u[i, j - 1] + self.u[i, j + 1])
        """
    ).findings
    assert finding.kernel.endswith("step")


GIVEN = """
    import numpy as np

    N = len(str(12345))

    def f(grid, source, make=lambda what: what):
        n, m = make(grid.n), make(6)
        a = make(source)
        out = np.zeros((n, 6))
        for i in range(grid.low, n):
            for j in range(1, m):
                out[i, j] = grid.w * (a[i, j] + a[i, j - 1])
        for k in range(N):
            for j in range(6):
                grid.u[k, j] = 2.0 * a[k, j]
        return out
"""


def test_what_other_names_tell() -> None:
    (seen,) = (one for one in assumed(dedent(GIVEN)) if one.function == "f")
    assert [(one.name, one.ndim) for one in seen.arrays] == [("grid.u", 2)]
    numbers = {one.name: one.dtype for one in seen.numbers}
    assert numbers == {"grid.low": "int64", "grid.w": "float64", "N": "int64"}
    assert {one.name: one.text for one in seen.bindings} == {
        "n": "n, m = make(grid.n), make(6)",
        "m": "n, m = make(grid.n), make(6)",
        "a": "a = make(source)",
        # what is read of it tells more
        "out": "out = np.zeros((n, 6))",
    }


@pytest.mark.parametrize(
    "text",
    ["n = 3", "n += 1", "for n in a: pass", "del n", "n: int = len(a)"],
)
def test_what_is_bound_again_is_nothing(text: str) -> None:
    source = f"def f(a, w):\n    n = w()\n    {text}\n    for i in range(n):\n        a[i, i] = 0.0"
    (seen,) = assumed(source)
    assert not seen.bindings


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@pytest.mark.parametrize("low", [0, 1, 3])
def test_edits_by_what_other_names_tell(dtype: str, low: int) -> None:
    source = dedent(GIVEN)
    findings = [one for one in checked(source).findings if one.fix is not None]
    assert {one.span.start_line for one in findings} == {10, 13}
    found = {}
    edits = [edit for one in findings if one.fix is not None for edit in one.fix.edits]
    for name, text in (("before", source), ("after", apply_edits(source, tuple(edits)))):
        space: dict[str, Any] = {}
        exec(compile(text, "a.py", "exec"), space)
        grid = SimpleNamespace(n=5, low=low, w=0.5, u=np.zeros((5, 6)))
        numbers = np.random.default_rng(3).integers(0, 100, (5, 6)).astype(dtype)
        found[name] = space["f"](grid, numbers), grid.u
    for one, other in zip(*found.values(), strict=True):
        assert np.array_equal(one, other)


def test_numbers_of_what_a_loop_overwrites_are_kept() -> None:
    source = dedent(
        """
        import numpy as np

        def eliminate(a, line):
            n, m = a.shape
            for j in range(line + 1, n):
                factor = a[j, line] / a[line, line]
                for k in range(line, m):
                    a[j, k] -= factor * a[line, k]
        """
    )
    (finding,) = checked(source).findings
    assert finding.fix is not None and finding.span.start_line == 8
    made = []
    for text in (source, apply_edits(source, finding.fix.edits)):
        space: dict[str, Any] = {}
        exec(compile(text, "a.py", "exec"), space)
        made.append(np.random.default_rng(1).random((5, 6)) + 1.0)
        for line in range(4):
            space["eliminate"](made[-1], line)
    assert np.array_equal(*made) and np.allclose(np.tril(made[0][:, :5], -1), 0.0)


def test_edits_are_offered_that_pay_from_a_small_size_on() -> None:
    (finding,) = checked(SMOOTHED).findings
    assert finding.condition is not None and finding.fix is not None
    assert finding.condition.pays_from is not None and finding.condition.pays_from <= SMALL
    assert finding.fix.applicability is Applicability.UNSAFE
    assert "alike" in finding.condition.text


def test_points_are_not_judged_as_squares() -> None:
    """An edit that pays for few columns is offered, and says where it is slower."""
    source = """
        import numpy as np

        def length(line):
            total = 0.0
            for i in range(1, len(line)):
                total += np.sqrt(np.sum((line[i] - line[i - 1]) ** 2))
            return total
    """
    finding = next(one for one in checked(source).findings if one.span.start_line == 6)
    assert finding.condition is not None and finding.fix is not None
    assert (finding.condition.pays_from or 99) <= SMALL and "axis1 = 3" in finding.condition.text
    assert "and where line.axis1 is as large" in finding.fix.legality
    assert "line is a plain array (2-d)" in finding.fix.legality


def test_an_order_of_products_that_narrow_arrays_make_slower_is_not_told() -> None:
    source = """
        import numpy as np

        def project(q, x, times):
            n, m = q.shape
            for _ in range(times):
                x[:, :] -= {}
    """
    # one half of a square `q @ q.T` is computed, and for 3 columns of 1000 rows all is in vain
    told = {
        text: checked(source.format(text)).findings for text in ("q @ (q.T @ x)", "(q @ q.T) @ x")
    }
    assert [*map(len, told.values())] == [0, 1]


def test_compiled_functions_are_taken_to_be_given_arrays_in_c_order() -> None:
    source = """
        import numpy as np
        from numba import njit

        @njit
        def smooth(u, new):
            for j in range(1, u.shape[1] - 1):
                for i in range(1, u.shape[0] - 1):
                    new[i, j] = 0.5 * (u[i - 1, j] + u[i + 1, j])
    """
    (finding,) = checked(source).findings
    assert finding.code == "ADV501" and finding.condition is not None
    assert "arrays in C order" in finding.condition.text
    assert finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
    assert not assumed(dedent(source).replace("@njit", "@cached"))


def test_windows_are_not_as_long_as_what_they_go_through() -> None:
    source = """
        import numpy as np

        def moving(x, width):
            out = np.zeros(len(x) - width + 1)
            for i in range(len(x) - width + 1):
                out[i] = x[i:i + width].sum()
            return out
    """
    (finding,) = checked(source).findings
    assert finding.condition is not None and "width = 1" in finding.condition.text


def test_what_has_other_attributes_is_not_transposed() -> None:
    (seen,) = assumed(
        "class A:\n    def f(self):\n        steps = self.T\n        for t in range(steps):\n"
        "            self.u[t, 0] = self.v.T[0, t]\n"
    )
    assert {one.name: one.ndim for one in seen.arrays} == {"self.u": 2, "self.v": 2}
    assert {one.name: one.dtype for one in seen.numbers} == {"self.T": "int64"}


@pytest.mark.parametrize(
    ("brackets", "told"), [("np.ones((3, 2))", 1), ("[(0, 5), (5, 9)]", 0), ("{0: (0, 5)}", 0)]
)
def test_what_a_call_shows_to_be_a_list_is_no_array(brackets: str, told: int) -> None:
    source = (
        "import numpy as np\n\n\ndef tax(income, brackets):\n    out = np.zeros(len(income))\n"
        "    for i in range(len(income)):\n        t = 0.0\n"
        "        for k in range(len(brackets)):\n"
        "            t += min(income[i], brackets[k][1]) - brackets[k][0]\n        out[i] = t\n"
        f"    return out\n\n\nprint(tax(np.arange(5000.0), {brackets}))\n"
    )
    assert len([one for one in checked(source).findings if one.fix]) == told


@pytest.mark.parametrize(
    ("made", "told"), [("np.ones((len(x), 3))", 1), ("[]", 0), ("[(0, 1, 2.0)] * len(x)", 0)]
)
def test_an_attribute_that_is_bound_to_a_list_is_no_array_in_other_methods(
    made: str, told: int
) -> None:
    source = f"""
        import numpy as np


        class Grid:
            def __init__(self, x):
                self.branches = {made}
                self.x = np.asarray(x, dtype=float)

            def flows(self):
                out = np.zeros(len(self.branches))
                for k in range(len(self.branches)):
                    out[k] = (self.branches[k][0] - self.branches[k][1]) / self.branches[k][2]
                return out
    """
    assert len(checked(source).findings) == told


SWEPT = """
    import random
    import numpy as np


    def turns(x, low):
        n = 0
        {use}
        for i in range(len(x) - 1):
            if x[i] * x[i + 1] < low:
                n += 1
        return n


    def through(y, low):
        return turns(y, low)


    class Path:
        def __init__(self, lengths):
            self.lengths = {made}

        def folds(self):
            n = 0
            for i in range(len(self.lengths) - 1):
                if self.lengths[i] * self.lengths[i + 1] < 0.0:
                    n += 1
            return n
    {calls}
"""
SHOWN = {
    "y = x.shape": True, "y = x - low": True, "y = x > low": True, "y = -x": True,
    "y = sorted(x)": False, "y = np.sum(x)": False, "for y in x: pass": False,
}  # fmt: skip


@pytest.mark.parametrize("use", SHOWN)
def test_an_edit_for_arrays_needs_something_that_shows_that_it_is_no_list(use: str) -> None:
    source = SWEPT.format(use=use, made="list(lengths)", calls="")
    (fix,) = [one.fix for one in checked(source).findings]
    assert fix is not None and ("may be a list" in fix.legality) is not SHOWN[use]
    assert (fix.applicability is Applicability.DISPLAY) is not SHOWN[use]


@pytest.mark.parametrize(
    ("calls", "offered"),
    [
        *(("through(k * np.arange(n), 0)", True), ("turns(k * np.arange(n), 0)", False)),
        *(("through(z, 0)", False), ("through(random.sample(z, n), 0)", False)),
        ("through(np.ones(n), 0), turns(z, 0)", False),
    ],
)
def test_calls_that_hand_on_what_they_are_given_show_no_array(calls: str, offered: bool) -> None:
    source = SWEPT.format(
        use="", made="[]", calls=f"\n\n    def start(n, k, z):\n        {calls}\n"
    )
    fixes = [one.fix for one in checked(source).findings]
    assert offered is any(one and one.applicability is Applicability.UNSAFE for one in fixes)


@pytest.mark.parametrize(("made", "offered"), [("np.diff(lengths)", True), ("lengths", False)])
def test_an_attribute_is_shown_where_it_is_bound(made: str, offered: bool) -> None:
    source = SWEPT.format(use="x = list(x)", made=made, calls="")
    fixes = [one.fix for one in checked(source).findings if one.kernel == "folds"]
    assert [one is not None and one.applicability is Applicability.UNSAFE for one in fixes] == [
        offered
    ]


@pytest.mark.parametrize(("returned", "told"), [("v[:m]", 0), ("np.ones(m)[:m]", 1)])
def test_a_part_of_a_list_is_one(returned: str, told: int) -> None:
    source = f"""
        import numpy as np

        def basis(apply, start, m):
            v = [start]
            for k in range(m):
                v.append(apply(v[k]))
            return np.eye(m), {returned}

        def step(apply, psi, m=4):
            t, v = basis(apply, psi, m)
            shares = t @ t[0]
            out = np.zeros(len(psi))
            for c, w in zip(shares, v):
                out += c * w
            return out

        step(abs, np.ones(3))
    """
    assert len([one for one in checked(source).findings if one.fix]) == told


def test_what_is_added_to_a_name_of_a_called_function_is_read() -> None:
    result = checked(
        """
        import math
        import numpy as np

        def turned(y, x):
            angle = math.atan2(y, x)
            if angle < 0.0:
                angle += math.pi * 2.0
            return angle

        def angles(low, n, step):
            found = []
            for i in range(n):
                x = i * step + low
                angle = turned(x, x)
                place = int(math.floor(angle / step))
                found[place].append(angle)
            return found
        """
    )
    assert not result.findings


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nimport numpy as np\n" + dedent(SMOOTHED),
        "import numpy as np\nfor name in ['a', 'b']:\n    print(np.zeros(3)[:2])\n",
        "import numpy as np\ndef f(d, keys):\n    for k in keys:\n        d[k] = np.zeros(3)\n",
    ],
)
def test_what_is_left_alone(source: str) -> None:
    assert not checked(source).findings


@pytest.mark.parametrize("sizes", ["nx, ny", "ny, nx"])
@pytest.mark.parametrize(
    "call", ["step(np.zeros((61, 61)), nx=61, ny=61)", "step(np.zeros((61, 67)), nx=67, ny=61)"]
)
def test_sizes_that_one_call_makes_equal_are_two(sizes: str, call: str) -> None:
    """Each was taken for the other, in turn, for as long as one would wait."""
    found = checked(f"""
        import numpy as np

        def step(u, {sizes}):
            b = np.zeros((ny, nx))
            for n in range(10):
                b[1:-1, 1:-1] = u[1:-1, 2:] - u[2:, 1:-1]
                u[1:-1, 1:-1] = u[1:-1, 1:-1] + b[1:-1, 1:-1]

        {call}
    """)
    assert found.coverage.analysed == ("step",)


def test_attributes_that_a_method_computes_first_are_followed() -> None:
    source = (
        "import numpy as np\n\nclass Model:\n    def fit(self):\n        X, y = self.X, self.y\n"
        "        self.beta = np.linalg.inv(X.T @ X) @ X.T @ y\n"
        "        self.resid = y - X @ self.beta\n        return self\n"
    )
    options = Options(None, {}, (), (), None)
    (kernel,) = read_kernels("model.py", source, seen_functions("model.py", source, options))
    assert [type(one).__name__ for one in kernel.body] == ["Bind", "Bind", "Return"]
    (returned,) = (one for one in kernel.body if isinstance(one, Return))
    assert returned.names >= {"self.beta", "self.resid"}
    # what it reads before, or binds again, may be anything else by then
    for line in ("        self.beta = self.beta[1:]\n", "        self.beta = X\n"):
        twice = source.replace("        self.resid", f"{line}        self.resid")
        (kernel,) = read_kernels("model.py", twice, seen_functions("model.py", twice, options))
        assert any(isinstance(one, Unknown) for one in walk(kernel.body))


def test_what_a_method_binds_first_it_is_not_given() -> None:
    source = (
        "import numpy as np\n\nclass Map:\n    def __init__(self, z, k):\n        self.z = z\n"
        "        self.rows = np.asarray(z, dtype=float) * k\n        for i in range(len(z)):\n"
        "            self.rows[i] += z[i]\n\n"
        "known = Map(np.ones((20, 30)), 2.0)\n"
    )
    options = Options(None, {}, (), (), None)
    (kernel,) = read_kernels("map.py", source, seen_functions("map.py", source, options))[:1]
    assert kernel.arrays.keys() == {"z"}
    assert not any(isinstance(one, Unknown) for one in walk(kernel.body))


HELD = """
    import numpy as np

    class Setup:
        def __init__(self, shift):
            self.shift = shift

    class Map:
        def __init__(self, z, setup):
            self.z = z
            self.setup = setup

        def __len__(self):
            return len(self.z)

        def depth(self, i, by):
            return self.z[i] * 2.0 + by

        def levels(self, most):
            c = self.setup
            out = np.zeros(len(self))
            for i in range(len(self)):
                out[i] = self.depth(i, c.shift) * most[0]
            return out

    def reset(one, other):
        return one

    def levels(one, most):
        out = np.zeros(len(one))
        for i in range(len(out)):
            out[i] = one.depth(i, one.setup.shift) + most[1]
        return out

    known = Map(np.arange(30) * 1.0, Setup(0.5))
    made = known.levels([4.0, 5.0]), levels(reset(known, Setup(2.0)), [4.0, 5.0])
"""


@pytest.mark.parametrize(
    ("line", "then", "offered"),
    [
        ("", "", {"levels"}),
        # what `c` is may be another one's by then
        ("return one", "one.setup = other; return one", set()),
        ("out[i] =", "c = Setup(i); out[i] =", set()),
        ("return len(self.z)", "self.z = self.z[1:]; return len(self.z)", set()),
    ],
)
def test_what_objects_hold_is_read_by_any_name(line: str, then: str, offered: set[str]) -> None:
    source = dedent(HELD).replace(line, then) if line else dedent(HELD)
    findings = [one for one in checked(source).findings if one.fix is not None and one.fix.edits]
    assert {one.kernel for one in findings} == offered
    found = []
    edits = [edit for one in findings if one.fix is not None for edit in one.fix.edits]
    for text in (source, apply_edits(source, tuple(edits))):
        space: dict[str, Any] = {}
        exec(compile(text, "a.py", "exec"), space)
        found.append(space["made"])
    for before, after in zip(*found, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("made", ["Counter()", "defaultdict(int)", "dict.fromkeys(range(9), 0)"])
def test_what_has_keys_is_no_array(made: str) -> None:
    source = f"""
        from collections import Counter, defaultdict
        import numpy as np

        def levels(codes):
            found = {made}
            for code in codes:
                found[int(code)] += 1
            return found
    """
    assert not any(one.fix is not None and one.fix.edits for one in checked(source).findings)
    space: dict[str, Any] = {}
    exec(dedent(source), space)
    assert space["levels"](np.array([1, 2, 1]))[1] == 2


@pytest.mark.parametrize("through", ["image.flatten()", "image.ravel()", "image.flat"])
def test_items_of_a_flattened_array_are_those_of_any_rank(through: str) -> None:
    source = dedent("""
        import numpy as np

        def levels(image):
            found = np.zeros(9, dtype=int)
            for level in THROUGH:
                found[level] += 1
            return found
    """).replace("THROUGH", through)
    (fix,) = (one.fix for one in checked(source).findings if one.fix is not None)
    images = np.arange(9), np.arange(8).reshape(2, 4) % 3, np.zeros((2, 0, 3), dtype=int)
    results = []
    for text in (source, apply_edits(source, fix.edits)):
        space: dict[str, Any] = {}
        exec(text, space)
        results.append([space["levels"](image) for image in images])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("loop", "is_rewritten"),
    [
        ("for i, j in np.ndindex(a.shape):\n    b[i, j] = 2.0 * a[i, j] + c[j]", True),
        ("for i, j in np.ndindex(*a.shape):\n    b[i, j] = i + a[i, j]", True),
        ("for i, j in np.ndindex(len(a), len(c)):\n    b[i, j] = a[i, j] * c[j]", True),
        ("for (i, j), v in np.ndenumerate(a):\n    a[i, j] = v * c[i]", True),
        ("for i, j in np.ndindex(a.shape):\n    if a[i, j] < 0:\n        b[i, j] = -a[i, j]", True),
        ("for i, j in np.ndindex(a[1:].shape):\n    a[i + 1, j] = a[i, j] + c[j]", False),
        # it ends, or goes on, elsewhere
        (
            "for i, j in np.ndindex(a.shape):\n    if a[i, j] < 0:\n        break\n    b[i, j] = 1",
            False,
        ),
        ("for i, j in np.ndindex(a.shape):\n    a = a[:-1]\n    b[i, j] = c[i]", False),
    ],
)
def test_loops_over_indices_are_those_over_each_axis(loop: str, is_rewritten: bool) -> None:
    body = indent(f"b = np.zeros(a.shape)\n{loop}\nreturn a, b", "    ")
    source = f"import numpy as np\n\ndef f(a, c):\n{body}\n"
    fixes = [one.fix for one in checked(source).findings if one.fix is not None and one.fix.edits]
    assert bool(fixes) == is_rewritten
    given = [np.random.default_rng(n).normal(size=(4, 4)) for n in range(3)]
    results = []
    for text in (source, *(apply_edits(source, fix.edits) for fix in fixes)):
        space: dict[str, Any] = {}
        exec(text, space)
        results.append([space["f"](one.copy(), one[0] + 2) for one in given])
    for other in results[1:]:
        np.testing.assert_allclose(results[0], other, rtol=1e-14)


DENSITY = """
    import numpy as np

    def density(x, w, grid, width):
        out = np.zeros(len(grid))
        for i, g in enumerate(grid):
            out[i] = np.sum(w * np.exp(-0.5 * ((g - x) / width) ** 2))
        return out
"""


@pytest.mark.parametrize(
    ("calls", "rank"),
    [
        (["points[:, 0], w, grid, 0.1"], 1),
        (["points[:, :], w, grid, 0.1", "x=points[k, :], w=w, grid=grid, width=0.1"], 1),
        (["points[3:], w, grid, width=0.1"], 1),
        (["x, w, grid, 0.1"], 0),
        (["points[:, 0], w, grid, 0.1", "0.5, w, grid, 0.1"], 0),
        (["*points[:, :4], 0.1"], 0),
    ],
)
def test_what_calls_give_has_at_least_its_rank(calls: list[str], rank: int) -> None:
    lines = [f"    density({call})" for call in calls]
    text = dedent(DENSITY) + "\n".join(["", "def main(points, x, w, grid, k):", *lines, ""])
    (seen,) = (one for one in assumed(text) if one.function == "density")
    arrays = {one.name: one.ndim for one in seen.arrays}
    assert arrays.get("x", 0) == rank
    assert "width" not in arrays


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (["np.ones(50)", "np.ones(60)"], True),
        (["np.ones(50)", "np.ones((40, 3))"], False),
        (["np.ones(50)", "0.5 * np.ones((40, 3)).sum()"], False),
        (["np.arange(6.0)", "np.arange(6.0).reshape(3, 2)"], False),
    ],
)
def test_of_what_calls_give_several_ranks_nothing_is_assumed(calls: list[str], told: bool) -> None:
    head = ["import numpy as np", "def total(x):", "    s = 0.0", "    for i in range(len(x)):"]
    body = ["        s += x[i] * x[i]", "    return s", *(f"print(total({one}))" for one in calls)]
    assert bool(checked("\n".join([*head, *body, ""])).findings) is told


PASSED_ON = {
    # what the callee does shows that these are numbers, of so many dimensions
    "rows": """
    def length(p, q):
        return np.sqrt((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2)

    def f(a, p):
        total = 0.0
        for i in range(len(a) - 1):
            total += length(a[i], a[i + 1])
        return total
    """,
    "keys": """
    def rate(x, p):
        return p["up"] / p["down"] * x

    def f(a, p):
        out = np.zeros(len(a))
        for i in range(len(a)):
            out[i] = rate(a[i], p)
        return out
    """,
}


@pytest.mark.parametrize("name", sorted(PASSED_ON))
def test_what_a_function_needs_its_callers_have(name: str) -> None:
    source = dedent("\n    import numpy as np\n" + PASSED_ON[name])
    (fix,) = (one.fix for one in checked(source).findings if one.fix is not None)
    a = np.random.default_rng(2).random((9, 2) if name == "rows" else 9)
    results = []
    for text in (source, apply_edits(source, fix.edits)):
        space: dict[str, Any] = {}
        exec(text, space)
        results.append(space["f"](a, {"up": 3.0, "down": 0.7}))
    np.testing.assert_allclose(*results, rtol=1e-14)


MADE_HERE = """
    import numpy as np

    class Grid:
        def __init__(self, n):
            self.n = n
            self.h = 1.0 / n

        def scale(self):
            return self.h * 2.0

    def main(n):
        g = Grid(n)
        x = np.linspace(0.0, 1.0, g.n)
        out = np.zeros(g.n)
        for i in range(g.n):
            out[i] = x[i] * g.scale() + g.h
        return out
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("", ""),
        ("return out", "g.h = 3.0"),
        ("return out", "g = Grid(5)"),
        ("    out[i] =", "    g = Grid(n + i)"),
    ],
)
def test_objects_that_are_made_once_hold_what_their_class_says(place: str, line: str) -> None:
    source = dedent(MADE_HERE)
    if line:
        changed = source.replace(place, f"{line}\n    {place}")
        assert not any(one.fix for one in checked(changed).findings)
        return
    (fix,) = (one.fix for one in checked(source).findings if one.fix is not None)
    results = []
    for text in (source, apply_edits(source, fix.edits)):
        space: dict[str, Any] = {}
        exec(text, space)
        results.append(space["main"](9))
    np.testing.assert_array_equal(*results)


TURNED = """
    import numpy as np

    class Mesh:
        def normals(self):
            n = np.zeros((len(self.faces), 3))
            for f in range(len(self.faces)):
                a, b, c = self.points[self.faces[f]]
                n[f] = np.cross(b - a, c - a)
            return n

        def volume(self):
            total = 0.0
            for a, b, c in self.faces:
                total += np.dot(self.points[a], np.cross(self.points[b], self.points[c]))
            return total

        def corners(self):
            return np.unique(self.faces[:, 0])
"""


def test_of_what_fits_several_ranks_others_tell_first() -> None:
    """Alone, `normals` would have the least of `faces`, and one too many of `points`."""
    told = {one.name: one.ndim for seen in assumed(dedent(TURNED)) for one in seen.arrays}
    assert told == {"self.faces": 2, "self.points": 2}


USES = {
    # each needs fewer dimensions of what it is given than it may have
    "total = 0.0\n    for k in range(len({x})):\n        total = total + {x}[k]": 1,
    "y = {x} * 2.0\n    for k in range(len({x})):\n        y[k] = y[k] + {x}[k]": 1,
    "total = 0.0\n    for one in {x}:\n        total = total + one * 2.0": 1,
    "for k in range({x}.shape[0]):\n        {x}[k] += 1.0": 1,
}


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Return a file whose functions and objects hand arrays on, one to another, and `main`."""
    ranks = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    shapes = [f"np.zeros(({', '.join(['3'] * rank)},))" for rank in ranks]
    names = [f"x{k}" for k in range(len(ranks))]
    uses = draw(st.lists(st.sampled_from(sorted(USES)), min_size=4, max_size=4))
    given, held, deep, method = (
        use.format(x=x)
        for use, x in zip(uses, ("a", "box.held", "self.box.held", "self.held"), strict=True)
    )
    first, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    again = draw(st.sampled_from(["f(v)", "f(v * 2.0)", "f(v[:])", "f(a=v)"]))
    lines = [
        "import numpy as np",
        f"def made():\n    return {', '.join(shapes)}",
        f"def f(a):\n    {given}\n    return a",
        f"def g(box):\n    {held}",
        f"class Box:\n    def __init__(self, held):\n        self.held = held * 1.0"
        f"\n    def use(self):\n        {method.replace(chr(10), chr(10) + '    ')}",
        f"class Outer:\n    def __init__(self, box):\n        self.box = box"
        f"\n    def use(self):\n        {deep.replace(chr(10), chr(10) + '    ')}",
        f"def main():\n    {', '.join(names)} = made()\n    v = {first}\n    w = {again}"
        f"\n    box = Box({other})\n    box.use()\n    g(box)\n    Outer(box).use()",
        "main()",
    ]
    return "\n\n".join(lines) + "\n"


@settings(max_examples=150, deadline=None)
@given(programs())
def test_ranks_are_those_of_a_run(source: str) -> None:
    run: dict[tuple[str, str], set[int]] = {}
    told = {(one.function, one.line): one for one in assumed(source)}
    places = {line: (function, one) for (function, line), one in told.items()}

    def record(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_filename != "drawn" or code.co_firstlineno not in places:
            return
        function, one = places[code.co_firstlineno]
        for array in (*one.arrays, *one.numbers):
            value: Any = frame.f_locals
            root, *attributes = array.name.split(".")
            value = reduce(getattr, attributes, value[root])
            run.setdefault((function, array.name), set()).add(np.ndim(value))

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        exec(compile(source, "drawn", "exec"), {})
    finally:
        sys.setprofile(before)
    known = {
        (one.function, array.name): {getattr(array, "ndim", 0)}
        for one in told.values()
        for array in (*one.arrays, *one.numbers)
    }
    assert {"f", "g", "Box.use", "Outer.use"} <= {function for function, _ in known}
    assert known == known | run


GROWN = """
    import numpy as np

    def grown(x, k):
        out = np.zeros((len(x), k))
        while k > 3:
            out += x[0]
            k -= 1
        return out

    def product(x, k, times):
        total = 0.0
        for _ in range(times):
            one = grown(x, k)
            other = grown(x * 2.0, k)
            third = one * other
            n, m = third.shape
            for i in range(n):
                for j in range(m):
                    third[i, j] = third[i, j] * 2.0 + 1.0
            total += third.sum()
        return total

    def main():
        return product(np.arange(5.0), 7, 3)
"""


def test_what_calls_give_in_loops_is_an_array() -> None:
    source = dedent(GROWN)
    (finding,) = (one for one in checked(GROWN).findings if one.kernel == "product")
    assert finding.code == "ADV401"
    results = []
    for text in (source, apply_edits(source, finding.fix.edits if finding.fix else ())):
        space: dict[str, Any] = {}
        exec(text, space)
        results.append(space["main"]())
    assert results[0] == results[1]


def test_items_at_places_of_items_that_are_subtracted_are_alike() -> None:
    source = """
    import numpy as np

    def inertia(x, lab, centers):
        s = 0.0
        for i in range(len(x)):
            s += np.sum((x[i] - centers[lab[i]]) ** 2)
        return s

    def spread(ens, truth):
        b = np.zeros_like(truth)
        for i in range(len(ens)):
            for j in range(len(ens)):
                b += np.abs(ens[i] - ens[j])
        return b

    def nearest(a, b):
        for i in range(len(a)):
            d = np.sqrt(((b - a[i]) ** 2).sum(axis=1)).min()
        return d

    inertia(np.zeros((40, 3)), np.zeros(40, dtype=int), np.ones((4, 3)))
    """
    ranks = {
        (seen.function, one.name): one.ndim
        for seen in assumed(dedent(source))
        for one in seen.arrays
    }
    assert ranks["inertia", "x"] == ranks["inertia", "centers"] == 2
    assert ranks["nearest", "a"] == ranks["nearest", "b"] == 2
    assert ranks["spread", "truth"] == 1


@pytest.mark.parametrize("also", ["", "\n    def g(TABLE):\n        return TABLE[0]\n"])
def test_arrays_that_only_the_module_binds_have_their_shape(also: str) -> None:
    source = f"""
    import numpy as np

    TABLE = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
{also}
    def f(p, out):
        for i in range(len(p)):
            for k in range(len(TABLE)):
                out[i] += p[i, 0] * TABLE[k, 1]
    """
    found = seen_functions("a.py", dedent(source), Options("node2026", {}, (), (), None))
    (shape,) = [one.shape for seen in found for one in seen.arrays if one.name == "TABLE"][-1:]
    assert shape == (None if also else (3, 2))


@pytest.mark.parametrize("also", ["", "args = parser.parse_args(['--n', '3'])\n"])
def test_options_of_a_script_are_their_defaults(also: str) -> None:
    source = f"""
import argparse
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--n", type=int, default=200)
args = parser.parse_args()
{also}n = args.n
m = 2 * n
x = np.zeros(n)
y = np.zeros(m)
for i in range(args.n):
    x[i] = y[2 * i] + 1.0
"""
    found = seen_functions("a.py", source, Options("node2026", {}, (), (), None))
    (kernel,) = read_kernels("a.py", source, found)
    values = {name: size.value for name, size in kernel.sizes.items()}
    assert values == ({} if also else {"args.n": 200, "m": 400, "n": 200})


def test_what_an_array_is_listed_as_is_no_array() -> None:
    source = """
    def comb(y, gain, delay):
        y_list = y.tolist()
        for i in range(delay, len(y)):
            y_list[i] += gain * y_list[i - delay]
        y[:] = y_list
    """
    (seen,) = assumed(dedent(source))
    found = [*seen.arrays, *(one.what for one in seen.bindings)]
    assert "y_list" not in {getattr(one, "name", "") for one in found}
    assert {one.name for one in seen.arrays} == {"y"}


def test_names_that_nothing_is_bound_to_have_nothing_in_common() -> None:
    source = """
    import numpy as np

    def begin(parts, known, truth, send):
        if known:
            rows = [None] * 4
            for k, part in enumerate(parts):
                rows[k::2] = part
            a = np.array(rows)
            mean = a.mean(axis=0)
        else:
            a = mean = None
        a = send(a)
        mean = send(mean)
        spread = np.zeros_like(mean)
        for one in parts:
            spread += (one - mean) ** 2
        above(a, truth)

    def above(a, truth):
        h = np.zeros(len(a))
        for y in range(a.shape[1]):
            for i in range(a.shape[2]):
                h[np.sum(a[:, y, i] < truth[y, i])] += 1
        return h
    """
    (seen,) = [one for one in assumed(dedent(source)) if one.function == "above"]
    assert {one.name: one.ndim for one in seen.arrays} == {"a": 3, "truth": 2}


ELEMENTS = """
    import numpy as np

    def within(E, grid, radii):
        X, Y = grid.axes()
        I = np.abs(-E) ** 2
        out = []
        assert radii.size
        for r in radii:
            out.append(np.sum(I[np.sqrt(X ** 2 + Y ** 2) <= r]) / np.sum(I))
        return np.array(out)
"""


def test_an_edit_that_goes_by_dimensions_needs_them_shown() -> None:
    """What nothing subscripts may be a matrix, and then an axis more is one too few."""
    (fix,) = [one.fix for one in checked(ELEMENTS).findings if one.code == "ADV504"]
    assert fix is not None
    assert any("axis=1" in one.replacement for one in fix.edits)
    assert fix.applicability is Applicability.DISPLAY
    assert "dimensions, which nothing rules out" in fix.legality


def test_a_number_has_the_name_of_the_size_that_it_is_near_and_of_no_small_one() -> None:
    source = """
        import numpy as np

        dt = 1
        m = 4000
        f, g = np.zeros(m), np.arange(m) * 1.0
        for step in range(dt, 100):
            for i in range(1, m - 1):
                f[i] = g[i] + dt * (g[i + 1] - 2 * g[i] + g[i - 1]) / 2
            for i in range(1, m):
                g[i] = f[i]
        print(g.sum())
    """
    fixes = [one.fix for one in checked(source).findings if one.code == "ADV401"]
    text = " ".join(edit.replacement for fix in fixes if fix for edit in fix.edits)
    assert "f[1:m - 1] = g[1:m - 1] + dt * (g[2:]" in text and "dt:" not in text


def test_what_is_written_anew_keeps_the_words_of_its_place() -> None:
    """Of numbers that are taken for real, a conjugate is not what it is the conjugate of."""
    source = """
    import numpy as np

    def quench(H, psi0, times, obs):
        w, U = np.linalg.eigh(H)
        out = []
        for t in times:
            prop = U @ np.diag(np.exp(-1j * w * t)) @ U.conj().T
            psi = prop @ psi0
            out.append(np.vdot(psi, obs @ psi).real)
        return np.array(out)
    """
    fixes = [one.fix for one in checked(source).findings if one.code == "ADV505"]
    (fix,) = [one for one in fixes if one is not None]
    random = np.random.default_rng(5)
    matrix = random.normal(size=(6, 6)) + 1j * random.normal(size=(6, 6))
    hermitian, times = matrix + matrix.conj().T, np.linspace(0.0, 1.0, 4)
    given = hermitian, random.normal(size=6) + 0j, times, hermitian
    made = []
    for text in (dedent(source), apply_edits(dedent(source), fix.edits)):
        names: dict[str, Any] = {}
        exec(compile(text, "a.py", "exec"), names)
        made.append(names["quench"](*given))
    np.testing.assert_allclose(made[1], made[0], 1e-10)
    assert apply_edits(dedent(source), fix.edits) != dedent(source)


def test_of_none_that_a_condition_chooses_there_is_a_price() -> None:
    """How many are chosen nobody knows, and of none a share would have no value."""
    source = """
    import numpy as np

    def peaks(p, grid, n):
        inner = (p[1:-1] > p[:-2]) & (p[1:-1] >= p[2:])
        idx = np.nonzero(inner)[0] + 1
        best = idx[np.argsort(p[idx])[::-1][:n]]
        return np.sort(grid[best])

    def main():
        grid = np.linspace(-1.0, 1.0, 160_001)
        print(peaks(np.abs(np.sin(grid)), grid, 3))

    main()
    """
    (found,) = [one for one in checked(source).findings if one.code == "ADV505"]
    assert found.prediction is not None
    assert 0 < found.prediction.low <= found.prediction.high


@pytest.mark.parametrize(
    ("call", "is_array"),
    [
        *(("fetch(w)", True), ("bcast(out)", False), ("bcast(pairs)", False)),
        *(("sendrecv(pairs, 0)", False), ("recv(source=0)", False), ("gather(w)", False)),
    ],
)
def test_what_comes_by_pickles_is_like_what_is_sent(call: str, is_array: bool) -> None:
    source = f"""
    import numpy as np

    def step(comm, w, n):
        v, out = np.zeros(n), []
        for i in range(n):
            out.append((i, w[i, 0]))
        pairs = [(k, 2 * x) for k, x in out]
        came = comm.{call}
        for j, x in came:
            v[j] = x
        return v
    """
    (seen,) = assumed(dedent(source))
    held = [one.what for one in seen.bindings if one.name == "came"]
    assert any(isinstance(one, SeenArray) for one in held) is is_array


@pytest.mark.parametrize("default", ["WIDE", "-1", "2 * WIDE", "2.0", "None", "'a'"])
def test_a_default_tells_whether_a_parameter_is_a_number(default: str) -> None:
    source = dedent(f"""
        import numpy as np

        WIDE = 3.0

        def energy(x, width={default}):
            x = x - np.rint(x / width) * width
            return np.sum(x**2, axis=1)
        """)
    numbers = {number.name for one in assumed(source) for number in one.numbers}
    assert ("width" in numbers) == (default not in ("None", "'a'"))


@pytest.mark.parametrize("known", [False, True])
def test_no_edit_is_for_vectors_alone_where_matrices_may_be_meant(known: bool) -> None:
    source = dedent("""
        import numpy as np

        def rotate(A, T):
            {head}
            return np.linalg.inv(T).dot(A)

        def turn(A, T):
            return A.dot(np.linalg.inv(T.T))
        """)
    source = source.replace("{head}", "n, m = A.shape" if known else "pass")
    found = check_source("a.py", source, Options("node2026", {}, ("ADV505",), (), 1.0)).findings
    applied = [
        edit
        for one in found
        if one.fix is not None and one.fix.applicability is not Applicability.DISPLAY
        for edit in one.fix.edits
    ]
    before, after = dict[str, Any](), dict[str, Any]()
    exec(source, before)
    exec(apply_edits(source, applied), after)
    # of a vector `turn` would be solve(T, A), which of square matrices is something else
    made = np.random.default_rng(3).random((2, 4, 4))
    for name in ("rotate", "turn"):
        np.testing.assert_allclose(after[name](*made), before[name](*made))
