"""What runs of programs showed of the files that are checked, from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import path as paths
from typing import TYPE_CHECKING

from costdb.store.extract import state_of
from costdb.store.place import StoreError, store_path

if TYPE_CHECKING:
    from advisor.observed import Seen, SeenMessages

FUNCTION, MESSAGE = "function", "message"
"""Kinds of observations."""


def report_nowhere(line: str) -> None:
    """Take a line about the store that is not worth telling."""


@dataclass(slots=True)
class Observations:
    """Looks up what runs showed of files; the store is read again once it changed.

    Attributes
    ----------
    report : callable
        Told in one line why the store cannot be used; advice then goes without it.
    """

    report: Callable[[str], None] = report_nowhere
    _state: object = None
    _known: Mapping[str, tuple[Seen, ...]] = field(default_factory=dict)
    _messages: Mapping[str, tuple[SeenMessages, ...]] = field(default_factory=dict)

    def of_file(self, path: str) -> tuple[Seen, ...]:
        """Return what is known of the functions of a file, in the order it was stored."""
        self._renew()
        return self._known.get(paths.realpath(path), ()) if self._known else ()

    def messages_of_file(self, path: str) -> tuple[SeenMessages, ...]:
        """Return what is known of the messages that the lines of a file send and receive."""
        self._renew()
        return self._messages.get(paths.realpath(path), ()) if self._messages else ()

    def _renew(self) -> None:
        state = state_of(store_path())
        if state != self._state:
            self._state = state
            self._known, self._messages = ({}, {}) if state is None else self._read()

    def _read(
        self,
    ) -> tuple[Mapping[str, tuple[Seen, ...]], Mapping[str, tuple[SeenMessages, ...]]]:
        from advisor.observed import from_document, messages_from
        from costdb.store.evidence import stored_functions, stored_messages

        found: dict[str, list[Seen]] = {}
        messages: dict[str, list[SeenMessages]] = {}
        try:
            for path, document in stored_functions():
                found.setdefault(path, []).append(from_document(document))
            for path, document in stored_messages():
                # a store of an older version tells less
                if {"text", "whole"} <= document.keys():
                    messages.setdefault(path, []).append(messages_from(document))
        except (StoreError, KeyError, TypeError, ValueError) as error:
            self.report(f"advise: observed sizes are left out: {error}")
            return {}, {}
        return (
            {path: tuple(seen) for path, seen in found.items()},
            {path: tuple(seen) for path, seen in messages.items()},
        )
