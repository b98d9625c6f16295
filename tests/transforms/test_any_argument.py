"""Safe edits leave every result as it is, whatever a program is called with.

Annotations say what is usual. So originals and rewrites are called with arrays that contradict
them: not square, empty, of one element, of other element types and storage orders, views with
steps, one array in the place of two. Where the original runs, the rewrite gives the same bits.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.finding import Applicability, Fix
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking.worth import held
from advisor.source import SourceProblem, apply_edits
from advisor.transform_registry import transforms
from tests.advisor.report.report_samples import SHIFTS
from tests.decision_corpus import programs

ROOT = Path(__file__).parents[2]
CALLS = 60
TYPES = ("int64", "int32", "uint8", "float64", "float32", "complex128", "bool")

REDUCED = """\
# advise: kernel N=1000
# advise: a: i8[N, N]
# advise: out: i8[N]
def f(a, out):
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            out[j] += a[i, j]
"""
ALLOCATED = """\
import numpy as np

# advise: kernel N=1000
# advise: a: i8[N, N]
def f(a):
    out = np.zeros(a.shape[1], dtype=np.int64)
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            out[j] += a[i, j]
    return out
"""
SQUARED = """\
import numpy as np

# advise: kernel
# advise: a: i8[200, 300]
def f(a):
    out = np.zeros(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] * a[i, j]
    return out
"""
SUMMED = """\
import numpy as np

# advise: kernel N=100
# advise: a: i8[N, N]
def f(a):
    total = 0
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j]
    return total
"""
WINDOWED = """\
import numpy as np

# advise: kernel n=1000 b=100
def f(n, b):
    a = np.arange(n)
    s = np.zeros(n, dtype=np.int64)
    for k in range(b):
        s += np.roll(a, -k)
    return s
"""
WRITTEN = {
    "reduced": REDUCED,
    "allocated": ALLOCATED,
    "squared": SQUARED,
    "summed": SUMMED,
    "windowed": WINDOWED,
}


@dataclass(frozen=True)
class Case:
    """A kernel with an edit of it that is told to be safe."""

    title: str
    source: str
    fixed: str
    kernel: Kernel


def texts() -> Iterator[tuple[str, str]]:
    yield from WRITTEN.items()
    seen: set[str] = set()
    for program in programs():
        source = program.text or ((ROOT / program.name).read_text() if not program.choice else "")
        if source and source not in seen and "numba" not in source and "mpi4py" not in source:
            seen.add(source)
            yield program.name, source


@cache
def cases() -> tuple[Case, ...]:
    found: dict[str, Case] = {}
    for title, source in texts():
        try:
            kernels = read_kernels("f.py", source)
        except SourceProblem:
            continue
        for kernel in kernels:
            for rule in transforms():
                for number, proposal in enumerate(rule.propose(kernel)):
                    legality, edits = proposal.legality, proposal.edits()
                    if legality.applicability is not Applicability.SAFE or not edits:
                        continue
                    offer = Fix(legality.applicability, legality.argument, edits)
                    fix = held(replace(SHIFTS, fix=offer), rule, kernel, proposal).fix
                    if fix is not None and fix.applicability is Applicability.SAFE:
                        fixed = apply_edits(source, fix.edits)
                        name = f"{title} {kernel.name} {rule.code} {number}"
                        found.setdefault(source + fixed, Case(name, source, fixed, kernel))
    return tuple(found.values())


def test_every_family_of_edits_is_tried() -> None:
    # those of annotations alone change nothing that runs
    codes = {re.findall(r"ADV\d+", case.title)[-1] for case in cases() if runs_otherwise(case)}
    assert {"ADV201", "ADV202", "ADV501"} <= codes, codes


def runs_otherwise(case: Case) -> bool:
    return without_annotations(case.source) != without_annotations(case.fixed)


def without_annotations(source: str) -> str:
    return re.sub(r"#.*|Dist\([^\n]*|Mesh\([^\n]*", "", source)


def function(source: str, name: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, "program.py", "exec"), space)
    found: Callable[..., Any] = space[name]
    return found


def array(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    values = random.integers(0, 250, [2 * extent for extent in shape])
    made = values.astype(dtype) if dtype != "float32" else (values / 7).astype(dtype)
    made = made / 3 if dtype in ("float64", "complex128") else made
    how = random.integers(4)
    view = made[tuple(slice(None, None, 2) for _ in shape)]
    if how == 0:
        return np.array(view, order="C")
    if how == 1:
        return np.array(view, order="F")
    return view if how == 2 else view[tuple(slice(None, None, -1) for _ in shape)]


def arguments(
    random: np.random.Generator, kernel: Kernel, function: Callable[..., Any]
) -> Mapping[str, Any]:
    """Return arguments that a caller may pass, whatever the annotations say."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    typed = not kernel.types_are_usual
    alike = int(random.integers(0, 6))
    given: dict[str, Any] = {}
    for name in names:
        if name not in kernel.arrays:
            given[name] = int(random.integers(0, 5))
            continue
        declared = kernel.arrays[name]
        dtype = declared.dtype if typed else str(random.choice(TYPES))
        # some extents alike, as otherwise few programs run
        shape = tuple(
            alike if random.random() < 0.6 else int(random.integers(0, 6)) for _ in declared.extents
        )
        others = [one for one in given.values() if isinstance(one, np.ndarray)]
        if others and random.random() < 0.25:
            other = others[int(random.integers(len(others)))]
            if other.ndim == len(shape) and (not typed or other.dtype == dtype):
                given[name] = other
                continue
        given[name] = array(random, shape, dtype)
    return given


def outcome(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Return what a call gives, and what it leaves in its arguments; None where it raises."""
    copies: dict[int, Any] = {}
    passed = {
        name: copies.setdefault(id(value), value.copy("K")) if isinstance(value, np.ndarray)
        else value
        for name, value in given.items()
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(**passed)
        except (IndexError, ValueError, TypeError, ZeroDivisionError, OverflowError):
            return None
    results = result if isinstance(result, tuple) else (result,)
    return (*results, *passed.values())


def same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    a, b = np.asarray(one), np.asarray(other)
    if isinstance(one, np.ndarray) and a.dtype != b.dtype:
        return False
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


@pytest.mark.parametrize("part", range(4))
def test_safe_edits_hold_for_arguments_that_contradict_annotations(part: int) -> None:
    for case in cases()[part::4]:
        if not runs_otherwise(case):
            continue
        before = function(case.source, case.kernel.name)
        after = function(case.fixed, case.kernel.name)
        random = np.random.default_rng(2111)
        ran = 0
        for _ in range(CALLS):
            given = arguments(random, case.kernel, before)
            expected = outcome(before, given)
            if expected is None:
                continue
            ran += 1
            found = outcome(after, given)
            told = f"{case.title}: {given}\n{case.fixed}"
            assert found is not None, told
            assert all(map(same, expected, found)), told
        assert ran, case.title


def test_sizes_of_annotations_are_in_no_edit() -> None:
    edited = set()
    for title, source in WRITTEN.items():
        for kernel in read_kernels("f.py", source):
            for rule in transforms():
                for proposal in rule.propose(kernel):
                    legality, edits = proposal.legality, proposal.edits()
                    if not edits or proposal.variant.body == kernel.body:
                        continue
                    offer = Fix(legality.applicability, legality.argument, edits)
                    fix = held(replace(SHIFTS, fix=offer), rule, kernel, proposal).fix
                    assert fix is not None
                    texts = " ".join(edit.replacement for edit in fix.edits)
                    assert not re.search(r"\b(?:100|200|300|1000)\b", texts), texts
                    edited.add(title)
    assert edited == WRITTEN.keys()
