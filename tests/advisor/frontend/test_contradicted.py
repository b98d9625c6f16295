"""Edits of functions that nobody calls, run on arguments that they are not read with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from textwrap import dedent, indent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.finding import Applicability, Finding
from advisor.source import apply_edits

SQUARE = np.arange(9.0).reshape(3, 3) / 8 + 0.1


@cache
def offered(source: str) -> tuple[Finding, ...]:
    findings = check_source("a.py", source, Options("node2026", {}, (), (), 1.0)).findings
    fixed = (one for one in findings if one.fix is not None and one.fix.edits)
    return tuple(one for one in fixed if one.fix.applicability is not Applicability.DISPLAY)


def edited(source: str) -> str:
    """Return a file with all edits, one after another."""
    for _ in range(9):
        found = offered(source)
        if not found:
            return source
        assert found[0].fix is not None
        source = apply_edits(source, found[0].fix.edits)
    raise AssertionError("edits go on")


def made_by(source: str, *given: Any) -> Any:
    """Return what the function `f` of a file gives."""
    space: dict[str, Any] = {}
    exec(compile(source, "a.py", "exec"), space)
    return space["f"](*given)


def assert_same(source: str, arguments: Callable[[], tuple[Any, ...]]) -> str:
    """Run a file's only function before and after its edits; return what these made of it."""
    source = f"import math\nimport numpy as np\n\n\n{dedent(source).strip()}\n"
    after, made = edited(source), []
    for text in (source, after):
        given = arguments()
        result = made_by(text, *given)
        made.append([result, *(one for one in given if isinstance(one, np.ndarray | tuple))])
    for one, other in zip(*made, strict=True):
        parts = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
        for left, right in parts:
            assert np.asarray(left).dtype == np.asarray(right).dtype
            if left is not None:
                np.testing.assert_allclose(left, right)
    return after


@pytest.mark.parametrize(
    "made",
    [
        "np.repeat(a, 3, axis=0)[: len(a)]",
        "np.repeat(a, 3, 0)[: len(a)]",
        "np.append(a, b, axis=0)[: len(a)]",
        "np.delete(a, [0], axis=0)[: len(a)]",
        "np.insert(a, 1, 0.5, axis=0)[: len(a)]",
        "np.unique(a, axis=0)",
    ],
)
def test_along_an_axis_functions_keep_dimensions(made: str) -> None:
    source = f"""
    def f(a, b):
        v = {made}
        return np.sum(v * b[: len(v)], axis=1)
    """
    assert_same(source, lambda: (SQUARE.copy(), SQUARE[::-1].copy()))


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = (y[i] * y[i]) / -2",
        "y[i] += 0.5 * y[i - 1]",
        "y[i] = y[i - 1] + y[i]",
    ],
)
@pytest.mark.parametrize("start", ["x.astype(float)", "np.cumsum(x.astype(float), axis=0)"])
def test_what_a_subscript_takes_may_be_a_row(body: str, start: str) -> None:
    source = f"""
    def f(x):
        y = {start}
        for i in range(1, len(y)):
            {body}
        return y
    """
    assert_same(source, lambda: (SQUARE.copy(),))
    assert_same(source, lambda: (SQUARE[0].copy(),))


def test_elements_by_the_same_operations_are_edited_for_rows_too() -> None:
    source = """
    def f(u, r):
        un = u.copy()
        for i in range(1, u.shape[0] - 1):
            un[i] = u[i] + r * (u[i - 1] - 2 * u[i] + u[i + 1])
        return un
    """
    for u in (SQUARE, SQUARE[0]):
        assert "for" not in assert_same(source, lambda u=u: (u.copy(), 0.5))


def test_a_tuple_of_arrays_is_no_array() -> None:
    source = """
    def f(matrices):
        n = len(matrices)
        for i in range(1, n, 2):
            matrices[i][0, :] = np.nan
    """
    assert_same(source, lambda: (tuple(SQUARE.copy() for _ in range(4)),))


@pytest.mark.parametrize("places", ["np.where(w[i, :] > 0.5)", "np.nonzero(w[i, :] > 0.5)"])
def test_places_are_whole_numbers_and_what_tells_them_is_not(places: str) -> None:
    source = f"""
    def f(w):
        n = len(w)
        products = np.dot(w, w.T)
        large = np.zeros((n, n))
        for i in range(n):
            large[i, {places}] = 1
        return products, large
    """
    assert_same(source, lambda: (SQUARE.copy(),))


def test_what_stands_in_subscripts_may_be_truths() -> None:
    source = """
    def f(w, x):
        s = np.zeros(len(w))
        for i in range(len(w)):
            s[i] = x[w[i]].sum()
        return s, w.T @ w
    """
    assert_same(source, lambda: (SQUARE > 0.5, SQUARE[0]))


@pytest.mark.parametrize("given", ["source.values()", 'source.kept["values"]', "source.held"])
@pytest.mark.parametrize(
    "body",
    [
        "for one in values:\n            found.append(abs(k - one))",
        "found = [np.sqrt(one**2) for one in values]",
        "for i in range(len(values)):\n            found.append(values[i] + k)",
        "for i in range(len(values)):\n            values[i] /= k",
    ],
)
def test_what_others_give_may_be_a_list(given: str, body: str) -> None:
    source = f"""
    def f(source, k):
        found = []
        if any(one is None for one in [source, k]):
            source, k = source.other()
        values = {given}
        {body}
        return np.array(found), np.mean(np.array(values))
    """

    def arguments() -> tuple[Any, ...]:
        numbers = [0.5, 1.5, 2.5] * 10
        held = SimpleNamespace(values=lambda: numbers, kept={"values": numbers}, held=numbers)
        return held, 2.0

    assert_same(source, arguments)


def test_what_zip_gives_are_tuples() -> None:
    source = """
    def f(pairs, n):
        chances, places = zip(*pairs)
        counts = np.zeros(n)
        for each in places:
            for place in each:
                counts[place] += 1
        return counts, np.array(chances)
    """
    assert_same(source, lambda: ([(0.5, [0, 2, 2]), (0.25, [1])], 3))


def test_squares_of_complex_numbers_are_not_their_absolute_ones() -> None:
    source = """
    def f(x, y):
        return np.sum(x[:, :] ** 2), np.trace(y @ y), np.sum(x[:, 0] * y[:, 0])
    """
    assert_same(source, lambda: (SQUARE * (1 + 2j), SQUARE * 1j))


@pytest.mark.parametrize(
    "expression", ["np.sum(np.tril(m, -1) ** 2)", "np.sum((m - w) ** 2)", "np.sum(m**4)"]
)
def test_no_edit_computes_an_operand_twice(expression: str) -> None:
    source = f"""
    def f(x, w):
        m = np.corrcoef(x)
        return {expression}
    """
    after = assert_same(source, lambda: (SQUARE.copy(), SQUARE.copy()))
    assert after.count("tril") <= 1 and after.count("m - w") <= 1 and after.count("**") <= 1


def test_an_order_of_products_that_costs_wide_matrices_more_is_not_offered() -> None:
    source = """
    def f(x, rank, power, start):
        m, n = x.shape
        low = x.copy()
        for it in range(3):
            y = start(n, rank)
            for _ in range(power + 1):
                y = low.T @ (low @ y)
            low = low + 0.1 * (x - low) + y.sum() * 1e-9
        return low
    """
    after = assert_same(source, lambda: (SQUARE, 1, 0, lambda n, k: np.ones((n, k))))
    assert "low.T @ (low @ y)" in after


@pytest.mark.parametrize(
    "body",
    [
        "return(sum([x[i] for i in range(len(x))]))",
        "assert(all([i > -9 for i in x]))",
        "return(max([abs(x[i]) for i in range(len(x))]))",
        "a = np.zeros(0, dtype=complex)\n        for k in range(len(x) - 3):\n"
        "            a[k - 1] = a[k - 1] + x[k]\n        return a",
        "y = np.zeros(len(x))\n        for j in range(len(x)):\n            v = 1.0\n"
        "            for i in range(j):\n                v *= math.sin(float(x[i]))\n"
        "            y[j] = -(v <= 0.5) if j < 0 else v\n        return y",
    ],
)
def test_what_is_written_oddly_is_read(body: str) -> None:
    assert_same(f"\n    def f(x):\n        {body}\n    ", lambda: (SQUARE[0].copy(),))


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize(
    ("start", "body", "result"),
    [
        ("", "if x[i, j] > 0.5:\n                    out[i] += 1", "out"),
        ("", "if x[i, j] > 0.5:\n                    out[i] += x[i, j]", "out"),
        ("", "if 0.2 < x[i, j] and x[i, j] < 0.7:\n                    out[i] -= x[i, j]", "out"),
        ("s = 0", "if x[i, j] > 0.5:\n                    s += 1", "s"),
        ("s = 0.0", "if x[i, j] > 0.5:\n                    s += x[i, j]", "s"),
    ],
)
def test_sums_under_conditions_are_raised(start: str, body: str, result: str, rows: int) -> None:
    source = f"""
    def f(x, n, m):
        out = np.full(n, 2.0)
        {start or "pass"}
        for i in range(n):
            for j in range(m):
                {body}
        return {result}
    """
    numbers = np.random.default_rng(rows).random((rows, 5))
    assert "for" not in assert_same(source, lambda: (numbers.copy(), rows, 5))


# --- as a person would write ----------------------------------------------------------------------

ALIKE = """
import numpy as np

def one(x):
    total = np.zeros(4000)
    for row in range(len(x)):
        a = np.abs(x[row, :])
        total += np.exp(a) / np.exp(a).sum()
    return total

def other(x):
    total = np.ones(4000)
    for row in range(len(x)):
        a = np.abs(x[row, :])
        total *= np.exp(a) / np.exp(a).sum()
    return total
"""


def test_names_are_those_that_a_function_has_free() -> None:
    after = edited(ALIKE)
    assert after.count("exp_a = np.exp(a)") == 2


def test_of_what_is_as_long_as_others_an_end_is_counted_from_it() -> None:
    source = """
import numpy as np

n = 100
m = 100
f = np.zeros((9, n, m))
for step in range(5000):
    for j in range(m - 1, 0, -1):
        for i in range(0, n - 1):
            f[2, i, j] = f[2, i, j - 1]
            f[6, i, j] = f[6, i + 1, j - 1]
    for j in range(0, m):
        f[4, j, n - 1] = -f[2, j, n - 1]
print(f.sum())
"""
    after = edited(source)
    assert "f[2, :-1, 1:] = f[2, :-1, :-1]" in after and "99" not in after


TABLE = """
import numpy as np

w0 = 4.0 / 9.0
w1 = 1.0 / 9.0
w = [w0, w1, w1]

def f(r, a):
    b = 1.0 - a
    v = [a, b, 0.5]
    made = np.zeros((3, 100, 100))
    for i in range(100):
        for j in range(100):
            for k in range(3):
                made[k, i, j] = w[k] * r[i, j] + v[k]
    return made

f(np.ones((100, 100)), 0.5)
"""


@pytest.mark.parametrize(
    ("change", "is_read"),
    [
        (("", ""), True),
        # what the list holds is another number than the name stands for later
        (("    made =", "    b = 2.0\n    made ="), False),
        (("v = [a, b, 0.5]", "v = [a, b, 0.5]\n    v[0] = r[0, 0]"), False),
        (("w = [w0, w1, w1]", "w = [w0, w1, w1]\nw1 = 5.0"), False),
        (("def f(r, a):", "def f(r, a, w1=3.0):"), False),
    ],
)
def test_lists_of_named_numbers_are_tables(change: tuple[str, str], is_read: bool) -> None:
    source = TABLE.replace(*change)
    assert source.count(change[1]) or not change[1]
    after = edited(source)
    assert ("for i" not in after) == is_read
    given = np.random.default_rng(1).random((100, 100)), 0.3
    np.testing.assert_allclose(made_by(after, *given), made_by(source, *given))


COMPLEX = SQUARE + 1j * SQUARE[::-1]


@pytest.mark.parametrize(
    "body",
    [
        "return np.array([np.vdot(a[i, :], b[0, :]) for i in range(len(a))])",
        "return sum(np.vdot(a[i, :], b[i, :]) for i in range(len(a)))",
        "return np.array([np.linalg.norm(a[i, :]) ** 2 for i in range(len(a))])",
        "return np.linalg.norm(a - b) ** 2 / np.linalg.norm(b) ** 2",
        "for i in range(len(a)):\n    a[i, :] -= b[0, :] * np.vdot(b[0, :], a[i, :])",
        "for i in range(len(a)):\n    a[i, :] /= np.sqrt(np.vdot(a[i, :], a[i, :]))",
        "for i in range(a.shape[1]):\n    a[:, i] /= np.linalg.norm(a[:, i])",
        "for i in range(len(a)):\n    b[0, i] = abs(np.vdot(a[i, :], b[i, :])) ** 2",
        "for i in range(len(a)):\n    b[0, i] = np.linalg.norm(a[i, :] - b[1, :])",
    ],
)
def test_numbers_may_be_complex_where_products_and_norms_are_of_such(body: str) -> None:
    source = f"def f(a, b):\n{indent(body, '    ')}\n"
    assert_same(source, lambda: (COMPLEX.copy(), COMPLEX.T * 2))


def test_vdot_goes_through_all_axes() -> None:
    source = """
    def f(a, b):
        s = 0
        for i in range(len(a)):
            s += np.vdot(a[i], b[i])
        return s
    """
    assert_same(source, lambda: (np.arange(12.0).reshape(2, 3, 2), np.ones((2, 3, 2))))


@pytest.mark.parametrize(
    "given",
    ["np.split(x, 3)", "np.array_split(x, 3)", "np.meshgrid(x, x)", "range(1, len(x))"],
)
@pytest.mark.parametrize("hint", ["", ": np.ndarray"])
def test_what_comes_in_lists_is_no_array(given: str, hint: str) -> None:
    source = f"""
    def f(x{hint}, s):
        parts = {given}
        means = np.array([one / s for one in parts])
        return means, [x[: len(parts)] for i in parts]
    """
    source = source.replace(", [x[", ", np.array([x[").replace(
        "in parts]\n    ", "in parts])\n    "
    )
    assert_same(source, lambda: (np.arange(6.0), 2.0))


@pytest.mark.parametrize("hint", ["", ": np.ndarray"])
def test_what_has_keys_is_no_array(hint: str) -> None:
    source = f"""
    def f(ids{hint}, ordered):
        new = {{one: i for i, one in enumerate(ordered)}}
        return np.array([new[int(i)] for i in ids], dtype="int64")
    """
    assert_same(source, lambda: (np.array([3, 1, 3]), [1, 3, 5]))


def test_what_has_items_of_its_own_is_no_array() -> None:
    source = """
    class Frames:
        def __init__(self, shape):
            self.shape = shape

        def __getitem__(self, place):
            x, y = place
            return 10.0 * x + y

        def write(self, out):
            for x in range(self.shape[0]):
                for y in range(self.shape[1]):
                    out[x, y] = self[x, y]
            return out

    def f(out):
        return Frames(out.shape).write(out)
    """
    assert_same(source, lambda: (np.zeros((3, 4)),))


@pytest.mark.parametrize("points", [[[10, 1]], np.array([[10, 1]])])
@pytest.mark.parametrize("hint", ["", ": np.ndarray"])
def test_what_is_made_an_array_may_be_a_list_or_of_another_type(points: Any, hint: str) -> None:
    source = f"""
    def f(points{hint}):
        pts = np.asarray(points, dtype="double")
        out = np.ones(pts.shape[0])
        for d in range(pts.shape[1]):
            out *= pts[:, d] ** 20
        return out
    """
    assert "pts ** 20" in assert_same(source, lambda: (points,))


def test_rows_of_what_is_subscripted_once_may_be_matrices() -> None:
    source = """
    def f(a, x):
        s = 0
        for j in range(a.shape[0]):
            s += np.dot(a[j], x[j, :])
        return s
    """
    assert_same(source, lambda: (np.arange(27.0).reshape(3, 3, 3), SQUARE.copy()))


def test_three_dots_leave_the_number_of_axes_open() -> None:
    source = """
    def f(strain, omega):
        eps = np.zeros_like(omega[..., :1, :])
        for i in range(omega.shape[2]):
            eps[..., 0, 0] += omega[..., i, 0] * strain[..., i, 0]
        return eps
    """
    given = np.arange(24.0).reshape(2, 3, 4, 1)
    assert_same(source, lambda: (given.copy(), given + 1.0))


def test_along_an_axis_columns_stay_columns() -> None:
    source = """
    def f(x):
        peak = -99999
        n = 0
        for one in np.cumsum(np.insert(np.array(x), 0, 1, axis=0), axis=0):
            if one > peak:
                peak = one
            n += peak - one
        return n
    """
    assert_same(source, lambda: (SQUARE.reshape(9, 1) - 0.5,))


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(a.shape[1]):\n    a[:, i] -= x",
        "for i in range(a.shape[1]):\n    a[:, i] = np.maximum(a[:, i], x)",
        "for i in range(a.shape[1]):\n    a[:, i] = np.where(a[:, i] > x, a[:, i], 0)",
        "for i in range(a.shape[1]):\n    a[:, i] = x",
        "for i in range(a.shape[0]):\n    a[i, :] *= x",
    ],
)
def test_what_stands_beside_a_column_may_be_one(body: str) -> None:
    source = f"def f(a, x):\n{indent(body, '    ')}\n"
    assert_same(source, lambda: (SQUARE.copy(), np.array([0.3, 0.5, 0.9])))
    assert_same(source, lambda: (SQUARE.copy(), 0.5))


def test_who_takes_the_first_extents_has_more_in_mind() -> None:
    source = """
    def f(image):
        rows, columns = image.shape[:2]
        s = 0.0
        for i in range(rows):
            for j in range(columns):
                s += image[i, j]
        return s
    """
    assert_same(source, lambda: (np.arange(24.0).reshape(2, 4, 3),))


@pytest.mark.parametrize(
    "made",
    ["np.reshape(x, [2, -1])", "x.reshape(shape)", "np.zeros(shape) + x.reshape(2, 3)"],
)
def test_a_shape_may_be_of_several_axes(made: str) -> None:
    source = f"""
    def f(x, shape):
        v = {made}
        s = 0.0
        for i in range(len(v)):
            s += v[i] ** 2
        return s
    """
    assert_same(source, lambda: (np.arange(6.0), (2, 3)))


def test_a_list_of_elements_is_no_view() -> None:
    for place in ("i, i", "n - 1 - i, 0", "i, 0"):
        source = f"""
        def f(a):
            n = a.shape[0]
            return np.array([a[{place}] for i in range(n)])
        """
        after = assert_same(source, lambda: (SQUARE.copy(),))
        given = SQUARE.copy()
        made_by(after, given)[0] = 5.0
        assert (given == SQUARE).all()


def test_a_number_of_python_is_kept_where_types_are_assumed() -> None:
    source = """
    def f(x):
        out = np.zeros(x.shape[0])
        for i in range(x.shape[0]):
            out[i] = float(x[i]) ** 2 + math.exp(float(x[i]) / 256)
        return out
    """
    after = assert_same(source, lambda: (np.array([200, 255, 3], dtype=np.uint8),))
    assert "for i" not in after


def test_a_table_of_an_object_may_be_a_list() -> None:
    source = """
    class Table:
        def __init__(self, rows):
            self.rows = rows[:]
            self.n = len(rows)

        def widest(self):
            return max([sum(self.rows[i]) for i in range(self.n)])

        def pick(self, places):
            return np.array([self.rows[i] for i in places])

    def f(rows, places):
        table = Table(rows)
        return table.widest(), table.pick(places)
    """
    assert_same(source, lambda: ([[1.0, 2.0], [3.0, 4.0]], np.array([1, 0])))


def test_places_from_the_end_stay_so() -> None:
    source = """
    def f(u):
        for i in range(u.shape[0]):
            u[i, -1] = u[i, -2]
        return u
    """
    assert "u[:, -1] = u[:, -2]" in assert_same(source, lambda: (SQUARE.copy(),))


def test_no_loop_takes_the_place_of_a_function_for_short_rows() -> None:
    source = "def f(steps):\n    moves = np.cumsum(steps, axis=1)\n    return moves[:, -1, 0]\n"
    after = assert_same(source, lambda: (np.arange(24.0).reshape(2, 4, 3),))
    assert "for " not in after


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(a.shape[0]):\n    a[i] = a[i] / a[i].max()",
        "for i in range(a.shape[0]):\n    a[i] -= np.mean(a[i])",
        "for i in range(len(a)):\n    a[i] = a[i] / np.max(np.abs(a[i]))",
        "for i in range(len(a)):\n    a[i] = a[i] / np.linalg.norm(a[i])",
        "s = np.zeros(a.shape[1:])\nfor one in a:\n    s += one / one.sum()\na[:] = s",
    ],
)
def test_reductions_of_rows_go_through_matrices_too(body: str) -> None:
    source = f"def f(a):\n{indent(body, '    ')}\n    return a\n"
    assert_same(source, lambda: (np.arange(1.0, 25.0).reshape(2, 3, 4),))
    assert_same(source, lambda: (SQUARE.copy(),))


def test_an_array_of_objects_holds_arrays_of_any_length() -> None:
    source = """
    def pad(arrays, n):
        out = np.zeros((len(arrays), n))
        for i, one in enumerate(arrays):
            out[i, :len(one)] = one
        return out

    def f(lists, n):
        return pad(np.asarray([np.bincount(one) for one in lists], dtype=object), n)
    """
    assert_same(source, lambda: ([[0, 1], [0, 1, 2, 2]], 3))


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("    if x is None:\n        x = np.ones((2, 2))", [np.ones(2), np.ones(3)]),
        ("    if x[-1] != x[0]:\n        x = np.append(x, x[0])", [1.0, 2.0, 1.0]),
        ("    x = x if len(x) else np.zeros(3)", [1.0, 2.0]),
        ("    z = np.zeros(3)\n    if len(x):\n        z = x\n    x = z", [1.0, 2.0]),
    ],
)
def test_what_is_an_array_in_one_case_may_be_a_list_in_another(made: str, given: Any) -> None:
    source = "def scaled(a, v):\n    for i in range(len(a)):\n        a[i] *= v\n    return a\n"
    source += f"\ndef f(x=None):\n{made}\n    return tuple(scaled(x, 3))\n"
    assert_same(source, lambda: ([*given],))


@pytest.mark.parametrize(
    "made",
    [
        "np.asarray(x)",
        "np.ascontiguousarray(x)",
        "np.atleast_2d(x)",
        "np.nan_to_num(x, copy=False)",
        "x if n else np.zeros((n, n))",
    ],
)
def test_a_name_may_be_bound_to_the_memory_of_another(made: str) -> None:
    for body in ("x[i, j] = y[j, i] + 1", "x[i, j] = y[i - 1, j] + 2 * y[i, j]"):
        source = f"""
        def f(x):
            n, m = x.shape
            y = {made}
            for i in range(1, n):
                for j in range(m):
                    {body}
            return x
        """
        assert_same(source, lambda: (np.arange(9.0).reshape(3, 3),))


def test_a_power_of_whole_numbers_stays_of_its_type() -> None:
    source = "def f(x: np.ndarray):\n    w = x**2.0\n    return w / w.sum(), x**3.0\n"
    assert_same(source, lambda: (np.array([200, 3, 100], dtype=np.uint8),))


def test_the_first_piece_may_change_before_it_is_joined() -> None:
    source = """
    def f(n):
        state = np.zeros(3)
        path = state[None, :]
        for i in range(n):
            state += np.ones(3)
            path = np.append(path, state[None, :], axis=0)
        return path
    """
    assert_same(source, lambda: (2,))


def test_a_table_may_be_a_list_that_is_repeated() -> None:
    source = """
    class Table:
        def __init__(self, n: int, rows):
            self.n = n
            self.rows = rows * 2

        def widest(self):
            return max([sum(self.rows[i]) for i in range(self.n)])

    def f(rows):
        return Table(len(rows), rows).widest()
    """
    assert_same(source, lambda: ([[1, 2], [3, 4]],))


def test_what_is_asked_for_its_rank_has_several() -> None:
    source = """
    def by_vector(x, y):
        result = np.zeros(x.shape[0])
        for i in range(x.shape[1]):
            result += x[:, i] * y[i]
        return result

    def by_matrix(x, y):
        result = np.zeros((x.shape[0], y.shape[1]))
        for i in range(y.shape[1]):
            for j in range(x.shape[1]):
                result[:, i] += x[:, j] * y[j, i]
        return result

    def f(x, y):
        return by_vector(x, y) if y.ndim == 1 else by_matrix(x, y)
    """
    for other in (np.array([1.0, 2.0, 3.0]), SQUARE.copy()):
        assert_same(source, lambda other=other: (SQUARE.copy(), other))


def test_keywords_may_name_the_array_that_is_reduced() -> None:
    source = "def f(x):\n    least = 0.0\n    if x is not None:\n        least = np.min(a=x)\n"
    assert_same(f"{source}    return least\n", lambda: (SQUARE.copy(),))


def test_half_of_twice_as_many_are_as_many() -> None:
    source = """
    def f(one):
        n = 2 * one.shape[0]
        out = np.zeros((n, n))
        for p in range(n // 2):
            for q in range(n // 2):
                out[2 * p + 1, 2 * q] = one[p, q]
        return out
    """
    assert "out[1::2, ::2] = one" in assert_same(source, lambda: (SQUARE.copy(),))


@pytest.mark.parametrize(("sign", "word"), [("&", "all"), ("|", "any")])
def test_truths_of_all_iterations_are_combined_at_once(sign: str, word: str) -> None:
    source = f"""
    def f(d: np.ndarray, most: float):
        kept = d[0] > 0.2
        for i in range(d.shape[0]):
            kept {sign}= d[i, :] <= most
        return kept
    """
    assert f".{word}(axis=0)" in assert_same(source, lambda: (SQUARE.copy(), 0.7))
