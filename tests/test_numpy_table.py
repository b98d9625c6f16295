"""The table of NumPy's functions against NumPy itself."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from advisor.numpy_table import (
    ELEMENTWISE,
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    ROWS,
    promote,
    result_dtype,
)

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
