"""What sampling showed, beside what was predicted: as text, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from advisor.files import read_source
from advisor.measure.pieces import NoPiece, Piece, Subject
from advisor.report.style import Style, duration, ratio, table
from advisor.verify.cases import ORIGINAL, speed_up
from costdb.records import dataclass

_MOST_LINES = 12
_SMALL = 0.01


@dataclass(frozen=True, slots=True)
class Measurement:
    """A kernel or a whole file with its rewrites, and what sampling showed of each.

    `free` is the size, if any, that has no value of its own, so that it is measured at several.
    """

    subjects: tuple[Subject, ...]
    found: tuple[Piece | NoPiece, ...]
    sizes: Mapping[str, int | float]
    free: str = ""

    @property
    def seconds(self) -> float | None:
        """How long all of them take together; None where one could not be measured."""
        pieces = [one for one in self.found if isinstance(one, Piece)]
        return sum(one.mid_s for one in pieces) if len(pieces) == len(self.found) else None

    def faster(self, code: str, title: str) -> bool | None:
        """Return whether a rewrite is faster here; None where that is not known."""
        before = self.found[0]
        for subject, piece in zip(self.subjects[1:], self.found[1:], strict=True):
            if (subject.code, subject.title) != (code, title):
                continue
            if isinstance(before, Piece) and isinstance(piece, Piece):
                return piece.mid_s < before.mid_s
        return None

    @property
    def rewrites(self) -> tuple[tuple[str, str], ...]:
        """Rules and titles of its rewrites."""
        return tuple((one.code, one.title) for one in self.subjects[1:])


def changes_between(one: Measurement, other: Measurement) -> bool:
    """Return whether some rewrite is faster in one of two measurements, and not in the other."""
    return any({one.faster(*way), other.faster(*way)} == {True, False} for way in one.rewrites)


def faster_from(made: Sequence[Measurement]) -> Iterator[str]:
    """Yield from which value of their free size on the rewrites of a kernel are faster."""
    first, name = made[0], made[0].free
    at = ", ".join(f"{one.sizes[name]}" for one in made)
    for code, title in first.rewrites:
        said = [one.faster(code, title) for one in made]
        where = f"{first.subjects[0].path}: {first.subjects[0].name}, {code}"
        if None in said:
            continue
        slower = [number for number, faster in enumerate(said) if not faster]
        faster = [number for number, faster in enumerate(said) if faster]
        if not faster:
            what = f"never faster for {name} up to {made[-1].sizes[name]}"
        elif not slower:
            what = f"faster for every {name} tried"
        elif slower[-1] < faster[0]:
            what = f"faster from {name} = {made[faster[0]].sizes[name]}"
        elif faster[-1] < slower[0]:
            what = f"faster up to {name} = {made[faster[-1]].sizes[name]}"
        else:
            values = ", ".join(f"{made[number].sizes[name]}" for number in faster)
            what = f"faster at {name} = {values} only"
        yield f"{where}: {what} (measured at {at})"


def as_text(made: Sequence[Measurement], style: Style) -> str:
    """Return a line for each statement of a script, and for each kernel and rewrite."""
    text = "".join(_of_script(one, style) for one in made if not one.subjects[0].name)
    compared = [one for one in made if one.subjects[0].name or len(one.subjects) > 1]
    if compared:
        heads = ("kernel", "rule", "predicted", "measured", "from", "to", "faster")
        text += table(heads, [row for one in compared for row in _rows(one)], 2, style)
    kernels: dict[tuple[str, str], list[Measurement]] = {}
    for one in compared:
        if one.free:
            kernels.setdefault((one.subjects[0].path, one.subjects[0].name), []).append(one)
    notes = [line for of_kernel in kernels.values() for line in faster_from(of_kernel)]
    notes += dict.fromkeys(line for one in compared for line in _notes(one))
    return text + "".join(f"{line}\n" for line in notes)


def _rows(one: Measurement) -> Iterator[tuple[str, ...]]:
    before = one.found[0]
    for subject, piece in zip(one.subjects, one.found, strict=True):
        written = subject.title == ORIGINAL
        name = f":{subject.name}" if subject.name else ""
        name += f" {one.free}={one.sizes[one.free]}" if one.free else ""
        yield (
            f"{subject.path}{name}" if written else "",
            subject.code or ORIGINAL,
            "unknown" if subject.predicted_s is None else duration(subject.predicted_s),
            *(
                ("-", "-", "-")
                if isinstance(piece, NoPiece)
                else (duration(piece.mid_s), duration(piece.low_s), duration(piece.high_s))
            ),
            "" if written else _faster(before, piece),
        )


def _faster(before: Piece | NoPiece, after: Piece | NoPiece) -> str:
    if isinstance(before, NoPiece) or isinstance(after, NoPiece):
        return "-"
    found = speed_up(before.times_s, after.times_s)
    return f"{ratio(found.mid)} ({ratio(found.low)} to {ratio(found.high)})"


def _notes(one: Measurement) -> Iterator[str]:
    for subject, piece in zip(one.subjects, one.found, strict=True):
        if not subject.name and subject.title == ORIGINAL:
            continue
        name = f"{subject.path}: {subject.name or 'the file'}, {subject.code or subject.title}"
        if isinstance(piece, NoPiece):
            yield f"{name}: not measured: line {piece.line}: {piece.why}"
            continue
        for line, text in subject.left_out:
            yield f"{name}: left out: line {line}: {text}"
        if piece.skipped and subject.title == ORIGINAL:
            yield f"{name}: {_in_words(piece)}"


def _in_words(piece: Piece) -> str:
    loops = ", ".join(f"line {line}" for line in piece.skipped)
    return f"of the iterations of {loops} some were run, and the others taken to be like them"


def _of_script(one: Measurement, style: Style) -> str:
    subject, piece = one.subjects[0], one.found[0]
    if isinstance(piece, NoPiece):
        return f"{subject.path}: not measured: line {piece.line}: {piece.why}\n"
    lines = read_source(subject.path).text.splitlines()
    times = {line: mid for line, (_, mid, _) in piece.parts_s.items()}
    total = sum(times.values())
    most = sorted(times.items(), key=lambda pair: -pair[1])[:_MOST_LINES]
    rows = [
        (f"{line}", lines[line - 1].strip()[:60], duration(seconds), f"{seconds / total:.0%}")
        for line, seconds in sorted(most)
        if seconds >= _SMALL * total
    ]
    least = "at least " if subject.left_out else ""
    head = (
        f"{subject.path}: {least}{duration(piece.mid_s)} ({duration(piece.low_s)} to"
        f" {duration(piece.high_s)}), measured in {duration(piece.spent_s)}\n"
    )
    notes = [_in_words(piece)] if piece.skipped else []
    notes += [f"left out: line {line}: {text}" for line, text in subject.left_out]
    shown = table(("line", "statement", "time", "share"), rows, 2, style)
    return head + shown + "".join(f"{note}\n" for note in notes)


def as_json(made: Sequence[Measurement]) -> str:
    """Return a JSON document: everything in seconds."""
    document = {"measured": [entry for one in made for entry in _entries(one)]}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _entries(one: Measurement) -> Iterator[dict[str, Any]]:
    for subject, piece in zip(one.subjects, one.found, strict=True):
        entry: dict[str, Any] = {
            "path": subject.path,
            "kernel": subject.name or None,
            "code": subject.code or None,
            "title": subject.title,
            "sizes": dict(one.sizes),
            "predicted_s": subject.predicted_s,
        }
        if isinstance(piece, NoPiece):
            yield {**entry, "unknown": {"line": piece.line, "why": piece.why}}
            continue
        yield {
            **entry,
            "measured_s": dict(zip(("low", "mid", "high"), piece.times_s, strict=True)),
            "provenance": "measured in stretches, on made-up arrays",
            "complete": subject.complete,
            "statements_s": {str(line): mid for line, (_, mid, _) in piece.parts_s.items()},
            "iterations_not_run": {str(line): many for line, many in piece.skipped.items()},
            "left_out": [{"line": line, "text": text} for line, text in subject.left_out],
        }
