"""Tables of models in pieces: what lines leave unexplained beside bytes or elements alone.

A row is an operation with one type of its elements, an operation with all of them, or a family of
operations, as ``advise validate`` tells them apart. Stores of before it did have the first only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

Document = Mapping[str, Any]

GREATEST_ERROR_HELD_OUT = 0.10
SAME = 0.01
"""Within which part of each other two R2 are of models that say the same."""
LESS, BY_ERROR, NOISE, MORE = "yes", "yes, by median error", "within noise", "NO"
SAME_MODEL = "same by construction"
"""Whether lines leave less unexplained; of two models that say the same, none does."""
CLASS, OPERATION, FAMILY = 1, 2, 3
TITLES = {
    FAMILY: "families of operations",
    OPERATION: "operations, all types",
    CLASS: "operations and types",
}
_MISSING = "-"
_WANTED = ("r2", "r2_standard", "median_error")
_FIGURES = ("r2", "median_error")
_ENDS = ("low", "high")
_COMPARED = (
    *_WANTED,
    *(f"{figure}_difference_{end}" for figure in _FIGURES for end in _ENDS),
    "repeats_within",
)


def compared(rows: Sequence[Document], scope: int) -> list[Document]:
    """Return the rows of one scope that hold the model in pieces against the standard one.

    What has no types of elements, such as a message, is an operation by itself, too.
    """
    known = [row for row in rows if all(name in row["values"] for name in _WANTED)]
    of_scope = [row for row in known if row["values"].get("scope", CLASS) == scope]
    if scope == OPERATION and of_scope:
        return [row for row in compared(rows, CLASS) if " " not in row["operation"]] + of_scope
    return of_scope


def same(values: Document) -> bool:
    """Return whether both models say the same, so that none can be the better one."""
    ends = [values.get(f"{figure}_difference_{end}") for figure in _FIGURES for end in _ENDS]
    if None not in ends:
        return not any(ends)
    return bool(abs(values["r2"] - values["r2_standard"]) <= SAME * values["r2_standard"])


def told(values: Document) -> str:
    """Return whether lines leave less, as far as draws of points and launches can tell.

    They do when R2 or the median error is less and neither is more.
    """
    if same(values):
        return SAME_MODEL
    verdicts = {figure: _told(values, figure) for figure in _FIGURES}
    if MORE in verdicts.values():
        return MORE
    if verdicts["r2"] == LESS:
        return LESS
    return BY_ERROR if verdicts["median_error"] == LESS else NOISE


def _told(values: Document, figure: str) -> str:
    difference = values[figure] - values.get(f"{figure}_standard", values[figure])
    low, high = (float(values.get(f"{figure}_difference_{end}", difference)) for end in _ENDS)
    return LESS if high < 0 else MORE if low > 0 else NOISE


def close(row: Document) -> bool:
    """Return whether the chosen model keeps to the bar."""
    return bool(row["values"]["median_error"] < GREATEST_ERROR_HELD_OUT)


def tables(runs: Sequence[tuple[str, Sequence[Document]]]) -> Iterator[list[list[str]]]:
    """Yield, for each scope, heads and rows: both R2 and the error of the chosen model.

    Parameters
    ----------
    runs : sequence of (str, sequence of mapping)
        The name of each run and what it has of ``lines``.
    """
    for scope, title in TITLES.items():
        found: dict[str, list[Document | None]] = {}
        for number, (_, rows) in enumerate(runs):
            for row in compared(rows, scope):
                values = found.setdefault(row["operation"], [None] * len(runs))
                values[number] = row["values"]
        if found:
            names = [name for name, _ in runs]
            heads = [f"{title}: R2 without lines / with lines, median error", *names, "median"]
            made = [_row(operation, values) for operation, values in found.items()]
            yield [[*heads, "a launch repeats within", "lines less", "under 10 %"], *made]


def _row(operation: str, values: Sequence[Document | None]) -> list[str]:
    known = [one for one in values if one is not None]
    middle = {
        name: median(one[name] for one in known)
        for name in _COMPARED
        if all(name in one for one in known)
    }
    repeats = middle.get("repeats_within")
    return [
        operation,
        *(_MISSING if one is None else _both(one) for one in values),
        _both(middle),
        _MISSING if repeats is None else percent(repeats),
        told(middle),
        "yes" if middle["median_error"] < GREATEST_ERROR_HELD_OUT else "NO",
    ]


def _both(values: Document) -> str:
    error = percent(float(values["median_error"]))
    return f"{values['r2_standard']:.3g} / {values['r2']:.3g}, {error}"


def percent(share: float) -> str:
    """Return a share as a percentage with two significant digits."""
    number = 100 * share
    return f"{number:.1f} %" if number < 9.95 else f"{number:.0f} %"
