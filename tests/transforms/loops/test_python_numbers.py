"""Totals that Python computed stay numbers of Python, and those of NumPy NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Proposal
from advisor.source import apply_edits
from transforms.loops.vectorise import TRANSFORM

SOURCE = """\
import math
import numpy as np

# advise: kernel
# advise: x: {t}[N]
# advise: a: float
def f(x, a):
    t = {start}
    for i in range(len(x)):
        {body}
    return t
"""
OF_PYTHON = [
    ("0.0", "t += float(x[i])", "f4", "t += float(x.astype(np.float64).sum())"),
    ("0.0", "t += float(x[i])", "f8", "t += float(x.sum())"),
    ("0.0", "t -= abs(float(x[i]) - 0.5)", "f8", "t -= float(np.absolute(x - 0.5).sum())"),
    ("0.0", "t += math.sqrt(x[i])", "f8", "t += float(np.sqrt(x).sum())"),
    ("0.0", "t += float(x[i]) if x[i] > 0.2 else 0.0", "f8", None),
    ("-1.0", "t = max(t, float(x[i]))", "f8", "t = float(x.max(initial=t))"),
    ("0", "t += int(x[i])", "i8", "t += int(x.sum())"),
    (
        "0.0",
        "t += 4.0 / (1.0 + (0.5 + i) * (0.5 + i))",
        "f8",
        "t += float((4.0 / (1.0 + both * both)).sum())",
    ),
    (
        "0.0",
        "t = t + math.exp(-0.1 * i)",
        "f8",
        "t += float(np.exp(-0.1 * np.arange(x.shape[0])).sum())",
    ),
]
OF_NUMPY = [
    ("0.0", "t += np.float64(x[i])", "f8", "t += x.sum()"),
    ("0.0", "t += np.sqrt(float(x[i]))", "f8", "t += np.sqrt(x).sum()"),
    ("0.0", "t += x[i] * float(x[i])", "f8", None),
    ("0", "t += x[i]", "i8", "t += x.sum()"),
]


def offered(start: str, body: str, dtype: str) -> tuple[str, list[Proposal]]:
    source = SOURCE.format(start=start, body=body, t=dtype)
    return source, [one for one in TRANSFORM.propose(*read_kernels("f.py", source)) if one.edits()]


def result(source: str, x: Any) -> Any:
    names = dict[str, Any]()
    exec(compile(source, "f.py", "exec"), names)
    return names["f"](x, 0.5)


@pytest.mark.parametrize(("start", "body", "dtype", "text"), OF_PYTHON + OF_NUMPY)
def test_totals_stay_of_their_type(start: str, body: str, dtype: str, text: str | None) -> None:
    source, (one,) = offered(start, body, dtype)
    edited = apply_edits(source, one.edits())
    assert text is None or f"    {text}\n" in edited
    for size in (1, 40):
        x = (np.random.default_rng(size).random(size) * 50).astype(dtype)
        before, after = result(source, x), result(edited, x)
        assert type(before) is type(after)
        np.testing.assert_allclose(after, before, 1e-12)


@pytest.mark.parametrize(("start", "body", "dtype", "text"), OF_PYTHON)
def test_nothing_leaves_a_number_of_python(
    start: str, body: str, dtype: str, text: str | None
) -> None:
    source, (one,) = offered(start, body, dtype)
    x = np.zeros(0, dtype)
    assert type(result(apply_edits(source, one.edits()), x)) is type(result(source, x))


@pytest.mark.parametrize("term", ["i", "i * i", "i ** 3 / 7.0", "(i * i * i) * 0.5"])
def test_whole_numbers_that_have_no_end_are_left(term: str) -> None:
    assert not offered("0", f"t += {term}", "f8")[1]


def test_terms_that_no_array_had_have_to_fit_in_memory() -> None:
    _, (one,) = offered("0.0", "t += 1.0 / (1.0 + i)", "f8")
    assert "fit in memory" in one.legality.argument


def test_what_outgrows_a_type_is_said() -> None:
    _, (one,) = offered("0", "t += int(x[i])", "i8")
    assert one.legality.applicability is Applicability.UNSAFE
    assert "if the sum fits int64" in one.legality.argument


def test_a_name_that_may_hold_either_is_said() -> None:
    source, (one,) = offered("0.0", "t += a * float(x[i])", "f8")
    assert "may be a number of NumPy" in one.legality.argument
    assert "t += a * x.sum()\n" in apply_edits(source, one.edits())


def test_a_name_of_the_file_is_not_pythons() -> None:
    source, _ = offered("0.0", "t += math.sqrt(x[i])", "f8")
    hidden = source.replace("import math\n", "import math\n\nfloat = np.float32\n")
    assert not [o for o in TRANSFORM.propose(*read_kernels("f.py", hidden)) if o.edits()]
