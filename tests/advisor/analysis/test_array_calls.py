"""Calls of an array library that statements are said to make, against the calls that NumPy sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import lower
from advisor.analysis.processes import works
from advisor.frontend.kernels import read_kernels
from costdb.expr import evaluate
from costdb.work import ArrayCall, ArrayOperation, PrefixScan, Statement

SIZES = {"N": 12, "M": 9}
CLASSES = {
    "add": "binary",
    "subtract": "binary",
    "multiply": "binary",
    "maximum": "binary",
    "divide": "divide",
    "absolute": "unary",
    "negative": "unary",
    "sqrt": "root",
    "exp": "transcendental",
    "less": "compare",
}
Seen = tuple[str, int, bool]
"""Class, elements, and whether the result is an array of its own."""


class Watched(np.ndarray[Any, Any]):
    """An array that notes what is done with it."""

    seen: list[Seen]

    def __array_finalize__(self, source: Any) -> None:
        self.seen = getattr(source, "seen", [])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
        out = given.get("out")
        plain = [one.view(np.ndarray) if isinstance(one, Watched) else one for one in inputs]
        if out is not None:
            given["out"] = tuple(one.view(np.ndarray) for one in out)
        found = getattr(ufunc, method)(*plain, **given)
        if method == "__call__":
            self.seen.append((CLASSES[ufunc.__name__], found.size, out is None))
        elif method == "reduce":
            self.seen.append(("reduce", inputs[0].size, bool(np.ndim(found))))
        else:
            self.seen.append(("scan", found.size, True))
        if out is not None:
            return out[0]
        if not isinstance(found, np.ndarray):
            return found
        made = found.view(Watched)
        made.seen = self.seen
        return made

    def __getitem__(self, key: Any) -> Any:
        self.seen.append(("view", 1, False))
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self.view(np.ndarray)[key]
        place = [("view", 1, False)] * (target.size < self.size)
        if not isinstance(value, np.ndarray):
            self.seen += [*place, ("fill", np.size(target), False)]
        elif value.ctypes.data != target.ctypes.data or value.strides != target.strides:
            if target.ndim > 1 and np.may_share_memory(target, value):
                self.seen.append(("copy", target.size, True))
            self.seen += [*place, ("copy", target.size, False)]
        else:
            self.seen += place
        self.view(np.ndarray)[key] = value

    def copy(self, order: Any = "C") -> Any:
        self.seen.append(("copy", self.size, True))
        return super().copy(order)


def watched(body: list[str]) -> list[Seen]:
    """Return what NumPy is called for when statements are executed."""
    seen: list[Seen] = []
    names: dict[str, Any] = {"np": np, **SIZES}
    random = np.random.default_rng(1)
    for name in "uvw":
        array = random.uniform(1, 2, (SIZES["N"], SIZES["M"])).view(Watched)
        array.seen = seen
        names[name] = array
    exec("\n".join(body), names)
    return seen


def told(body: list[str]) -> list[Seen]:
    """Return what the advisor says that they are."""
    lines = ["import numpy as np", "# advise: kernel N=12 M=9"]
    lines += [f"# advise: {n}: f8[N, M] over (none, none) on mesh(x=1)" for n in "uvw"]
    lines.append("def program(u, v, w, N: int, M: int):")
    lines += [f"    {line}" for line in body]
    (kernel,) = read_kernels("program.py", "\n".join(lines) + "\n")
    return [
        (str(call.operation), int(evaluate(call.elements, SIZES)), call.fresh)
        for call in calls_of(lower(kernel))
    ]


def calls_of(process: Any) -> Iterator[ArrayCall]:
    for work in works(process):
        if isinstance(work, Statement | PrefixScan):
            yield from work.calls or ()


SHIFTS = ("", "[1:, :]", "[:-1, :]", "[:, 1:]", "[2:-1, 1:-1]", "[:, 2:-1]")
SHAPES = {"": "", "[1:, :]": "[:-1, :]", "[:, 1:]": "[:, :-1]", "[1:-1, 2:]": "[2:, 1:-1]"}


@st.composite
def expressions(draw: st.DrawFn, slices: tuple[str, str], depth: int = 3) -> str:
    """Return an expression whose arrays all have the shape of some slices."""
    kinds = ["array", "array"] if depth == 0 else ["array", "binary", "unary", "scalar", "function"]
    inner = expressions(slices, max(0, depth - 1))
    match draw(st.sampled_from(kinds)):
        case "array":
            return draw(st.sampled_from("uv")) + draw(st.sampled_from(slices))
        case "binary":
            return f"({draw(inner)} {draw(st.sampled_from('+-*/'))} {draw(inner)})"
        case "scalar":
            return f"(2.0 {draw(st.sampled_from('+*'))} {draw(inner)})"
        case "unary":
            return f"np.{draw(st.sampled_from(['abs', 'sqrt', 'exp']))}({draw(inner)})"
        case _:
            return f"np.maximum({draw(inner)}, {draw(inner)})"


@st.composite
def statements(draw: st.DrawFn) -> str:
    place, other = draw(st.sampled_from(sorted(SHAPES.items())))
    value = draw(expressions((place, other)))
    match draw(st.sampled_from(["store", "augmented", "bind"])):
        case "store":
            return f"w{place or '[...]'} = {value}"
        case "augmented":
            return f"w{place} {draw(st.sampled_from(['+=', '-=', '*=']))} {value}"
        case _:
            return f"made = {value} + u{place}"


@given(statements())
@settings(max_examples=80, deadline=None)
def test_generated_statements_make_the_calls_that_are_told(statement: str) -> None:
    assert told([statement]) == watched([statement])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(["w[1:, :] = w[:-1, :]"], id="a copy that overlaps"),
        pytest.param(["w[0, :] = 0.0"], id="a row filled"),
        pytest.param(["w[:, 2] = u[:, 1] * v[:, 1]"], id="columns"),
        pytest.param(["x = u.copy()"], id="a copy"),
        pytest.param(["np.add(u, v, out=w)"], id="a result given"),
        pytest.param(["w[1:, :] += u[1:, 0, None] * v[1, None, :]"], id="an outer product"),
        pytest.param(["s = np.cumsum(u, axis=0)"], id="a scan"),
        pytest.param(["s = u.sum(axis=1)"], id="a reduction"),
        pytest.param(["w[...] = u"], id="a copy into an array"),
    ],
)
def test_statements_make_the_calls_that_are_told(body: list[str]) -> None:
    assert told(body) == watched(body)


def test_what_is_compared_with_another_type_is_cast_element_by_element() -> None:
    lines = ["import numpy as np", "# advise: kernel N=12 M=9", "# advise: u: i1[N, M]"]
    lines += ["# advise: v: i8[3]", "def program(u, v, N: int, M: int):", "    w = {}", ""]
    for text, casts in {"u == v[:, None, None]": [3 * 12 * 9], "u == 1": []}.items():
        (kernel,) = read_kernels("program.py", "\n".join(lines).format(text))
        calls = [one for one in calls_of(lower(kernel)) if one.operation is ArrayOperation.CAST]
        assert [int(evaluate(one.elements, SIZES)) for one in calls] == casts


@pytest.mark.parametrize(
    "statement", ["v[i, :] = u[i, :] * 2.0 + w[i, :]", "v[:, 1:] = np.sqrt(u[:, :-1])", "t = u + w"]
)
@pytest.mark.parametrize("decorator", ["numba.njit", "numba.njit(parallel=True)"])
def test_what_is_compiled_calls_no_library(statement: str, decorator: str) -> None:
    def statements(*above: str) -> list[Statement]:
        lines = ["import numba", "import numpy as np", "# advise: kernel N=12 M=9"]
        lines += [f"# advise: {n}: f8[N, M]" for n in "uvw"]
        lines += [*above, "def program(u, v, w, N: int, M: int):", "    for i in range(N):"]
        (kernel,) = read_kernels("program.py", "\n".join([*lines, f"        {statement}", ""]))
        return [work for work in works(lower(kernel)) if isinstance(work, Statement)]

    compiled, interpreted = statements(f"@{decorator}"), statements()
    assert {work.calls for work in compiled} == {None}
    assert all(work.calls for work in interpreted)
    assert {work.operations for work in compiled} <= {work.operations for work in interpreted}


def test_a_matrix_times_its_own_transposition_is_half_the_work() -> None:
    def multiplied(statement: str) -> float:
        lines = ["import numpy as np", "# advise: kernel"]
        lines += ["# advise: u: f8[N, M]", "# advise: v: f8[N, M]", "# advise: w: f8[M, M]"]
        lines += ["def program(u, v, w, N: int, M: int):", f"    w[:] = {statement}", ""]
        (kernel,) = read_kernels("program.py", "\n".join(lines))
        found = [work for work in works(lower(kernel)) if isinstance(work, Statement)]
        (call,) = [c for work in found for c in work.calls or () if c.operation == "matmul"]
        return float(evaluate(call.elements, SIZES))

    assert multiplied("u.T @ u") * 2 == multiplied("u.T @ v")


def test_a_product_of_what_is_stretched_lives_somewhere() -> None:
    lines = ["import numpy as np", "# advise: kernel", "# advise: g: f8[A, N, N]"]
    lines += ["# advise: d: f8[A]", "def f(g, d):", "    g[0] = g[0] @ (g[1] @ (g[1] * d[0]))", ""]
    (kernel,) = read_kernels("k.py", "\n".join(lines))
    assert any(isinstance(work, Statement) for work in works(lower(kernel)))


@pytest.mark.parametrize(
    "subscripts", ["ij,kj,kl,ml->im", "ij,kj,kl->li", "ap,bq,ab->pq", "ij,jk,ki->"]
)
def test_contractions_have_the_products_of_the_path_that_numpy_chooses(subscripts: str) -> None:
    arrays = [np.ones((100, 100))] * (1 + subscripts.count(","))
    path = np.einsum_path(subscripts, *arrays, optimize="greedy")[1]
    lines = ["import numpy as np", "# advise: kernel", "# advise: u: f8[N, N]", "def program(u):"]
    lines += [f"    return np.einsum({subscripts!r}{', u' * len(arrays)}, optimize=True)", ""]
    (kernel,) = read_kernels("program.py", "\n".join(lines))
    made = [one for one in calls_of(lower(kernel)) if one.length is not None]
    products = sum(int(evaluate(one.elements * one.length, {"N": 100})) for one in made)
    assert (len(made), f"count:  {2 * products:.3e}" in path) == (len(arrays) - 1, True), path
