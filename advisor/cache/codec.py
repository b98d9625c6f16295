"""Findings as JSON values and back, without any loss.

A dataclass is a list in the order of its fields, because only this module reads it. Pickles would
do the same, but reading one runs what it says, and a cache lies in a folder that others may have
filled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from advisor.finding import NOTHING_SEEN, Coverage, Finding, Remark

VERSION = 5


@dataclass(frozen=True)
class Answer:
    """What was found in a file, to which names in it a value can be given, and what was seen."""

    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]
    names: frozenset[str] = frozenset()
    coverage: Coverage = NOTHING_SEEN


def encode(value: Any) -> Any:
    """Return JSON values; infinities and NaN stay Python's spelling of them."""
    if is_dataclass(value):
        return [encode(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted(value)
    return [encode(one) for one in value] if isinstance(value, tuple) else value


def decode(values: Any) -> Answer:
    """Return what `encode` was given; raises ValueError or TypeError for anything else."""
    answer: Answer = _decoder(Answer)(values)
    return answer


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """Return what makes a value of a type out of JSON values."""
    parts = get_args(kind)
    if isinstance(kind, UnionType):
        return _one_of(parts)
    if get_origin(kind) in (tuple, frozenset):
        each = _decoder(parts[0])
        return lambda values: get_origin(kind)(each(one) for one in _checked(values, list))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        readers = [_decoder(hints[field.name]) for field in fields(kind)]
        return lambda values: kind(
            *(read(one) for read, one in zip(readers, _checked(values, list), strict=True))
        )
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return lambda value: _checked(value, kind)


def _one_of(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    plain = tuple(kind for kind in kinds if kind in (str, int, float, NoneType))
    others = [_decoder(kind) for kind in kinds if kind not in plain]
    return lambda value: value if isinstance(value, plain) or not others else others[0](value)


def _checked(value: Any, kind: type) -> Any:
    if isinstance(value, kind) or (kind is float and type(value) is int):
        return value
    raise TypeError(f"{kind.__name__} expected")
