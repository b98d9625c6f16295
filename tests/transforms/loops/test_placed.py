"""Loops that combine at places that only the data know come to the same as one call, or stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Legality
from advisor.source import apply_edits
from tests.transforms.case_files import bodies
from transforms.loops.array_statements import IF_NOT_EMPTY
from transforms.loops.placed import placed

HEAD = """\
import numpy as np

# advise: kernel
# advise: at: i8[N, 3]
# advise: p: i8[N]
# advise: q: i8[N]
# advise: x: f8[N]
# advise: w: f8[N]
# advise: k: i8[N]
# advise: m: f8[3, 3]
# advise: h: float
def f(at, p, q, x, w, k, m, h):
    g, c, s = np.zeros(9), np.zeros(9, dtype=np.int64), np.zeros((9, 9))
{body}
    return g, c, s
"""
RAISED, LEFT = (bodies("loops/placed.txt", verdict) for verdict in ("raised", "left"))


def offered(body: str) -> list[tuple[str, Legality]]:
    source = HEAD.format(body="\n".join(f"    {line}" for line in body.splitlines()))
    found = [one for kernel in read_kernels("f.py", source) for one in placed(kernel)]
    return [(apply_edits(source, one.edits()), one.legality) for one in found if one.edits()]


def results(source: str, size: int, **other: Any) -> Any:
    random, names = np.random.default_rng(size), dict[str, Any]()
    exec(compile(source, "f.py", "exec"), names)
    whole = {n: random.integers(-9, 9, size) for n in ("p", "q")}
    given = {
        **{"at": random.integers(0, 9, (size, 3)), **whole},
        **{"x": 20 * random.standard_normal(size), "w": random.standard_normal(size)},
        **{"k": random.integers(-(2**62), 2**62, size), "m": random.random((3, 3)), "h": 0.5},
    }
    with np.errstate(all="ignore"):
        return names["f"](**(given | other))


@pytest.mark.parametrize("name", RAISED)
def test_calls_come_to_the_same(name: str) -> None:
    body, text = RAISED[name]
    before = HEAD.format(body="\n".join(f"    {line}" for line in body.splitlines()))
    found = offered(body)
    assert text in found[0][0].replace("\n    ", "\n")
    for after, legality in found:
        for size in (0, 1, 2, 40):
            if size == 0 and IF_NOT_EMPTY in legality.argument:
                continue
            for one, other in zip(results(before, size), results(after, size), strict=True):
                assert one.dtype == other.dtype
                if "rounding" in legality.argument:
                    np.testing.assert_allclose(other, one, 1e-12, 1e-12)
                else:
                    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", RAISED)
def test_nan_and_places_that_are_not_there(name: str) -> None:
    body, _ = RAISED[name]
    before = HEAD.format(body="\n".join(f"    {line}" for line in body.splitlines()))
    after, legality = offered(body)[0]
    w = np.full(5, np.nan)
    for one, other in zip(results(before, 5, w=w), results(after, 5, w=w), strict=True):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
    if "names" in name:
        assert "finite and fits int64" in legality.argument
        return
    beyond = {"p": np.full(5, 99), "at": np.full((5, 3), 99)}
    for source in (before, after):
        with pytest.raises(IndexError):
            results(source, 5, **beyond)


@pytest.mark.parametrize("name", LEFT)
def test_what_takes_turns_is_left(name: str) -> None:
    assert not offered(LEFT[name][0])


def test_memory_that_may_be_shared_is_said() -> None:
    source = (
        "# advise: kernel\n# advise: p: i8[N]\n# advise: x: f8[N]\n# advise: g: f8[N]\n"
        "def f(p, x, g):\n    for i in range(len(p)):\n"
        "        g[p[i]] += x[i]\n        g[p[i] - 1] += x[i]\n"
    )
    (one,) = placed(*read_kernels("f.py", f"import numpy as np\n{source}"))
    assert one.legality.applicability is Applicability.UNSAFE
    assert "overlap" in one.legality.argument


def test_whole_numbers_in_any_order_are_safe() -> None:
    ((_, legality),) = offered(RAISED["two of whole numbers"][0])
    assert "rounding" not in legality.argument
