"""Records as JSON values and back, without any loss.

A dataclass is a list in the order of its fields, because only this module reads it. Pickles would
do the same, but reading one runs what it says, and a cache or a store lies where others may have
filled it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from costdb.records import fields, is_dataclass

_Kind = TypeVar("_Kind")


def encode(value: Any) -> Any:
    """Return values that JSON can hold."""
    if is_dataclass(value):
        return [encode(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted(value)
    return [encode(one) for one in value] if isinstance(value, tuple) else value


def decode(kind: Callable[..., _Kind], values: Any) -> _Kind:
    """Return what :func:`encode` was given; raises TypeError or ValueError for other values."""
    found: _Kind = _decoder(kind)(values)
    return found


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """Return what makes values of a type out of those of JSON."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, UnionType):
        return _one_of(parts)
    if origin is Literal:
        return lambda value: parts[parts.index(value)]
    if origin is tuple and parts[1:] != (...,):
        each = tuple(map(_decoder, parts))
        return lambda values: tuple(
            read(one) for read, one in zip(each, _checked(values, list), strict=True)
        )
    if origin in (tuple, frozenset):
        read = _decoder(parts[0])
        return lambda values: origin(read(one) for one in _checked(values, list))
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

    def read(value: Any) -> Any:
        if isinstance(value, plain):
            return value
        *first, last = others
        for one in first:
            try:
                return one(value)
            except (TypeError, ValueError):
                continue  # of records the one with so many fields
        return last(value)

    return read


def _checked(value: Any, kind: type) -> Any:
    if isinstance(value, kind) or (kind is float and type(value) is int):
        return value
    raise TypeError(f"{kind.__name__} expected")
