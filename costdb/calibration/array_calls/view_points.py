"""Views that are timed: an interpreter takes longer for every index and slice in a subscript."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any

from costdb.calibration.section import Action, Point
from costdb.work import Written

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_SUBSCRIPT = "subscript"
_REPEATED = 200
_WRITTEN: Mapping[str, Written] = {
    "T": Written(),
    "i": Written(indices=1),
    "a:": Written(slices=1, bounds=1),
    "a:-b": Written(slices=1, bounds=2),
    "i, :": Written(indices=1, slices=1),
    ":, i": Written(indices=1, slices=1),
    "i, a:-b": Written(indices=1, slices=1, bounds=2),
    "a:-b, c:": Written(slices=2, bounds=3),
    "a:-b, c:-d": Written(slices=2, bounds=4),
    "i, i, a:-b": Written(indices=2, slices=1, bounds=2),
    "i, a:, a:-b": Written(indices=1, slices=2, bounds=3),
    "a:-b, a:-b, a:-b": Written(slices=3, bounds=6),
    "i = itself": Written(indices=1, kept=True),
    "a:-b = itself": Written(slices=1, bounds=2, kept=True),
    "i, a: = itself": Written(indices=1, slices=1, bounds=1, kept=True),
}


def view_points() -> list[Point]:
    """Return subscripts that tell indices, slices and their number apart."""
    return [
        Point("view", {"operation": "view", "dtype": "any", _SUBSCRIPT: name}) for name in _WRITTEN
    ]


def written_at(point: Point) -> Written:
    """Return the subscript of a point in the words of the model.

    Points of calibrations from before there were several have two slices.
    """
    return _WRITTEN[str(point.features.get(_SUBSCRIPT, "a:-b, c:"))]


def view_action(memory: Array, point: Point) -> Action:
    """Return the repetition of one view.

    Each is written out in a loop of its own, as calling a function takes half as long as a view.
    """
    matrix, block = memory[:10_000].reshape(100, 100), memory[:9261].reshape(21, 21, 21)
    vector, i = memory[:100], 7
    row, some, part = matrix[i], vector[1:-1], matrix[i, 1:]

    def turned() -> None:
        for _ in repeat(None, _REPEATED):
            matrix.T  # noqa: B018  # making it is what is timed

    def row_of() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i]

    def tail() -> None:
        for _ in repeat(None, _REPEATED):
            vector[1:]

    def inner() -> None:
        for _ in repeat(None, _REPEATED):
            vector[1:-1]

    def whole_row() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i, :]

    def column() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[:, i]

    def inner_of_row() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i, 1:-1]

    def lower_right() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[1:-1, 2:]

    def inside() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[1:-1, 2:-2]

    def line() -> None:
        for _ in repeat(None, _REPEATED):
            block[i, i, 1:-1]

    def panel() -> None:
        for _ in repeat(None, _REPEATED):
            block[i, 1:, 1:-1]

    def inner_block() -> None:
        for _ in repeat(None, _REPEATED):
            block[1:-1, 1:-1, 1:-1]

    def row_kept() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i] = row

    def some_kept() -> None:
        for _ in repeat(None, _REPEATED):
            vector[1:-1] = some

    def part_kept() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i, 1:] = part

    views: Mapping[str, Callable[[], None]] = {
        "T": turned,
        "i": row_of,
        "a:": tail,
        "a:-b": inner,
        "i, :": whole_row,
        ":, i": column,
        "i, a:-b": inner_of_row,
        "a:-b, c:": lower_right,
        "a:-b, c:-d": inside,
        "i, i, a:-b": line,
        "i, a:, a:-b": panel,
        "a:-b, a:-b, a:-b": inner_block,
        "i = itself": row_kept,
        "a:-b = itself": some_kept,
        "i, a: = itself": part_kept,
    }
    return Action(views[str(point.features[_SUBSCRIPT])], _REPEATED, alone=True)
