"""What NumPy's functions mean: the same in a kernel, in an MPI program and in NumPy itself."""

from __future__ import annotations

import inspect
import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from advisor.numpy_functions import SIZE_AT, TYPED
from advisor.numpy_table import (
    ELEMENTWISE,
    PARAMETERS,
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    REDUCTIONS,
    ROWS,
    SAME_AS,
    SCANS,
    promote,
    result_dtype,
)
from tests.numpy_readers import DTYPES, Arrays, by_kernel, by_numpy, by_program

SHAPES: dict[str, tuple[int, ...]] = {
    **{"a": (4, 6), "b": (4, 6), "c": (6, 5), "g": (6, 6)},
    **{"v": (6,), "w": (6,), "i": (6,)},
}
REDUCED = [name for name, row in REDUCTIONS.items() if name != "linalg.norm"]
OF_ALL = ("", "axis=0", "axis=1", "axis=-1", "axis=None", "keepdims=True", "axis=0, keepdims=True")
MORE_AXES = ("axis=(0, 1)", "axis=(1, 0), keepdims=True", "axis=(-1,)", "axis=1, keepdims=False")
OTHERS = (Path(__file__).parent / "data" / "numpy_forms.txt").read_text("utf-8").splitlines()


_STATED = "df=3.0 n=7 p=0.5 left=1.0 right=3.0 ngood=7 nbad=5 nsample=4 low=0 high=9"
VALUES = dict(pair.split("=") for pair in _STATED.split())


def parameters(name: str) -> list[str]:
    return list(inspect.signature(getattr(np.random.default_rng(1), name)).parameters)


MODERN = sorted(name for name in SIZE_AT if hasattr(np.random.default_rng(1), name))


def drawn() -> Iterator[str]:
    """Yield draws of random numbers, whose size is stated by place, by keyword, or not."""
    for name in MODERN:
        given = [VALUES.get(one, "2.0") for one in parameters(name)[: SIZE_AT[name]]]
        legacy = "randint" if name == "integers" else name
        for size in ((), ("(3, 5)",), ("size=4",)):
            yield f"np.random.{legacy}({', '.join([*given, *size])})"
    yield from ("np.random.rand(2, 3)", "np.random.randn(4)", "np.random.randint(9, size=3)")
    yield from ("np.random.permutation(5)", "np.random.permutation(a)")
    yield from ("np.random.choice(5)", "np.random.choice(5, size=(2, 3))")
    yield from ("np.random.choice(a.ravel(), 4)", "np.random.choice(a[0], 4, False)")


@pytest.mark.parametrize("name", MODERN)
def test_the_size_stands_where_numpy_has_it(name: str) -> None:
    assert parameters(name).index("size") == SIZE_AT[name]
    assert ("dtype" in parameters(name)) == (name in TYPED)


def forms(dtype: str) -> Iterator[str]:
    """Yield calls; for one type also what does not hang on types: shapes by axis, what is drawn."""
    of_one = dtype == "float64"
    if of_one:
        yield from drawn()
    for name in REDUCED:
        keywords = OF_ALL if of_one else ("", "axis=0")
        yield from (f"np.{name}({of}{', ' * bool(k)}{k})" for of in "av" for k in keywords)
        yield from (f"np.{name}(a, {given})" for given in MORE_AXES if of_one)
    yield from (text for text in OTHERS if of_one or re.search(r"\b[abcgvwi]\b", text))


def arrays_of(dtype: str) -> Arrays:
    return {n: ("int64" if n == "i" else dtype, shape) for n, shape in SHAPES.items()}


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_doors_and_numpy_agree(dtype: str) -> None:
    """Where one of them knows what a call gives the other does, and it is what NumPy gives."""
    texts, arrays = list(forms(dtype)), arrays_of(dtype)
    values = {name: np.ones(shape, kind) for name, (kind, shape) in arrays.items()}
    values["g"] = np.eye(6, dtype=dtype)
    told = {text: real for text in texts if (real := by_numpy(text, values)) is not None}
    unknown = set()
    doors_of = zip(*(look([*told], arrays, {}) for look in (by_program, by_kernel)), strict=True)
    for (text, real), doors in zip(told.items(), map(list, doors_of), strict=True):
        for found in doors:
            if found is not None:
                assert found[1] == real[1], text
                assert found[0] in (None, real[0]), text
        if text not in KNOWN_BY_ONE:
            assert (doors[0] is None) == (doors[1] is None), (text, doors)
        if doors == [None, None]:
            unknown.add(text)
    if dtype == "float64":
        assert unknown == UNKNOWN & told.keys()


KNOWN_BY_ONE = {"np.nosuch(a)"}
UNKNOWN = {
    "np.sum(a, where=b > 0)", "np.linalg.norm(a, 1)", "np.clip(a)", "np.diff(a, n=2)",
    "np.einsum('ii->i', a)", "np.fft.fft(a, 8)", "np.nosuch(a)",
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_come_in_the_order_of_numpy(name: str) -> None:
    if name == "arange" or name.startswith(("builtins.", "scipy.")):
        pytest.skip("its first argument is one of two, or no function of NumPy")
    function = np
    for part in name.split("."):
        function = getattr(function, part)
    try:
        real = inspect.signature(function)
    except ValueError:
        pytest.skip("compiled, and without a signature")
    placed = [
        one.name
        for one in real.parameters.values()
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    shared = [one for one in placed if one in PARAMETERS[name]]
    listed = [one for one in PARAMETERS[name] if one in placed]
    assert shared == listed
    # none is left out between two that are understood by their place
    assert placed[: len(listed)] == listed


def test_other_names_are_those_of_functions_with_a_row() -> None:
    assert set(SAME_AS.values()) <= PARAMETERS.keys()
    assert set(REDUCTIONS) | set(SCANS) <= PARAMETERS.keys()


# The table of NumPy's functions against NumPy itself.


WHOLE = ["bool", *(f"{sign}int{8 * size}" for sign in ("", "u") for size in (1, 2, 4, 8))]
NAMES = [*WHOLE, "float16", "float32", "float64", "complex64", "complex128"]
NUMBERS = {PYTHON_INTEGER: 2, PYTHON_FLOAT: 2.0, PYTHON_COMPLEX: 2j}
NOT_STATED = {
    *((name, (kind,)) for name in ("floor", "ceil", "trunc") for kind in WHOLE),
    ("angle", ("bool",)),
}
"""Where releases differ, or a function goes by another rule than its loops."""


def test_promotion_is_that_of_numpy() -> None:
    pairs = list(itertools.product(NAMES, repeat=2))
    assert len(pairs) == 196
    wrong = [pair for pair in pairs if promote(*pair) != np.promote_types(*pair).name]
    assert not wrong


def of_numpy(name: str, operands: tuple[str, ...]) -> str | None:
    given = [NUMBERS[one] if one in NUMBERS else np.ones(2, one) for one in operands]
    condition = [np.ones(2, bool)] if name == "where" else []
    try:
        return getattr(np, name)(*condition, *given).dtype.name
    except TypeError:
        return None


@pytest.mark.parametrize("called", ELEMENTWISE)
def test_result_types_are_those_of_numpy(called: str) -> None:
    """For arrays of every type, and for every type beside every number of Python's."""
    if not hasattr(np, called):
        pytest.skip("not in this release")
    name = ELEMENTWISE[called]
    count = ROWS[name].operands - (name == "where")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for operands in itertools.product((*NAMES, *NUMBERS), repeat=count):
            if all(one in NUMBERS for one in operands):
                continue
            found = result_dtype(name, operands)
            if (name, operands) in NOT_STATED:
                assert found is None
            else:
                assert found == of_numpy(called, operands), operands


@pytest.mark.parametrize("name", ROWS)
def test_rows_take_as_many_operands_as_numpy(name: str) -> None:
    known = getattr(np, name)
    if isinstance(known, np.ufunc):
        assert known.nin == ROWS[name].operands
