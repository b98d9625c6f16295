"""A section that is measured in no time: sums over lists, with and without MPI."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Host,
    Need,
    Point,
    Quality,
    Timing,
    World,
)


@dataclass(frozen=True)
class Sums:
    name: str
    needs: frozenset[Need] = frozenset()
    title: str = "sums of lists"

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        return [
            Point(f"{self.name}.sum", {"elements": count, "ranks": processors}, count == 300)
            for count in (100, 200, 300, 400)
        ]

    def action(self, point: Point, world: World) -> Action:
        print("sections may print")
        numbers = list(range(int(point.features["elements"])))
        return Action(lambda: sum(numbers), repetitions=1)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        if not timings:
            raise ValueError("nothing was measured")
        slope = max(
            timing.typical_us / float(timing.point.features["elements"]) for timing in timings
        )
        quantity = {
            "value": slope,
            "unit": "us/element",
            "provenance": "measured",
            "source": "calibration",
        }
        quality = Quality(f"{self.name}.sum", 0.05)
        key = self.name.partition(":")[2].lower()
        return Fitted({"hardware": {f"sum_{key}_us": quantity}}, (quality,), ("of lists",))


@dataclass(frozen=True)
class Broken(Sums):
    def action(self, point: Point, world: World) -> Action:
        raise RuntimeError("the sensor is broken")


@dataclass(frozen=True)
class Unfit(Sums):
    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        raise ValueError("no model fits")


@dataclass(frozen=True)
class Empty(Sums):
    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        return []

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        raise AssertionError("there is nothing to fit")


@dataclass(frozen=True)
class Faulty(Sums):
    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        raise TypeError("a fault")


@dataclass(frozen=True)
class Slow(Sums):
    def action(self, point: Point, world: World) -> Action:
        return Action(lambda: time.sleep(0.5))


def _name(attribute: str) -> str:
    return f"calibration_fake:{attribute}"


ALONE = Sums(_name("ALONE"))
TOGETHER = Sums(_name("TOGETHER"), frozenset((Need.MPI,)))
BROKEN = Broken(_name("BROKEN"))
UNFIT = Unfit(_name("UNFIT"))
EMPTY = Empty(_name("EMPTY"))
FAULTY = Faulty(_name("FAULTY"))
SLOW = Slow(_name("SLOW"))
