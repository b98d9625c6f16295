"""What a price leaves out; known also where no price is computed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Omission:
    """A part that a price leaves out: its line, what is written there, and why.

    A price with an omission is a lower bound.
    """

    line: int
    text: str
    reason: str
