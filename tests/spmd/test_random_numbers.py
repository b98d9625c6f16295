"""Arrays of random numbers: shapes and element types are those that NumPy gives."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from advisor.frontend.spmd.numpy_calls import INTEGERS, SIZE_AT, TYPED
from advisor.ir.spmd.payloads import PayloadKind
from costdb.expr import num
from tests.spmd.reading import the_operation

GENERATOR = np.random.default_rng(1)
VALUES = {"p": "0.5", "a": "2.0", "alpha": "2.0", "df": "3.0"}


def parameters(name: str) -> list[str]:
    return list(inspect.signature(getattr(GENERATOR, name)).parameters)


def before_size(name: str) -> list[str]:
    """Return arguments that the distribution takes before its size."""
    if name == "integers":
        return ["0", "9"]
    if name == "triangular":
        return ["1.0", "2.0", "3.0"]
    if name in ("hypergeometric", "binomial"):
        return ["7", "0.5"] if name == "binomial" else ["7", "5", "4"]
    return [VALUES.get(p, "2.0") for p in parameters(name)[: SIZE_AT[name]]]


MODERN = sorted(name for name in SIZE_AT if hasattr(GENERATOR, name))


@pytest.mark.parametrize("name", MODERN)
def test_the_size_stands_where_numpy_has_it(name: str) -> None:
    assert parameters(name).index("size") == SIZE_AT[name]
    assert ("dtype" in parameters(name)) == (name in TYPED)


CASES = [
    (name, stated)
    for name in MODERN
    for stated in ("", "int32" if name in INTEGERS else "float32")
    if not stated or name in TYPED
]


@pytest.mark.parametrize("keyword", [False, True])
@pytest.mark.parametrize(("name", "stated"), CASES)
def test_arrays_have_the_shape_and_type_of_numpy_s(name: str, keyword: bool, stated: str) -> None:
    given = [*before_size(name), "size=(3, 5)" if keyword else "(3, 5)"]
    if stated:
        given.append(f"dtype=np.{stated}")
    made = f"np.random.default_rng(1).{name}({', '.join(given)})"
    expected = eval(made, {"np": np})
    text = f"rng = np.random.default_rng(1)\nx = rng.{name}({', '.join(given)})\n"
    payload = the_operation(f"{text}comm.send(x, dest=1)\n").send
    assert payload is not None and payload.view is not None
    assert payload.kind is PayloadKind.ARRAY
    assert payload.view.shape == tuple(map(num, expected.shape))
    assert payload.dtype == expected.dtype.name


@pytest.mark.parametrize("name", MODERN)
def test_without_a_size_they_are_numbers(name: str) -> None:
    text = f"x = np.random.default_rng(1).{name}({', '.join(before_size(name))})\n"
    payload = the_operation(f"{text}comm.send(x, dest=1)\n").send
    assert payload is not None and payload.kind is PayloadKind.SCALAR


@pytest.mark.parametrize(
    "call", ["normal(means, 1.0)", "poisson(lam=means)", "uniform(means)", "normal(*means)"]
)
def test_of_arrays_they_are_no_numbers(call: str) -> None:
    text = f"means = np.zeros(40)\nx = np.random.{call}\ncomm.send(x, dest=1)\n"
    payload = the_operation(text).send
    assert payload is not None and payload.kind is not PayloadKind.SCALAR
