"""Tables of several calibrations: what ``verify`` and ``validate`` found after each, and medians.

A figure of a run that was not made is ``-``. The median of counts such as 41 of 42 is the run in
the middle by share, the lower of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_low
from typing import Any

Document = Mapping[str, Any]
LEAST_SHARE_INSIDE = 0.9

_MISSING = "-"


@dataclass(frozen=True, slots=True)
class Run:
    """What is known after one calibration.

    Attributes
    ----------
    name : str
    calibrated, verified : mapping or None
    validated : mapping of str to mapping
        The sections, by name.
    """

    name: str
    calibrated: Document | None
    verified: Document | None
    validated: Mapping[str, Document]

    def rows(self, section: str) -> list[Document]:
        """Return the rows of a section; none where it was not made."""
        return list(self.validated.get(section, {}).get("rows", ()))


@dataclass(frozen=True, slots=True)
class Count:
    """So many of so many."""

    part: int
    whole: int

    @property
    def share(self) -> float:
        """The part of the whole; 1 of nothing."""
        return self.part / self.whole if self.whole else 1.0

    def __str__(self) -> str:
        return f"{self.part} of {self.whole}"


Value = float | Count


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a table.

    Attributes
    ----------
    name : str
    values : sequence of float, Count or None
        One for each run.
    shown : callable
        A value as text.
    bar : str
        What the median must keep to, as text; empty where nothing is asked.
    holds : callable
        Whether a number (of a count, its share) keeps to the bar.
    """

    name: str
    values: Sequence[Value | None]
    shown: Callable[[Value], str]
    bar: str = ""
    holds: Callable[[float], bool] = lambda number: True

    @property
    def middle(self) -> Value | None:
        """The median over the runs that have a value."""
        known = [value for value in self.values if value is not None]
        counts = [value for value in known if isinstance(value, Count)]
        if counts:
            share = median_low(sorted(one.share for one in counts))
            return next(one for one in counts if one.share == share)
        return median(value for value in known if not isinstance(value, Count)) if known else None

    @property
    def verdict(self) -> str:
        """``yes`` or ``NO``, empty where nothing is asked or known."""
        middle = self.middle
        if not self.bar or middle is None:
            return ""
        return _yes(self.holds(_number(middle)))


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def _number(value: Value) -> float:
    return value.share if isinstance(value, Count) else value


def markdown(runs: Sequence[Run]) -> str:
    """Return all tables."""
    parts = [
        _table("in all", [*_efforts(runs), *_predictions(runs), *_claims(runs)], runs),
        _table("shared memory", _supersteps(runs), runs),
        _table("remote references, predicted over measured time", _remote(runs), runs),
        _table("distributions", _distributions(runs), runs),
    ]
    return "\n".join(part for part in parts if part)


def _table(title: str, figures: Sequence[Figure], runs: Sequence[Run]) -> str:
    rows = [
        [
            one.name,
            *(_MISSING if value is None else one.shown(value) for value in one.values),
            _MISSING if one.middle is None else one.shown(one.middle),
            one.bar,
            one.verdict,
        ]
        for one in figures
    ]
    return _lines([title, *(run.name for run in runs), "median", "bar", "holds"], rows)


def _lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    every = [list(heads), ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in every)


def _efforts(runs: Sequence[Run]) -> Iterator[Figure]:
    seconds = [None if run.calibrated is None else run.calibrated["seconds"] for run in runs]
    yield Figure("`advise calibrate` took", seconds, _seconds, "600 s", lambda s: s <= 600)
    for name, busy in (
        ("others kept busy meanwhile, in the worst launch", map(_busiest_launch, runs)),
        ("others kept busy during `advise verify`", map(_busy_while_verified, runs)),
        ("others kept busy in the worst section of `advise validate`", map(_busiest, runs)),
    ):
        yield Figure(name, list(busy), lambda cores: f"{cores:.1f} cores")


def _busiest_launch(run: Run) -> float | None:
    return None if run.calibrated is None else run.calibrated["others_busy_cores"]


def _busy_while_verified(run: Run) -> float | None:
    return None if run.verified is None else run.verified["others_busy_cores"]


def _busiest(run: Run) -> float | None:
    kept = [section["others_busy_cores"] for section in _measuring(run)]
    return max((cores for cores in kept if cores is not None), default=None)


def _measuring(run: Run) -> list[Document]:
    # `lines` and `smp` measure nothing, so nobody disturbs them
    return [one for name, one in run.validated.items() if name not in ("lines", "smp")]


def _predictions(runs: Sequence[Run]) -> Iterator[Figure]:
    said = [None if run.verified is None else run.verified["summary"] for run in runs]

    def of(take: Callable[[Document], Value]) -> list[Value | None]:
        return [None if one is None else take(one) for one in said]

    yield Figure(
        "median error of predicted times",
        of(lambda one: one["median_error"]), _percent, "15 %", lambda error: error < 0.15,
    )  # fmt: skip
    yield Figure(
        "pairs more than 10 % apart ranked right",
        of(lambda one: Count(one["right"], one["unlike"])), str, "95 %", lambda s: s >= 0.95,
    )  # fmt: skip
    yield Figure(
        "measured times inside the interval",
        of(lambda one: Count(one["inside"], one["judged"])),
        str, "90 %", lambda share: share >= LEAST_SHARE_INSIDE,
    )  # fmt: skip
    yield Figure(
        "median half-width of the interval",
        of(lambda one: one["median_half_width"]), _percent, "30 %", lambda width: width < 0.3,
    )  # fmt: skip


def _claims(runs: Sequence[Run]) -> Iterator[Figure]:
    """Yield counts over the rows of whole sections."""
    yield Figure(
        "runs of the sorts inside the interval",
        [_runs_inside(run) for run in runs], str, "all", lambda share: share == 1,
    )  # fmt: skip
    yield Figure(
        "one-sided programs within 15 %",
        [_count(run.rows("pgas"), lambda row: abs(row["values"]["error"]) <= 0.15) for run in runs],
        str, "all", lambda share: share == 1,
    )  # fmt: skip
    yield Figure(
        "one-sided programs inside the interval",
        [
            _count([row for row in run.rows("pgas") if "low_us" in row["values"]], _is_inside)
            for run in runs
        ],
        str,
    )
    yield Figure("shift or scan decided right", [_decided(run) for run in runs], str)
    yield Figure(
        "distributions decided right",
        [_count(_judged(run.rows("choices")), lambda row: row["verdict"] == "holds")
         for run in runs],
        str,
    )  # fmt: skip


def _count(rows: Sequence[Document], is_so: Callable[[Document], bool]) -> Count | None:
    return Count(sum(map(is_so, rows)), len(rows)) if rows else None


def _is_inside(row: Document) -> bool:
    values = row["values"]
    return bool(values["low_us"] <= values["measured_us"] <= values["high_us"])


def _judged(rows: Sequence[Document]) -> list[Document]:
    return [r for r in rows if r["figure"] == "faster way" and r["verdict"] != "unjudged"]


def _runs_inside(run: Run) -> Count | None:
    rows = [row for row in run.rows("sorts") if "inside" in row["values"]]
    if not rows:
        return None
    inside, whole = (sum(int(row["values"][name]) for row in rows) for name in ("inside", "runs"))
    return Count(inside, whole)


def _decided(run: Run) -> Count | None:
    rows = [row["values"] for row in run.rows("crossover") if "judged" in row["values"]]
    if not rows:
        return None
    return Count(int(sum(one["right"] for one in rows)), int(sum(one["judged"] for one in rows)))


def _supersteps(runs: Sequence[Run]) -> list[Figure]:
    figures = [
        Figure(name, values, _percent, "7 %", lambda error: error < 0.07)
        for name, values in _by_operation(
            runs, "smp", "mean_relative_error", "error of the profile's function"
        )
    ]
    sorts: dict[str, list[Value | None]] = {}
    for number, run in enumerate(runs):
        for row in run.rows("sorts"):
            given = row["values"]
            if "inside" in given:
                values = sorts.setdefault(row["operation"], [None] * len(runs))
                values[number] = Count(int(given["inside"]), int(given["runs"]))
    return figures + [
        Figure(f"{name}: runs inside", values, str, "all", lambda share: share == 1)
        for name, values in sorts.items()
    ]


def _remote(runs: Sequence[Run]) -> list[Figure]:
    return [
        Figure(name, values, lambda error: f"{error:+.1%}", "15 %", lambda e: abs(e) <= 0.15)
        for name, values in _by_operation(runs, "pgas", "error")
    ]


def _distributions(runs: Sequence[Run]) -> list[Figure]:
    return [
        Figure(f"{name}: mean error of predicted times", values, _percent)
        for name, values in _by_operation(runs, "choices", "mean_error")
    ]


def _by_operation(
    runs: Sequence[Run], section: str, value: str, figure: str = ""
) -> Iterator[tuple[str, list[Value | None]]]:
    """Yield a value of each operation over all runs, in the order in which they come."""
    found: dict[str, list[Value | None]] = {}
    for number, run in enumerate(runs):
        for row in run.rows(section):
            if value in row["values"] and figure in ("", row["figure"]):
                found.setdefault(row["operation"], [None] * len(runs))[number] = row["values"][
                    value
                ]
    yield from found.items()


def _percent(value: Value) -> str:
    number = 100 * _number(value)
    return f"{number:.1f} %" if number < 9.95 else f"{number:.0f} %"


def _seconds(value: Value) -> str:
    return f"{_number(value):.0f} s"
