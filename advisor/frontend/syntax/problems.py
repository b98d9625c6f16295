"""How the front end says that it does not understand something."""

from __future__ import annotations


class NotUnderstood(Exception):
    """An expression or statement outside the understood language; never an error of the user."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotKnown(NotUnderstood):
    """A name whose meaning was lost, or that was never given one."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name
