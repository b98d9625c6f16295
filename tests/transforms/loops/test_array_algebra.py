"""ADV505: values come to the same in other words, also for data that sorts and sums trip over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.finding import Applicability
from advisor.source import apply_edits
from tests.transforms.checks import only_kernel
from transforms.loops.array_algebra import TRANSFORM

HEAD = """\
import numpy as np

# advise: kernel
# advise: a: {t}[N, N]
# advise: b: {t}[N, N]
# advise: x: {t}[N]
# advise: y: {t}[N]
# advise: alpha: {number}
def f(a, b, x, y, alpha):
    {line}
"""
WRITTEN = [
    # linear algebra
    ("return np.linalg.inv(a) @ x", "return np.linalg.solve(a, x)"),
    ("return np.dot(np.linalg.inv(a + b), b)", "return np.linalg.solve(a + b, b)"),
    ("return b @ np.linalg.inv(a)", "return np.linalg.solve(a.T, b.T).T"),
    ("return x @ np.linalg.inv(a)", "return np.linalg.solve(a.T, x)"),
    (
        "p = np.argsort(x)\n    y[p] = np.linalg.inv(a) @ x",
        "p = np.argsort(x)\n    y[p] = np.linalg.solve(a, x)",
    ),
    ("return np.linalg.inv(a)", None),
    ("return np.linalg.inv(a) * x", None),
    (
        "c = np.linalg.inv(a)\n    return c @ x + 1.0",
        "return np.linalg.solve(a, x) + 1.0",
    ),
    ("c = np.linalg.inv(a)\n    return c @ x + c[0]", None),
    ("c = np.diag(x * x)\n    return a.T @ c @ a", "return (a.T * (x * x)) @ a"),
    ("c = np.diag(x)\n    return c @ y", "return x * y"),
    (
        "for k in range(3):\n        c = np.diag(x + k)\n        y += c @ x",
        "for k in range(3):\n        y += (x + k) * x",
    ),
    ("c = np.diag(x)\n    return c @ y + c[0]", None),
    ("c = np.diag(x)\n    x[0] = 2.0\n    return c @ y", None),
    ("c = b\n    for k in range(3):\n        y += c @ x\n        c = np.diag(x)", None),
    ("for k in range(3):\n        c = np.diag(x)\n        y += c @ x\n    return c", None),
    ("c = np.linalg.inv(a)\n    a[0] = x\n    return c @ x", None),
    ("return a @ b @ x", "return a @ (b @ x)"),
    ("return np.dot(np.dot(a, b), x)", "return a @ (b @ x)"),
    ("return x @ (a @ b)", "return (x @ a) @ b"),
    ("return a @ b @ a @ x", "return a @ (b @ (a @ x))"),
    ("return a @ (b @ x)", None),
    ("return np.diag(x) @ a", "return x[:, None] * a"),
    ("return a @ np.diag(x + y)", "return a * (x + y)"),
    ("return np.diag(x) @ y", "return x * y"),
    ("return np.trace(a @ b)", "return (a * b.T).sum()"),
    # parts of products
    ("return np.diag(a @ b @ a.T)", "return ((a @ b) * a).sum(axis=1)"),
    ("return np.diagonal(a - b.T @ b) + x", "return (a.diagonal() - (b.T * b.T).sum(axis=1)) + x"),
    (
        "c = b + a @ b\n    return np.sqrt(np.abs(np.diag(c))) + alpha",
        "return np.sqrt(np.abs(b.diagonal() + (a * b.T).sum(axis=1))) + alpha",
    ),
    ("c = a.T @ b\n    return c[:, 1] / alpha", "return (a.T @ b[:, 1]) / alpha"),
    ("c = a @ b @ a\n    return c[-1] + 1", "return ((a[-1, :] @ b) @ a) + 1"),
    ("y[:] = (a @ b)[1]", "y[:] = a[1, :] @ b"),
    ("c = a @ b\n    a[0] = x\n    return np.diag(c)", None),
    ("c = a @ b\n    return np.diag(c) + c[0], c", None),
    ("return np.diag(a * b)", None),
    ("return np.diag(a @ b, 1)", None),
    # scaled matrices
    ("return alpha * a @ x", "return alpha * (a @ x)"),
    ("return a / alpha @ x", "return (a @ x) / alpha"),
    ("y[:] = y @ (2.5 * a) @ x - x[0]", "y[:] = (2.5 * (y @ a)) @ x - x[0]"),
    ("y += (2.5 * a) @ x", "y += 2.5 * (a @ x)"),
    ("return np.sqrt(-a @ x * a @ x)", None),
    ("return alpha / a @ x", None),
    ("return alpha * x @ a.T", None),
    ("return y[:, None] * a @ x", None),
    # contractions
    (
        "return 2 * np.einsum('ij, jk, kl -> il', a, b, a + b,)",
        "return 2 * np.einsum('ij, jk, kl -> il', a, b, a + b, optimize=True)",
    ),
    (
        "return np.einsum('i,ij,j->', x, a, y)",
        "return np.einsum('i,ij,j->', x, a, y, optimize=True)[()]",
    ),
    (
        "return np.einsum('ap,bq,ab,ac->pqc', a, b, a, b)",
        "return np.einsum('ap,bq,ab,ac->pqc', a, b, a, b, optimize=True)",
    ),
    (
        "y += np.einsum('ij,ij,j->i', a, b, x)",
        "y += np.einsum('ij,ij,j->i', a, b, x, optimize=True)",
    ),
    ("return np.einsum('ij,jk,kl->il', a, b, a, optimize=True)", None),
    ("return np.einsum('ij,jk->ik', a, b)", "return a @ b"),
    ("return np.einsum('ji,jk->ik', a, b)", "return a.T @ b"),
    ("return np.einsum('ij,kj->ik', a, b) / alpha", "return (a @ b.T) / alpha"),
    ("return np.einsum('ij,j->i', a, x)", "return a @ x"),
    ("return np.einsum('i,ij->j', x, a)", "return x @ a"),
    ("return np.einsum('i,ij,j->', x, a, y, optimize=True)", None),
    ("return np.einsum('ij,ji->i', a, b)", None),
    ("return np.einsum('ii,ij->j', a, b)", None),
    # outer products
    (
        "a += np.outer(x, y) + np.outer(y, x)",
        "a += np.column_stack((x, y)) @ np.vstack((y, x))",
    ),
    (
        "return b - alpha * np.outer(x, x) + y[:, None] * x / 2.0 - a",
        "return (np.column_stack((-(x * alpha), y / 2.0)) @ np.vstack((x, x)) + b) - a",
    ),
    ("a += np.outer(x, y)", None),
    ("a += np.outer(x, y) * np.outer(y, x)", None),
    ("a += x * y + np.outer(x, x)", None),
    # sums
    ("return np.sum(x * y)", "return np.dot(x, y)"),
    ("return (x**2).sum() + 1", "return np.dot(x, x) + 1"),
    ("return np.sqrt(np.sum(a * b))", "return np.sqrt(np.vdot(a, b))"),
    ("return np.sum(a * np.outer(x, y))", "return (x @ a) @ y"),
    ("return (x[:, None] * y / alpha * a).sum() + 1", "return (((x / alpha) @ a) @ y) + 1"),
    (
        "return np.sum(a * np.outer(x, y), axis=1)",
        'return np.einsum("ij,ij->i", a, np.outer(x, y))',
    ),
    ("return np.sqrt(np.sum(a**2, axis=1))", 'return np.sqrt(np.einsum("ij,ij->i", a, a))'),
    ("return (a * b).sum(axis=-1) / alpha", 'return np.einsum("ij,ij->i", a, b) / alpha'),
    ("return np.sum((a - b) ** 2, axis=1)", None),
    ("return np.sum(a**2, axis=0)", None),
    ("return np.sum(np.arange(3) * np.outer(x, y))", None),
    ("return np.sum(a * x, axis=1)", "return a @ x"),
    ("return np.sum(a * x, axis=0)", None),
    ("return np.sum(x * 2.0)", None),
    (
        "return ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)",
        "return np.maximum((a * a).sum(axis=1, keepdims=True) + (b * b).sum(axis=1)"
        " - 2 * (a @ b.T), 0)",
    ),
    (
        "return np.square(b - a[:, None]).sum(axis=-1) + alpha",
        "return np.maximum((a * a).sum(axis=1, keepdims=True) + (b * b).sum(axis=1)"
        " - 2 * (a @ b.T), 0) + alpha",
    ),
    # a row has no distance from itself, and other axes are no pairs of rows
    ("return ((a[:, None, :] - a[None, :, :]) ** 2).sum(axis=2)", None),
    ("return ((a[1:, None, :] - a[None, :-1, :]) ** 2).sum(axis=2)", None),
    ("return ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=1)", None),
    ("return np.abs(a[:, None, :] - b[None, :, :]).sum(axis=2)", None),
    ("return np.sum(x > y) + 1", "return np.count_nonzero(x > y) + 1"),
    # Python's numbers raise where something is divided by 0
    ("return alpha / np.sum(x > y)", None),
    ("n = np.sum(x > y); return alpha / n", None),
    ("return sum(x) / 2", "return x.sum() / 2"),
    ("return max(x + y)", "return (x + y).max()"),
    ("return np.apply_along_axis(np.sum, 0, a)", "return a.sum(axis=0)"),
    ("return np.apply_along_axis(np.mean, -1, a)", "return a.mean(axis=1)"),
    ("return np.apply_along_axis(np.argmax, 1, a)", None),
    ("return x**3 + y", "return (x * x * x) + y"),
    ("return x**4 + y", "return (x ** 2) ** 2 + y"),
    ("return y * x**12", "return y * ((x * x * x) ** 2) ** 2"),
    ("return x**7", "return (x * x * x) ** 2 * x"),
    ("return x**1.5 + y", "return (x * np.sqrt(x)) + y"),
    ("return x**-2.5", "return 1.0 / (x ** 2 * np.sqrt(x))"),
    ("return x**-0.5", "return 1.0 / np.sqrt(x)"),
    ("return (x + y) ** 4", "return ((x + y) ** 2) ** 2"),
    ("return (x + y) ** 3", "base = x + y\n    return base * base * base"),
    ("y += (x * x + 1.0) ** 1.5", "base = x * x + 1.0\n    y += base * np.sqrt(base)"),
    *((f"return x**{power}", None) for power in ("2", "0.5", "1", "-1", "0", "17", "0.25", "y")),
    ("return alpha**3", None),
    # sorts
    ("return np.sort(x)[0]", "return np.fmin.reduce(x)"),
    ("return np.sort(x)[-1]", "return x.max()"),
    ("return np.sort(x)[2]", "return np.partition(x, 2)[2]"),
    ("return np.sort(x)[-2:]", "return np.sort(np.partition(x, -2)[-2:])"),
    ("return np.sort(x)[::-1][:2]", "return np.sort(np.partition(x, -2)[-2:])[::-1]"),
    ("return np.sort(x)[:2]", "return np.sort(np.partition(x, 2 - 1)[:2])"),
    ("return sorted(x)[1]", "return np.partition(x, 1)[1]"),
    ("return np.argsort(x)[-1]", "return x.argmax()"),
    ("return np.argsort(x, kind='stable')", None),
    (
        "s = sorted(x)\n    n = len(s)\n    return (s[n // 2 - 1] + s[n // 2]) / 2",
        "s = np.partition(x, [a.shape[0] // 2 - 1, a.shape[0] // 2])\n    n = len(s)\n"
        "    return (s[n // 2 - 1] + s[n // 2]) / 2",
    ),
    ("s = sorted(x)\n    return s * 2", None),
    # what is rounded otherwise may be on the other side
    ("if np.sqrt(np.sum(x * x)) <= alpha:\n        y[0] = alpha", None),
    ("y[0] = np.sum(x * x) > alpha", None),
    ("s = np.sort(x)\n    return s[1] + s.sum()", None),
    # what is only known further down says nothing of where to part it
    ("s = np.sort(x)\n    for i in range(3):\n        x[i] = s[i] * 2\n    return x", None),
    (
        "for i in range(3):\n        s = np.sort(x * i)\n        x[i] = s[i + 1]\n    return x",
        "for i in range(3):\n        s = np.partition(x * i, i + 1)\n        x[i] = s[i + 1]\n"
        "    return x",
    ),
]
_NO_NAN = ("sorted", "max(", "argsort")


@pytest.mark.parametrize(("line", "wanted"), WRITTEN)
def test_values_are_written_in_other_words(line: str, wanted: str | None) -> None:
    source = HEAD.format(t="f8", number="float", line=line)
    found = [one for one in TRANSFORM.propose(only_kernel(source)) if one.edits()]
    if wanted is None:
        assert not found
        return
    texts = [apply_edits(source, one.edits()) for one in found]
    assert source.replace(line, wanted) in texts
    assert {one.legality.applicability for one in found} == {Applicability.UNSAFE}
    for text in texts:
        for data in _data(nan="sort" in line and not any(one in line for one in _NO_NAN)):
            one, other = (_run(program, data) for program in (source, text))
            for before, after in zip(one, other, strict=True):
                np.testing.assert_allclose(after, before, 1e-9, 1e-9)


def _data(*, nan: bool) -> list[dict[str, Any]]:
    random = np.random.default_rng(1)
    made = []
    for n in (2, 5, 6):
        a, b = (random.standard_normal((n, n)) + n * np.eye(n) for _ in range(2))
        made.append({"a": a, "b": b, "x": random.standard_normal(n), "y": np.ones(n)})
    made = made[1:] + [one for one in made[:1] if not nan]
    if nan:
        with_nan = {name: array.copy() for name, array in made[0].items()}
        with_nan["x"][[1, 3]] = np.nan
        made.append(with_nan)
    # as many as are selected, and repeated values
    made.append(made[0] | {"x": np.array([1.0, -2.0, 7.0, 1.0, 0.5])})
    return made


def _run(text: str, data: dict[str, Any]) -> tuple[Any, Any]:
    names, given = dict[str, Any](), {name: array.copy() for name, array in data.items()}
    exec(compile(text, "program.py", "exec"), names)
    # roots and powers of negative numbers are NaN in both
    with np.errstate(all="ignore"):
        returned = names["f"](**given, alpha=1.25)
    return given["y"], given["y"] if returned is None else returned


@pytest.mark.parametrize(("dtype", "number"), [("i8", "int"), ("f4", "f8")])
def test_whole_numbers_and_wider_ones_stay(dtype: str, number: str) -> None:
    source = HEAD.format(t=dtype, number=number, line="return alpha * a @ x")
    assert not [one for one in TRANSFORM.propose(only_kernel(source)) if one.edits()]


@pytest.mark.parametrize(
    "line",
    [
        "np.sum(x * y)",
        "x**3",
        "x**-2.5",
        "np.trace(a @ b) / 2",
        "np.diag(a - a @ b)",
        "(a @ b)[1]",
        "max(x)",
        "np.sort(x)[0]",
        "np.sum(a * b)",
        "np.einsum('i,ij,j->', x, a, y)",
        "np.einsum('ij,ik,kl->jl', a, b, a)",
    ],
)
def test_element_types_stay(line: str) -> None:
    """Sums of whole numbers are widened, products are not."""
    for dtype in ("i4", "u1", "f4", "f2", "c16", "bool"):
        source = HEAD.format(t=dtype, number="int", line=f"return {line}")
        for one in TRANSFORM.propose(only_kernel(source)):
            after = apply_edits(source, one.edits())
            kinds = np.dtype(dtype)
            data: dict[str, Any] = {
                name: (np.arange(shape[0] * shape[-1]) % 9).astype(kinds)[: shape[0]]
                if len(shape) == 1
                else (np.arange(25) % 9).astype(kinds).reshape(shape)
                for name, shape in {"a": (5, 5), "b": (5, 5), "x": (5,), "y": (5,)}.items()
            }
            before, changed = (_run(text, data)[1] for text in (source, after))
            assert np.asarray(before).dtype == np.asarray(changed).dtype
            np.testing.assert_allclose(changed, before, 1e-3)


LOOP = "for k in range(N):\n        "
FACTORISED = {
    f"{LOOP}y[:] = np.linalg.solve(a, x + k)\n        x[k] = y[0]": True,
    f"{LOOP}c = a + alpha * b\n        y[:] = np.linalg.solve(c, y)": True,
    f"{LOOP}for j in range(3):\n            y[:] = np.linalg.solve(a, y)": True,
    "while alpha < 9.0:\n        y[:] = np.linalg.solve(a, y)\n        alpha *= 2.0": True,
    "y[:] = np.linalg.solve(a, x)": False,
    f"{LOOP}y[:] = np.linalg.solve(a, y)\n        a[k, k] += 1.0": False,
    f"{LOOP}c = a + k * b\n        y[:] = np.linalg.solve(c, y)": False,
    f"{LOOP}y[:] = np.linalg.solve(a + b * y, y)": False,
    f"{LOOP}c = a * 1.0\n        c[k] *= 2.0\n        y[:] = np.linalg.solve(c, y)": False,
    f"c = a\n    {LOOP}y[:] = np.linalg.solve(c, y)\n        c = c + b": False,
}


@pytest.mark.parametrize("line", FACTORISED)
def test_a_matrix_that_stays_in_a_loop_is_factorised_once(line: str) -> None:
    """Only where every iteration has the same one, as a run shows."""
    source = HEAD.format(t="f8", number="float", line=line.replace("range(N)", "range(len(a))"))
    found = [one for one in TRANSFORM.propose(only_kernel(source)) if "factorise" in one.title]
    assert len(found) == FACTORISED[line]
    assert all(one.legality.applicability is Applicability.DISPLAY for one in found)
    assert all(("second iteration" in one.title) == ("while" in line) for one in found)
    seen: list[Any] = []
    recorded = source.replace("np.linalg.solve(", "solve(").replace("import numpy as np", "", 1)
    names: dict[str, Any] = {"np": np}
    names["solve"] = lambda one, other: seen.append(one.copy()) or np.linalg.solve(one, other)
    exec(compile(recorded, "program.py", "exec"), names)
    data = {name: array.copy() for name, array in _data(nan=False)[0].items()}
    names["f"](**data, alpha=1.25)
    assert FACTORISED[line] == (len(seen) > 1 and all(np.array_equal(seen[0], o) for o in seen))


@pytest.mark.parametrize("dtype", ["i4", "i8"])
@pytest.mark.parametrize(
    ("line", "then"),
    [
        ("return a @ b", "return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.{})"),
        ("return a.T @ b @ a + 1", ".astype(np.{}) + 1"),
        ("return np.dot(a, b)[0]", ".astype(np.{})[0]"),
    ],
)
def test_products_of_integers_are_multiplied_by_blas(dtype: str, line: str, then: str) -> None:
    source = HEAD.format(t=dtype, number="i8", line=line)
    made = [p for p in TRANSFORM.propose(only_kernel(source)) if "floating" in p.title]
    (text,) = {apply_edits(source, one.edits()) for one in made[:1]}
    assert then.format({"i4": "int32", "i8": "int64"}[dtype]) in text
    random = np.random.default_rng(4)
    a, b = random.integers(-99, 99, (2, 9, 9)).astype(dtype)
    results = []
    for one in (source, text):
        space: dict[str, Any] = {}
        exec(compile(one, "a.py", "exec"), space)
        results.append(space["f"](a, b, None, None, None))
    assert np.array_equal(*results) and results[0].dtype == results[1].dtype


@pytest.mark.parametrize("dtype", ["f8", "bool", "u1"])
def test_products_of_other_types_are_left(dtype: str) -> None:
    source = HEAD.format(t=dtype, number="i8", line="return a @ b")
    made = TRANSFORM.propose(only_kernel(source))
    assert not [one for one in made if "floating" in one.title]
