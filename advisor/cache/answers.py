"""The answers of the engine, by everything that they depend on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from advisor.cache.codec import VERSION, Answer, decode, encode
from advisor.cache.environment import tool_digest
from advisor.cache.store import Cache, digest
from advisor.engine import Options
from advisor.frontend.beside import surroundings
from advisor.project import lasting_name


@dataclass(frozen=True, slots=True)
class Question:
    """One file to check.

    Attributes
    ----------
    path : str
        As reports show it.
    source : str
    options : Options
    machine_digest : str
        Of the content of the machine's profile.
    """

    path: str
    source: str
    options: Options
    machine_digest: str


@dataclass(frozen=True)
class Answers:
    """Answers in a cache."""

    cache: Cache

    @cached_property
    def environment(self) -> str:
        """Digest of the tool and what is installed."""
        return digest(str(VERSION), tool_digest(), str(Path.cwd()))

    def find(self, question: Question) -> Answer | None:
        """Return the answer kept for a question, if nothing changed that it depends on."""
        values = self.cache.read(_name(question), self._key(question))
        try:
            return None if values is None else decode(values)
        except (TypeError, ValueError):
            return None

    def keep(self, question: Question, answer: Answer) -> None:
        """Keep an answer in place of an older one for the same file and options."""
        self.cache.write(_name(question), self._key(question), encode(answer))

    def _key(self, question: Question) -> str:
        beside = surroundings(question.path, question.source)
        # fingerprints change when a project is made around a file
        name = lasting_name(question.path)
        return digest(self.environment, question.machine_digest, question.source, beside, name)


def _name(question: Question) -> str:
    options = question.options
    described = json.dumps(
        [
            options.machine,
            sorted(options.sizes.items()),
            sorted(options.size_origins.items()),
            options.select,
            options.ignore,
            options.min_speedup,
            sorted(options.rule_min_speedup.items()),
            [repr(seen) for seen in options.observed],
            [repr(seen) for seen in options.messages],
            options.details,
            options.everything,
        ]
    )
    return digest(str(Path.cwd()), question.path, described)[:40]
