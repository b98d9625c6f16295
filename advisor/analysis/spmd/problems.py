"""How lowering says that no model covers a step."""

from __future__ import annotations


class NoWork(Exception):
    """A step of which no model says how long it takes."""
