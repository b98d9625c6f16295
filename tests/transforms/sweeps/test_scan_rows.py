"""ADV502: rows added one by one give what scans across the storage order gave, bit for bit."""

from __future__ import annotations

import pytest

from advisor.finding import Applicability
from tests.transforms.generated.loop_programs import program, rewritten
from tests.transforms.generated.scan_programs import ARRAYS, check_scans, offered

WRITTEN = {
    "a name": (
        ["total = np.cumsum(a, axis=0)", "b[...] = total"],
        "f8",
        [
            "total = np.empty_like(a)",
            "total[:1] = a[:1]",
            "for i in range(1, a.shape[0]):",
            "    np.add(total[i - 1], a[i], out=total[i])",
            "b[...] = total",
        ],
    ),
    "wider, in an expression": (
        ["b[...] = a.cumsum(0) // 2  # half"],
        "i4",
        [
            "running = np.empty_like(a, dtype=np.int64)",
            "running[:1] = a[:1]",
            "for i in range(1, a.shape[0]):",
            "    np.add(running[i - 1], a[i], out=running[i])",
            "b[...] = running // 2  # half",
        ],
    ),
    "a middle axis": (
        ["p = np.cumprod(c, axis=-2)", "d[...] = p"],
        "f4",
        [
            "p = np.empty_like(c)",
            "p[:, :1] = c[:, :1]",
            "for i in range(1, c.shape[1]):",
            "    np.multiply(p[:, i - 1], c[:, i], out=p[:, i])",
            "d[...] = p",
        ],
    ),
    "returned": (
        ["return np.cumsum(a, axis=0)"],
        "f8",
        [
            "running = np.empty_like(a)",
            "running[:1] = a[:1]",
            "for i in range(1, a.shape[0]):",
            "    np.add(running[i - 1], a[i], out=running[i])",
            "return running",
        ],
    ),
}


@pytest.mark.parametrize(("lines", "dtype", "expected"), WRITTEN.values(), ids=WRITTEN.keys())
def test_what_is_written(lines: list[str], dtype: str, expected: list[str]) -> None:
    made = program(lines, ARRAYS, dtype)
    (only,) = offered(made)
    assert only.legality.applicability is Applicability.SAFE
    body = rewritten(made, only).partition("):\n")[2]
    assert [line.removeprefix("    ") for line in body.splitlines()] == expected
    check_scans(made, 1)


QUIET = {
    "along the rows": ["b[...] = np.cumsum(a, axis=1)"],
    "of all elements": ["v = np.cumsum(a)"],
    "of a part": ["b[1:] = np.cumsum(a[1:], axis=0)"],
    "of an expression": ["b[...] = np.cumsum(a * b, axis=0)"],
    "from the other end": ["b[...] = np.cumsum(a[::-1], axis=0)[::-1]"],
    "into a place of its own": ["np.cumsum(a, axis=0, out=b)"],
    "in its own place": ["a = np.cumsum(a, axis=0)"],
    "twice": ["b[...] = np.cumsum(a, axis=0) - np.cumsum(a, axis=0)"],
    "a view of the sums": ["t = np.cumsum(a, axis=0).T", "b[...] = t"],
    "rounded first": ["b[...] = np.cumsum(a, axis=0, dtype=np.float32)"],
}


@pytest.mark.parametrize("lines", QUIET.values(), ids=QUIET.keys())
def test_near_misses_stay(lines: list[str]) -> None:
    assert not offered(program(lines, ARRAYS, "f8"))


def test_a_distributed_axis_is_left_to_the_ranks() -> None:
    lines = ["b[...] = np.cumsum(a, axis=0)"]
    two = (("a", 2), ("b", 2))
    assert not offered(program(lines, two, "f8", " over (block(p), none) on mesh(p=4)"))
    assert offered(program(lines, two, "f8", " over (none, block(p)) on mesh(p=4)"))


def test_another_range_is_no_range() -> None:
    (only,) = offered(program(["range = 3", "b[...] = np.cumsum(a, axis=0)"], ARRAYS, "f8"))
    assert not only.edits()
