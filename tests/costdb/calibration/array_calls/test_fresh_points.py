"""Memory given anew, as it is timed: what is mapped when, and what is told of it for each line."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

from costdb.arrays.amounts import FAR, HUGE_BYTES
from costdb.calibration.array_calls.view_points import (
    SIZES,
    fresh_action,
    fresh_lines,
    fresh_points,
)
from costdb.calibration.section import Point, Timing

ITEM_BYTES = np.dtype("float64").itemsize


class Mapped:
    """Memory in the place of what the system maps: who holds how much of it, and how."""

    def __init__(self) -> None:
        self.open: list[int] = []
        self.most_open = 0
        self.sizes: list[int] = []
        self.private = True
        self.huge: list[int] = []
        self.filled: list[bool] = []

    def mmap(self, descriptor: int, size: int, flags: int) -> Any:
        outer = self
        self.private &= descriptor == -1 and flags == mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.sizes.append(size)
        self.open.append(size)
        self.most_open = max(self.most_open, len(self.open))

        class Pages(bytearray):
            def madvise(self, advice: int) -> None:
                assert advice == mmap.MADV_HUGEPAGE
                outer.huge.append(size)

            def close(self) -> None:
                outer.filled.append(bool(np.all(np.frombuffer(self) == 1.0)))
                outer.open.remove(size)

        return Pages(size)


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> Mapped:
    found = Mapped()
    monkeypatch.setattr(mmap, "mmap", found.mmap)
    return found


@pytest.mark.parametrize("point", fresh_points(), ids=str)
def test_what_is_timed_gets_the_memory_that_its_kind_says(point: Point, mapped: Mapped) -> None:
    given = SIZES[str(point.features["fresh"])]
    assert given.size_bytes == given.elements * given.count * ITEM_BYTES
    action = fresh_action(point)
    # waits for nobody, and works in one thread: the time that it ran is what counts
    assert action.alone
    assert not mapped.sizes
    action.run()
    if point.features["given"] == "kept":
        assert not mapped.sizes
        return
    size = given.elements * ITEM_BYTES
    assert mapped.sizes == [size] * given.count
    assert mapped.private
    assert not mapped.open
    # what is far goes back with all the rest, what is near before the next one comes
    far = str(point.features["fresh"]).endswith(FAR)
    assert mapped.most_open == (given.count if far else 1)
    assert mapped.huge == (mapped.sizes if size >= HUGE_BYTES else [])
    assert mapped.filled == [True] * given.count


def timings(kind: str, anew_us: list[float], kept_us: list[float]) -> list[Timing]:
    by_given = {"anew": anew_us, "kept": kept_us}
    return [
        Timing(point, (tuple((us,) for us in by_given[str(point.features["given"])]),))
        for point in fresh_points()
        if point.features["fresh"] == kind
    ]


@pytest.mark.parametrize("kind", SIZES)
def test_a_line_takes_what_comes_on_top_and_its_ends_hold_nine_in_ten(kind: str) -> None:
    lines = SIZES[kind].size_bytes / 64
    more_us = np.linspace(0.5, 2.5, 21)
    kept_us = 0.25 * lines
    times = [kept_us + more * lines for more in more_us]
    (stated,) = fresh_lines(timings(kind, times, [kept_us] * 5), 64).values()
    assert isinstance(stated, dict)
    ends = [stated[end] for end in ("low", "value", "high")]
    assert ends == pytest.approx([more_us[1], more_us[10], more_us[19]])


@pytest.mark.parametrize("kind", SIZES)
def test_memory_that_comes_for_nothing_takes_no_less_than_nothing(kind: str) -> None:
    (stated,) = fresh_lines(timings(kind, [90.0, 100.0, 120.0], [110.0] * 3), 64).values()
    assert isinstance(stated, dict)
    assert (stated["low"], stated["value"]) == (0.0, 0.0)
    assert 0.0 < float(str(stated["high"])) < 10.0 / (SIZES[kind].size_bytes / 64)


def test_nothing_is_told_of_a_kind_that_was_timed_by_half() -> None:
    (anew, kept) = timings("small", [2.0], [1.0])
    assert fresh_lines([anew], 64) == {}
    assert fresh_lines([anew, Timing(kept.point, ())], 64) == {}
    assert fresh_lines([Timing(Point("copy", {}), (((1.0,),),))], 64) == {}
