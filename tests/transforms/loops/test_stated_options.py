"""What a call states beside its operands holds in every edit: NumPy itself says what it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.numpy_table import PARAMETERS
from tests.transforms.loops.typed_loops import edited, results, source

HEAD = """\
import numpy as np

# advise: kernel
# advise: x: f8[N]
# advise: a: f8[M, N]
# advise: u: f8[M]
# advise: s: f8[N, N]
def f(x, a, u, s):
"""
CALLS = ("a[i]", "a[i], x", "a[i], 2", "x, a[i]", "a[i], x, x", "x, a[i], x", "s * u[i]")
"""Operands, of which those are taken that a function takes."""
STATED: dict[str, tuple[str, ...]] = {
    "assume_unique": ("True",), "atol": ("0.5",), "axes": ("0", "1"), "axis": ("0", "-1"),
    "bias": ("True",), "bins": ("4",), "compute_uv": ("False",), "copy": ("False",),
    "ddof": ("1",), "decimals": ("1",), "density": ("True",), "dtype": ("np.float32", "int"),
    "dx": ("2.0",), "equal_nan": ("True",), "fill_value": ("2.5",), "full_matrices": ("False",),
    "initial": ("0.5",), "invert": ("True",), "k": ("1", "-1"), "keepdims": ("True",),
    "kind": ("'stable'",), "left": ("-1.0",), "method": ("'lower'",), "minlength": ("9",),
    "mode": ("'reflect'", "'same'", "'valid'", "'r'"), "n": ("2", "7"), "nan": ("2.0",),
    "offset": ("1",), "ord": ("1", "np.inf"), "p": ("1",), "period": ("2.0",),
    "posinf": ("3.0",), "q": ("30",), "range": ("(0, 1)",), "rcond": ("0.1",),
    "right": ("-1.0", "True"), "rowvar": ("False",), "rtol": ("0.5",), "shift": ("2",),
    "side": ("'right'",), "tol": ("0.5",), "UPLO": ("'U'",), "weights": ("x",),
}  # fmt: skip


def arguments() -> list[Any]:
    draw = np.random.default_rng(0)
    square = draw.standard_normal((6, 6))
    x, a, u = np.abs(draw.standard_normal(6)), draw.standard_normal((4, 6)), np.zeros(4)
    return [x, a, u + 1, square @ square.T + 6 * np.eye(6)]


def program(name: str, option: str) -> tuple[str, list[Any]] | None:
    """Return a loop that calls a function with an option and without, and what it leaves."""
    for call in CALLS:
        with_option, plain = f"np.{name}({call}{option})", f"np.{name}({call})"
        loop = f"for i in range(a.shape[0]):\n    u[i] = np.sum({with_option}) - np.sum({plain})"
        text = source(HEAD, loop)
        left = results(text, arguments())
        if not isinstance(left, type):
            return text, left
    return None


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_an_edit_keeps_what_a_call_states(name: str) -> None:
    stated = [(one, text) for one in PARAMETERS[name] for text in STATED.get(one, ())]
    for option in ("", *(f", {one}={text}" for one, text in stated)):
        made = program(name, option)
        for _, after in edited(made[0]) if made else ():
            left = results(after, arguments())
            assert made
            assert not isinstance(left, type), after
            for mine, theirs in zip(left, made[1], strict=True):
                np.testing.assert_allclose(mine, theirs, 1e-9, 1e-12, err_msg=after)
