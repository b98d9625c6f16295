"""JSON documents read with suspicion: one line with file and place for whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

# Larger documents are not profiles; refusing early keeps hostile ones cheap.
_LARGEST_DOCUMENT_BYTES = 4_000_000

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class MachineError(ValueError):
    """A profile that cannot be used; the message is one line with file and JSON place."""


class UnknownMachineError(MachineError):
    """No machine has this name; the message offers the nearest names."""


def read_document(path: Path) -> dict[str, Json]:
    """Read a JSON object from a file.

    Raises
    ------
    MachineError
        The file cannot be read, is too large, or is not a JSON object.
    """
    return parse_document(read_text(path), str(path))


def read_text(path: Path) -> bytes:
    """Return the text of a document in a file, one that is too large not to its end.

    Raises
    ------
    MachineError
        The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise MachineError(f"cannot read machine profile {path}: {reason}") from error


def parse_document(text: bytes | str, where: str) -> dict[str, Json]:
    """Parse a JSON object; `where` names it in errors.

    Raises
    ------
    MachineError
        Not JSON, not an object, a key given twice, nested too deeply or too large.
    """
    if len(text) > _LARGEST_DOCUMENT_BYTES:
        raise MachineError(f"{where}: larger than {_LARGEST_DOCUMENT_BYTES} bytes")
    try:
        document: Json = json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise MachineError(
            f"{where}:{error.lineno}:{error.colno}: not JSON: {error.msg}"
        ) from error
    except UnicodeDecodeError as error:
        raise MachineError(f"{where}: not JSON: not UTF-8 text") from error
    except RecursionError as error:
        raise MachineError(f"{where}: nested too deeply") from error
    except ValueError as error:
        raise MachineError(f"{where}: {error}") from error
    if not isinstance(document, dict):
        raise MachineError(f"{where}: /: expected an object")
    return document


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f'the key "{twice}" is given twice in one object')
    return found


def place_of(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path of keys and indices."""
    return "".join(f"/{escaped(str(key))}" for key in path)


def escaped(key: str) -> str:
    """Return a key as it is spelt within a JSON pointer on one line."""
    return key.replace("~", "~0").replace("/", "~1").replace("\n", "\\n")


def shown(value: object) -> str:
    """Return a value as short JSON on one line, for messages."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


def to_float(value: Json) -> float:
    """Return a JSON number that was checked to be one."""
    assert isinstance(value, int | float)
    return float(value)


# A measured number, as a profile states it.

SOURCE = "calibration"
"""The name under which a profile cites the calibration that made it."""


def measured(
    value: float,
    unit: str,
    low: float | None = None,
    high: float | None = None,
    note: str | None = None,
) -> dict[str, Json]:
    """Return a measured quantity as a profile states it."""
    stated: dict[str, Json] = {"value": _rounded(value), "unit": unit}
    if low is not None and high is not None:
        stated |= {
            "low": min(_rounded(low), _rounded(value)),
            "high": max(_rounded(high), _rounded(value)),
        }
    stated |= {"provenance": "measured", "source": SOURCE}
    return stated if note is None else {**stated, "note": note}


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
