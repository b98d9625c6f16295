"""Edits of functions that nobody annotated hold for any argument, or say for which they do not.

A run shows what a function was called with, not what it will be called with. So originals and
rewrites are called with arguments of other kinds: lists, arrays of a subclass, masked ones, of
other types, orders and shapes, empty, read-only, overlapping, with NaN. Where the original runs, a
safe edit gives the same bits, and an unsafe one differs only where its words say so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from advisor.finding import Applicability, Fix
from advisor.frontend.kernels import read_kernels
from advisor.observe.calls import overlaps, seen_argument
from advisor.observed import Seen, SeenArray, SeenNumber
from advisor.ranking.worth import held
from advisor.source import apply_edits
from advisor.transform_registry import transforms
from costdb.records import replace
from tests.advisor.report.report_samples import SHIFTS
from tests.transforms.case_files import CASES, sections

(_, HELPERS), *PARTS = sections(CASES / "functions.txt")
PROGRAMS = {head.partition(": ")[0]: text.rstrip() for head, text in PARTS}
CALLING = {head.removesuffix(": helped") for head, _ in PARTS if head.endswith(": helped")}
"""Programs that call helpers."""
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
TYPES = ("bool", "uint8", "int16", "int64", "uint64", "float16", "float32", "float64")
MORE_TYPES = (*TYPES, "complex128", "object")
ROUNDING = ("round", "order", "agree")

Arguments = dict[str, Any]


class Own(np.ndarray):
    """An array of a subclass."""


def usual(names: list[str]) -> Arguments:
    random = np.random.default_rng(len(names))
    made: Arguments = {}
    for name in names:
        if name in "mq":
            made[name] = random.normal(size=(6, 6 if name == "q" or "q" in names else 5))
        elif name in "pg":
            made[name] = random.integers(0, 5, 5 if name == "p" else (6, 5))
        elif name == "k":
            made[name] = 3
        else:
            made[name] = random.normal(size=5)
    return made


def others(base: Arguments) -> Iterator[tuple[str, tuple[str, ...], Arguments]]:
    """Yield arguments of other kinds: a title, words of which one has to be said, the arguments."""
    arrays = [name for name, value in base.items() if isinstance(value, np.ndarray)]
    for name in arrays:
        array = base[name]

        def put(value: Any, name: str = name) -> Arguments:
            return {**base, name: value}

        plain = ("plain array",)
        yield f"{name} list", plain, put(array.tolist())
        yield f"{name} tuple", plain, put(tuple(array.tolist()))
        yield f"{name} subclass", plain, put(array.view(Own))
        mask = np.arange(array.size).reshape(array.shape) % 3 == 1
        yield f"{name} masked", plain, put(np.ma.masked_array(array, mask))
        if array.ndim == 2:
            yield f"{name} matrix", plain, put(np.asmatrix(array))
        yield f"{name} without dimensions", ("plain array", "shapes"), put(np.array(array.flat[0]))
        shapes = ("shapes", "empty")
        for number in (0, 1, 3):
            yield f"{name} of {number}", shapes, put(array[:number].copy())
        yield f"{name} twice as long", shapes, put(np.concatenate([array, array]))
        if array.ndim == 2:
            yield f"{name} of one column", shapes, put(array[:, :1].copy())
            yield f"{name} of no column", shapes, put(array[:, :0].copy())
        fixed = array.copy()
        fixed.flags.writeable = False
        yield f"{name} read-only", (), put(fixed)
        yield f"{name} by columns", (), put(np.array(array, order="F"))
        yield f"{name} backwards", (), put(array[::-1])
        yield f"{name} with steps", (), put(np.repeat(array, 2, axis=0)[::2])
        for dtype in MORE_TYPES:
            values = array * 40 if array.dtype.kind == "f" else array
            with np.errstate(all="ignore"):
                yield f"{name} of {dtype}", ("element types",), put(values.astype(dtype))
        if array.dtype.kind == "f":
            for value in (np.nan, np.inf, -0.0):
                doubtful = array.copy()
                doubtful.flat[1] = value
                yield f"{name} with {value}", ("NaN", "infinit"), put(doubtful)
        else:
            yield f"{name} negative", ("negative",), put(array - 2)
            yield f"{name} out of range", ("range",), put(array + 100)
    for dtype in MORE_TYPES:
        values = {name: (base[name] * 40).astype(dtype) for name in arrays if name not in "pg"}
        yield f"all of {dtype}", ("element types",), {**base, **values}
    for one in arrays:
        for other in arrays:
            if one < other and base[one].dtype == base[other].dtype:
                yield f"{one} is {other}", ("overlap",), {**base, other: base[one]}
                length, rest = len(base[one]), base[one].shape[1:]
                if rest == base[other].shape[1:]:
                    buffer = np.arange(length + 1.0)[(..., *[None] * len(rest))] + np.zeros(rest)
                    early, late = buffer[:-1], buffer[1:]
                    yield f"{one} before {other}", ("overlap",), {**base, one: early, other: late}
                    yield f"{one} behind {other}", ("overlap",), {**base, one: late, other: early}
                if base[one].ndim == 2:
                    yield f"{one} is {other}.T", ("overlap",), {**base, one: base[other].T}
    if {"a", "b"} <= base.keys():
        lengths = {"a": base["a"][:1].copy(), "b": base["b"][:1].copy()}
        yield "both of one element", ("shapes", "empty"), {**base, **lengths}
    yield from ((f"k = {k}", ("shapes", "negative", "empty"), {**base, "k": k}) for k in (0, -1, 1)
                if "k" in base)  # fmt: skip


def seen_of(function: Callable[..., Any], given: Arguments) -> Seen:
    facts = [seen_argument(name, value) for name, value in given.items()]
    arrays = tuple(fact for fact in facts if isinstance(fact, SeenArray))
    numbers = tuple(fact for fact in facts if isinstance(fact, SeenNumber))
    kinds = ((name, fact) for name, fact in zip(given, facts, strict=True))
    rest = tuple((name, fact) for name, fact in kinds if isinstance(fact, str))
    shared = tuple(overlaps([(array.name, given[array.name]) for array in arrays]))
    line = function.__code__.co_firstlineno
    return Seen(function.__name__, line, "call", arrays, numbers, others=rest, overlaps=shared)


def function(source: str, name: str) -> Callable[..., Any]:
    space: dict[str, Any] = {}
    exec(compile(source, "program.py", "exec"), space)
    found: Callable[..., Any] = space[name]
    return found


def program(title: str) -> tuple[str, str, list[str]]:
    name, _, parameters = title[:-1].partition("(")
    body = "".join(f"    {line}\n" for line in PROGRAMS[title].split("\n"))
    helpers = f"{HELPERS}\n\n" if title in CALLING else ""
    source = f"import numpy as np\n\n\n{helpers}def {title}:\n{body}"
    return source, name, parameters.split(", ")


def fixes(source: str, *seen: Seen) -> Iterator[tuple[str, Fix]]:
    """Yield what each rule offers for a function that a run showed."""
    for kernel in read_kernels("f.py", source, seen)[:1]:
        for rule in transforms():
            for proposal in rule.propose(kernel):
                legality, edits = proposal.legality, proposal.edits()
                if edits and legality.applicability is not Applicability.DISPLAY:
                    offer = Fix(legality.applicability, legality.argument, edits)
                    fix = held(replace(SHIFTS, fix=offer), rule, kernel, proposal).fix
                    assert fix is not None
                    yield rule.code, fix


@cache
def offers(title: str) -> tuple[tuple[str, Fix], ...]:
    source, name, names = program(title)
    return tuple(fixes(source, seen_of(function(source, name), usual(names))))


def copied(given: Arguments) -> Arguments:
    """Return arguments with memory of their own that share what the given ones share."""
    arrays = {n: v for n, v in given.items() if isinstance(v, np.ndarray) and type(v) is np.ndarray}
    bases: dict[int, Any] = {}
    made = dict(given)
    for name, value in arrays.items():
        base = value if value.base is None else value.base
        if isinstance(base, np.ndarray) and base.dtype != object:
            new = bases.setdefault(id(base), base.copy("K"))
            offset = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
            made[name] = np.ndarray(value.shape, value.dtype, new, offset, value.strides)
            made[name].flags.writeable = value.flags.writeable
        else:
            made[name] = value.copy("K")
    for name in given.keys() - arrays.keys():
        if isinstance(given[name], list | np.ndarray):
            made[name] = given[name].copy()
    return made


def outcome(of: Callable[..., Any], given: Arguments) -> list[Any] | None:
    """Return what a call gives, and what it leaves in its arguments; None where it raises."""
    passed = copied(given)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = of(**passed)
        except Exception:
            return None
    return [result, *passed.values()]


def precision_of(fix: Fix) -> float | None:
    """Return the least precision that results agree to, beside that of their types; None: all."""
    if fix.applicability is Applicability.SAFE:
        return None
    if "rounding of float32" in fix.legality:
        return float(np.finfo(np.float32).eps)
    return 0.0 if any(word in fix.legality for word in ROUNDING) else None


def same(one: Any, other: Any, rounded: float | None) -> bool:
    if isinstance(one, list | tuple | np.ndarray) and type(one) is not type(other):
        return False
    if isinstance(one, np.ma.MaskedArray):
        masks = np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(other))
        return masks and same(one.data, other.data, rounded)
    if isinstance(one, list | tuple):
        alike = (same(a, b, rounded) for a, b in zip(one, other, strict=True))
        return len(one) == len(other) and all(alike)
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or (isinstance(one, np.ndarray) and a.dtype != b.dtype):
        return False
    if a.dtype == object or b.dtype == object:
        return bool(np.all((a == b) | ((a != a) & (b != b))))
    if rounded is not None and {a.dtype.kind, b.dtype.kind} & set("fc"):
        floating = [one.dtype for one in (a, b) if one.dtype.kind in "fc"]
        precision = max(rounded, *(float(np.finfo(dtype).eps) for dtype in floating))
        scale = float(np.max(np.abs(a), initial=1.0, where=np.isfinite(a)))
        return bool(np.allclose(a, b, rtol=0, atol=64 * precision * scale, equal_nan=True))
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc"))


def differences(title: str, code: str, fix: Fix) -> Iterator[str]:
    source, name, names = program(title)
    fixed = apply_edits(source, fix.edits)
    before, after = function(source, name), function(fixed, name)
    rounded = precision_of(fix)
    safe = fix.applicability is Applicability.SAFE
    base = usual(names)
    for what, words, given in [("as seen", (), base), *others(base)]:
        if not safe and any(word in fix.legality for word in words):
            continue
        expected = outcome(before, given)
        if expected is None:
            continue
        found = outcome(after, given)
        if found is None and not safe and what.endswith("read-only"):
            continue  # `np.add.at` writes to what is read-only, where others refuse
        if found is None or not all(
            same(a, b, rounded) for a, b in zip(expected, found, strict=True)
        ):
            yield f"{title} {code} {fix.applicability}, {what}: {fix.legality}\n{fixed}"


@pytest.mark.parametrize("title", PROGRAMS)
def test_edits_hold_for_any_argument_or_say_for_which_they_do_not(title: str) -> None:
    found = [
        one
        for code, fix in offers(title)
        if fix.applicability is not Applicability.DISPLAY
        for one in differences(title, code, fix)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("title", list(PROGRAMS))
def test_what_a_run_shows_holds_without_conditions(title: str) -> None:
    """Of two kinds of calls that were seen, none is harmed by what the other allows."""
    source, name, names = program(title)
    original, base = function(source, name), usual(names)
    turn = list(PROGRAMS).index(title)
    for number, (what, words, given) in enumerate(others(base)):
        told_by_types = {"plain array", "shapes", "element types", "overlap"} & set(words)
        # every sixteenth kind of argument, from program to program others
        if number % 16 != turn % 16 or not told_by_types or outcome(original, given) is None:
            continue
        seen = [seen_of(original, one) for one in (base, given)]
        for code, fix in fixes(source, *seen):
            if fix.applicability is Applicability.DISPLAY:
                continue
            fixed = function(apply_edits(source, fix.edits), name)
            before, after = outcome(original, given), outcome(fixed, given)
            told = f"{what} {code}: {fix.legality}"
            assert before is not None and after is not None, told
            assert all(map(partial(same, rounded=precision_of(fix)), before, after)), told


def test_most_functions_are_offered_something() -> None:
    assert sum(map(bool, map(offers, PROGRAMS))) > len(PROGRAMS) / 2


def test_what_only_changes_places_is_safe_for_all_that_may_be_given() -> None:
    offered = dict(offers("decayed(m)"))
    assert offered["ADV501"].applicability is Applicability.SAFE
    assert "plain array" in offered["ADV401"].legality
