"""One expression has one meaning: in a kernel, in an MPI program, and in NumPy, which is asked.

Shapes and element types are NumPy's own. Where both readers price what is computed, it is the
same calls of the array library on as many elements, and the same steps of the interpreter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.analysis.spmd.lower import lower_steps
from advisor.frontend.kernels import read_kernels
from advisor.ir.statements import Unknown, walk
from costdb.expr import Expr, evaluate
from costdb.work import ArrayOperation, Interpretation, Process, Statement
from costdb.work import Unknown as NotPriced
from tests.numpy_readers import (
    DTYPES,
    Arrays,
    Found,
    by_kernel,
    by_numpy,
    by_program,
    kernel_source,
    made,
)
from tests.spmd.reading import program, works

K, X = 7, 0.75
"""What a program knows of a number, and a kernel does not, makes no difference to these."""
SIZES = {"N": 24, "M": 29}
NUMBERS_GIVEN = {**SIZES, "k": K, "x": X}
"""No slice below has a single index but where it is written so: that would be broadcast."""
SHAPES = {"a": ("N", "M"), "b": ("N", "M"), "v": ("M",), "w": ("N",), "p": ("M",)}
PLACES = "p"
"""Whole numbers, by which elements are chosen."""

Types = Mapping[str, str]

# Expressions.

AXES = st.sampled_from(["0", "1", "-1", "-2", "None", "2"])
BOUNDS = st.sampled_from(["", "0", "1", "2", "-1", "-2", "k", "-k", "-0", "N - k"])
STEPS = st.sampled_from(["1", "2", "3", "-1"])
NAMES = st.sampled_from(["a", "b", "v", "w"])
NUMBERS = st.sampled_from(["1", "2", "2.5", "k", "x", "0.5", "np.pi", "3 / 2", "7 // 2", "-k"])
UNARY = (
    *("-{0}", "np.abs({0})", "np.sqrt({0})", "np.exp({0})", "np.square({0})", "~{0}", "abs({0})"),
    *(f"np.{name}({{0}})" for name in ("log1p", "tanh", "sign", "conj", "isnan", "logical_not")),
    *("np.clip({0}, 1, 2)", "{0}.clip(1, 2)", "np.diff({0})", "np.rint({0})", "np.floor({0})"),
    *("np.fft.fft2({0})", "np.einsum('ij,kj->ik', {0}, {0})"),
)
BINARY = (
    *(f"({{0}} {sign} {{1}})" for sign in ("+", "-", "*", "/", "//", "%", "**", "&", "<", "==")),
    *(f"np.{name}({{0}}, {{1}})" for name in ("maximum", "add", "true_divide", "mod", "power")),
    *(f"np.{name}({{0}}, {{1}})" for name in ("hypot", "arctan2", "fmax", "logical_and")),
    "np.where({0} > 1, {0}, {1})",
)
PRODUCTS = ("({0} @ {1})", "np.dot({0}, {1})", "np.inner({0}, {1})", "np.vdot({0}, {1})")
OTHERS = (
    *("{0}.copy()", "{0}.astype(np.float32)", "{0}.astype(int)", "np.copy({0})", "np.array({0})"),
    *("{0}.T", "np.zeros_like({0})", "np.full_like({0}, 3)", "np.ones({0}.shape, dtype=np.int8)"),
    *("np.sort({0})", "np.full((N, k), 2)", "np.full(N, 2.0)", "np.empty((2, 3))", "{0}[::-1]"),
    *("{0}[...]", "{0}[None, :]", "{0}[:, None]", "np.outer({0}, {0})", "{0} @ {0}.T"),
    *("np.sum({0})", "{0}[None, ..., 0]", "{0}[::-1, None]", "{0}[..., ::-1]", "{0}.T[::-1]"),
)
ALONG = (
    *(f"{{0}}.{name}(axis={{1}})" for name in ("sum", "max", "mean", "cumsum", "prod")),
    *(f"np.{name}({{0}}, {{1}})" for name in ("sum", "min", "cumprod")),
    *("np.roll({0}, 2, axis={1})", "np.roll({0}, k, {1})", "{0}.sum({1}, dtype=np.int8)"),
    *("np.sort({0}, axis={1})", "np.linalg.norm({0}, axis={1})", "{0}.sum({1}, keepdims=True)"),
    *(f"np.{name}({{0}}, axis={{1}})" for name in ("std", "var", "ptp", "any", "argmin")),
    *("np.count_nonzero({0}, axis={1})", "{0}.max(axis={1}, keepdims=True)"),
    "{0}.mean(axis=({1}, 0))",
)


def expressions(depth: int) -> st.SearchStrategy[str]:
    leaves = NAMES
    for _ in range(depth):
        inner = leaves
        leaves = st.one_of(
            inner,
            st.builds(str.format, st.sampled_from(UNARY), inner),
            st.builds(str.format, st.sampled_from(BINARY), inner, st.one_of(inner, NUMBERS)),
            st.builds(str.format, st.sampled_from(BINARY), NUMBERS, inner),
            st.builds(str.format, st.sampled_from(PRODUCTS), inner, inner),
            st.builds(str.format, st.sampled_from(OTHERS), inner),
            st.builds(str.format, st.sampled_from(ALONG), inner, AXES),
            st.builds("{}[{}:{}]".format, NAMES, BOUNDS, BOUNDS),
            st.builds("{}[{}:{}, {}:]".format, NAMES, BOUNDS, BOUNDS, BOUNDS),
            st.builds("{}[{}:{}:{}]".format, NAMES, BOUNDS, BOUNDS, STEPS),
            st.builds("{}[::{}, {}::{}]".format, NAMES, STEPS, BOUNDS, STEPS),
            st.builds("{}[{}]".format, NAMES, st.sampled_from(["0", "-1", "k", ":, 1", "1, -2"])),
            st.builds("{}[{}]".format, NAMES, st.sampled_from(["p", "p, p"])),
        )
    return leaves


TYPES = st.fixed_dictionaries(
    {name: st.sampled_from(DTYPES) for name in SHAPES if name != PLACES}
).map(lambda found: {**found, PLACES: "int64"})


# What NumPy, a program and a kernel make of them.


def arrays_of(dtypes: Types) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {name: (dtypes[name], shape) for name, shape in SHAPES.items()}


def values_of(dtypes: Types) -> dict[str, object]:
    values: dict[str, object] = dict(NUMBERS_GIVEN)
    for name, shape in SHAPES.items():
        extents = tuple(SIZES[size] for size in shape)
        numbers = np.arange(1, int(np.prod(extents)) + 1) % 3
        values[name] = (numbers + (name != PLACES)).reshape(extents).astype(dtypes[name])
    return values


# What it costs.


def called(process: Process) -> Counter[Hashable] | None:
    """Return the calls and the steps of the interpreter that work is; None where some is unknown.

    Making a view is none: programs have it where it is written, kernels where it is used.
    """
    if list(works(process, NotPriced)):
        return None

    def at(expr: Expr | None) -> float | None:
        return None if expr is None else round(float(evaluate(expr, {**SIZES, "k": K})), 6)

    calls = (call for one in works(process, Statement) for call in one.calls or ())
    found: Counter[Hashable] = Counter(
        (call.operation, call.dtype, at(call.elements), at(call.length), call.axis_from_last)
        for call in calls
        if call.operation is not ArrayOperation.VIEW
    )
    for one in works(process, Interpretation):
        for what in ("loads", "stores", "calls"):
            found[what] += getattr(one, what) * int(at(one.iterations) or 0)
    return +found


def priced_in_program(statement: str, dtypes: Types) -> Counter[Hashable] | None:
    lines = (made(arrays_of(dtypes), NUMBERS_GIVEN) + statement).splitlines()
    inner = "".join(f"    {line}\n" for line in lines)
    read = program(f"def f():\n{inner}    comm.Barrier()\nf()\n")
    return called(lower_steps(read.functions[0].body).process)


def priced_in_kernel(statement: str, dtypes: Types) -> Counter[Hashable] | None:
    (kernel,) = read_kernels("k.py", kernel_source([statement], arrays_of(dtypes), NUMBERS_GIVEN))
    if any(isinstance(one, Unknown) for one in walk(kernel.body)):
        return None
    try:
        return called(lower(kernel))
    except Unpriced:
        return None


def agree(told: Mapping[str, Found], arrays: Arrays) -> Iterator[tuple[bool, bool]]:
    """Assert that what is told of expressions is so; yield whether each reader knows it."""
    doors_of = (look([*told], arrays, NUMBERS_GIVEN) for look in (by_program, by_kernel))
    for (text, real), doors in zip(told.items(), zip(*doors_of, strict=True), strict=True):
        assert real is not None
        for found in doors:
            if found is not None:
                assert found[1] == real[1], (text, found, real)
                assert found[0] in (None, real[0]), (text, found, real)
        yield doors[0] is not None, doors[1] is not None


NUMBERS_OF_ARRAYS = (
    *("2.5 + v[0]", "v[0] / w[0]", "k * v[0]", "v[0] - x", "2.5 + (w @ w)", "np.sum(v) / 2"),
    *("v[0] * a[1, 1]", "np.max(v) + 1", "np.mean(w) * w[0]"),
)


@pytest.mark.parametrize("text", NUMBERS_OF_ARRAYS)
def test_numbers_out_of_arrays_have_the_types_that_numpy_gives_them(text: str) -> None:
    """Of every two types, each under a name of its own."""
    arrays: dict[str, tuple[str, tuple[str, ...]]] = {}
    values: dict[str, object] = dict(NUMBERS_GIVEN)
    for dtype in DTYPES:
        kinds = {**dict.fromkeys(SHAPES, dtype), PLACES: "int64"}
        arrays |= {f"{name}_{dtype}": of for name, of in arrays_of(kinds).items()}
        values |= {f"{name}_{dtype}": value for name, value in values_of(kinds).items()}
    spelled = []
    for one, other in product(DTYPES, repeat=2):
        form = re.sub(r"\b([avw])\b", r"\1_{\1}", text)
        spelled.append(form.format(a=other, v=one, w=other))
    told = {one: real for one in spelled if (real := by_numpy(one, values)) is not None}
    assert len(list(agree(told, arrays))) > 50 or len(told) <= len(DTYPES)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(2), TYPES)
def test_what_is_told_of_an_expression_is_what_numpy_does(text: str, dtypes: Types) -> None:
    real = by_numpy(text, values_of(dtypes))
    if real is None:
        return
    list(agree({text: real}, arrays_of(dtypes)))
    ones, others = (look(f"r = {text}", dtypes) for look in (priced_in_program, priced_in_kernel))
    if ones is not None and others is not None and not differs(text):
        assert ones == others, text


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        ("a[:, 1:].cumsum()", True),
        ("a[:, 1:].ravel()", True),
        ("np.cumsum(a[::2])", True),
        ("v[::2].ravel()", True),
        ("v[::2].reshape(-1)", False),
        ("a[1:].ravel()", False),
        ("a.cumsum(axis=None)", False),
    ],
)
def test_what_does_not_lie_in_a_row_is_copied_into_one(text: str, copies: bool) -> None:
    dtypes = {**dict.fromkeys(SHAPES, "float64"), PLACES: "int64"}
    if "cumsum" not in text:
        values = values_of(dtypes)
        made = eval(text, {"np": np, **values})
        shared = [np.shares_memory(made, one) for name, one in values.items() if name in SHAPES]
        assert any(shared) != copies
    for priced in (priced_in_program, priced_in_kernel):
        calls = priced(f"r = {text}", dtypes)
        assert calls is not None
        assert any(call[0] is ArrayOperation.COPY for call in calls) == copies


def differs(text: str) -> bool:
    """Return whether an expression is one of which kernels are known to say something else.

    A transposition that has a name counts as copied there.
    """
    return ".T" in text


@pytest.mark.parametrize("dtype", DTYPES)
def test_most_of_the_language_is_understood_by_both(dtype: str) -> None:
    """The comparisons above would hold of nothing if nothing were understood."""
    dtypes = {**dict.fromkeys(SHAPES, dtype), PLACES: "int64"}
    texts = [form.format("a", "b") for form in (*UNARY, *BINARY, *OTHERS)]
    texts += [form.format("a", "1") for form in ALONG]
    values = values_of(dtypes)
    told = {text: real for text in texts if (real := by_numpy(text, values)) is not None}
    known = list(agree(told, arrays_of(dtypes)))
    for door in zip(*known, strict=True):
        assert sum(door) >= 0.9 * len(known)


STORES = """
a[1:3] = b[1:3]; a[:] = b; a[...] = 0; a[1] = 2.5; a[2, 3] = 1; a += b; a *= 2; a **= 2; p[1:] = 3
a[1:3] += b[1:3]; a[1:3] += 1; a[:, 1] -= w; v[p] = 0; w[p] = v; a[a > 0] = 0; a[0] = np.sin(b[0])
np.add(a, b, out=a); np.multiply(a, b, out=b); np.sqrt(a, out=a); a[::2] = 0; a[k:] = b[: N - k]
r = sum(v); r = max(v); r = sorted(v); r = a[a > 0]; r = (a > 0) & (b > 0); r = (a + b) * 2 - a
r = a ** 0.5; r = a.mean(axis=0) - v; r = np.exp(-a * a); r = v[p]; r = a * a.sum()
"""


@pytest.mark.parametrize("statement", STORES.strip().replace("\n", "; ").split("; "))
def test_statements_cost_the_same(statement: str) -> None:
    dtypes = {**dict.fromkeys(SHAPES, "float64"), PLACES: "int64"}
    in_program = priced_in_program(statement, dtypes)
    assert in_program is not None
    without = priced_in_program("pass", dtypes)
    assert in_program - (without or Counter()) == priced_in_kernel(statement, dtypes)
