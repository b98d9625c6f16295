"""Functions as textbooks have them, without a word on their arguments.

They are in ``tests/data/textbook_functions.txt``, each below its name and what is to be assumed:
of an array its rank (``w`` where it is of whole numbers), of a number ``i`` or ``f``, ``name:n`` an
extent. That lets it run on arrays of that rank, and each is read as a whole.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source, seen_functions
from advisor.finding import Finding
from advisor.frontend.kernels import read_kernels
from advisor.ir.statements import Unknown, walk
from advisor.observed import Seen, SeenArray, SeenNumber
from advisor.source import apply_edits
from tests.transforms.case_files import sections

EXTENT = 6

DOCUMENT = Path(__file__).parents[2] / "data" / "textbook_functions.txt"
FUNCTIONS = {
    name: (said.split(), text)
    for head, text in sections(DOCUMENT)
    for name, _, said in [head.partition(": ")]
}
OPTIONS = Options("node2026", {}, (), (), None, plans=False)
BRIEF = Options("node2026", {}, (), (), None, plans=False, details=False)


def given(name: str) -> tuple[str, dict[str, str], dict[str, int]]:
    """Return source, what is to be assumed, and extents that are not the usual one."""
    words, text = FUNCTIONS[name]
    small = dict(one.split(":") for one in words if ":" in one)
    words = [one for one in words if ":" not in one]
    source = f"import numpy as np\nfrom files import load\n\n{text}"
    said = dict(zip(words[::2], words[1::2], strict=True))
    return source, said, {one: int(extent) for one, extent in small.items()}


@cache
def seen_in(name: str) -> tuple[str, Seen]:
    source = given(name)[0]
    (seen,) = (one for one in seen_functions("a.py", source, OPTIONS) if one.function == name)
    return source, seen


@cache
def findings(name: str) -> tuple[Finding, ...]:
    return check_source("a.py", given(name)[0], BRIEF).findings


def told(seen: Seen, source: str) -> dict[str, Any]:
    made = "load(" in source or "loadtxt(" in source
    found: dict[str, Any] = {one.name: one for one in (*seen.arrays, *seen.numbers)}
    return found | {one.name: one.what for one in seen.bindings if made and one.name == "data"}


def word(one: SeenArray | SeenNumber) -> str:
    whole = one.dtype in ("int64", "int")
    if isinstance(one, SeenNumber):
        return "i" if whole else "f"
    return f"{one.ndim}w" if whole else str(one.ndim)


def value(one: SeenArray | SeenNumber, extent: int) -> Any:
    rng, whole = np.random.default_rng(7), one.dtype in ("int64", "int")
    if isinstance(one, SeenNumber):
        return 2 if whole else 0.5
    shape = (extent,) * one.ndim
    return rng.integers(0, 3, shape) if whole else rng.random(shape) + np.arange(1, extent + 1)


def run(name: str, source: str, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Return what a function gives for arguments as they are assumed."""
    extents = given(name)[2]
    values = {
        one: value(what, extents.get(one, EXTENT)) for one, what in told(seen, source).items()
    }
    space: dict[str, Any] = {"load": lambda path: values["data"]}
    monkeypatch.setattr(np, "loadtxt", space["load"])
    np.random.seed(1)
    exec(compile(source.replace("from files import load\n", "\n"), "a.py", "exec"), space)
    with np.errstate(all="ignore"):
        found = space[name](**({"path": ""} if "data" in values else values))
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_assumed_lets_it_run_and_be_read_whole(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, seen = seen_in(name)
    assert {one: word(what) for one, what in told(seen, source).items()} == given(name)[1]
    if name == "shapes":
        return
    assert all(np.all(np.isfinite(one)) for one in run(name, source, seen, monkeypatch))
    (kernel,) = (one for one in read_kernels("a.py", source, (seen,)) if one.name == name)
    loads = [k for k, line in enumerate(source.splitlines(), 1) if "(path)" in line]
    gaps = [one for one in walk(kernel.body) if isinstance(one, Unknown)]
    assert not [one.reason for one in gaps if one.span.start_line not in loads]


@pytest.mark.parametrize("name", [one for one in FUNCTIONS if one != "shapes"])
def test_edits_give_what_the_text_gave(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, seen = seen_in(name)
    offered = [one.fix.edits for one in findings(name) if one.fix is not None and one.fix.edits]
    if not offered:
        return
    made = [
        run(name, text, seen, monkeypatch) for text in (source, apply_edits(source, offered[0]))
    ]
    for one, other in zip(*made, strict=True):
        assert np.allclose(one, other, rtol=1e-9, equal_nan=True)


def test_most_of_them_can_be_faster() -> None:
    assert {name for name in FUNCTIONS if not findings(name)} <= {
        # as many centres as points: distances by products need no less
        "nearest",
        # rows are written once either way: less than a thousand elements of each pay
        "ends",
        # iterations wait for one another, and what each does goes by its index
        *("viterbi", "back_substitution", "lagrange"),
    }


OPAQUE = {
    "a call": "out[i] = mystery(x, i)",
    "an attribute": "out[i] = mystery(x, i).value",
    "an entry": "out[i] = table[i]['key'] * 2",
    "a method": "out[i] = x[i].whatever()",
    "an element that grows": "seen[i] = 1; out[i] = seen.get(i - 1, 0)",
}


@pytest.mark.parametrize("opaque", OPAQUE)
@pytest.mark.parametrize("loop", ["for i in range(n):", "for i in range(len(x)):"])
def test_what_is_not_read_in_a_loop_is_never_fine(opaque: str, loop: str) -> None:
    lines = ["import numpy as np", "", "", "def f(x, n, table, seen):", "    out = np.zeros(n)"]
    source = "\n".join([*lines, f"    {loop}", f"        {OPAQUE[opaque]}", "    return out", ""])
    coverage = check_source("a.py", source, OPTIONS).coverage
    assert not coverage.fine and not coverage.complete
    assert any(gap.line in (4, 6, 7) for gap in coverage.not_understood) or coverage.unpriced


def test_what_is_read_whole_and_has_no_loop_is_fine() -> None:
    source = "import numpy as np\n\n\ndef f(n: int):\n    x = np.ones(n)\n    for i in range(3):\n"
    source += "        x[1:] += x[:-1]\n    return x\n"
    coverage = check_source(
        "a.py", source, Options("node2026", {"n": 50_000}, (), (), None)
    ).coverage
    assert coverage.complete and coverage.fine == ("f",)
