"""Structured values as text in the store's columns, finite numbers only."""

from __future__ import annotations

import json
from typing import Any

from costdb.store.place import StoreError


def to_text(value: object) -> str:
    """Return a value as JSON.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise StoreError("a number to be stored is not finite") from error


def from_text(text: str) -> Any:
    """Return the value that :func:`to_text` wrote.

    Raises
    ------
    StoreError
        The text was altered since.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreError("a stored value is damaged: it cannot be read back") from error
