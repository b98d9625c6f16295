"""What every rule tells of itself, whatever it looks at."""

from __future__ import annotations

from typing import Protocol


class Rule(Protocol):
    """One kind of choice, with a page of its own."""

    @property
    def code(self) -> str:
        """Stable code, such as ``ADV201``."""
        ...

    @property
    def name(self) -> str:
        """Kebab-case name of the anti-pattern."""
        ...

    @property
    def documentation(self) -> str:
        """The rule's page, in Markdown."""
        ...

    @property
    def module(self) -> str:
        """The module that it is in, which begins with its page."""
        ...
