"""Whatever can be predicted, seen alike: parameters in, a price out.

A process model, a description of an application and an annotated kernel differ in what they
are made of; to a prediction and to a ranking each is a :class:`Subject`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from costdb.estimate import Missing, Priced
from costdb.records import dataclass

Number: TypeAlias = int | float
Chosen: TypeAlias = str | Number
"""What a parameter is given: a word, or a number, which may come as text."""


class SubjectError(ValueError):
    """A subject or a choice that cannot be used; the message is one line with its place."""


class PlacedError(SubjectError):
    """Something wrong in a text; the message begins with file, line and column."""


class RefusedError(SubjectError):
    """This choice is not allowed, others may be."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A checked choice.

    Attributes
    ----------
    words : mapping of str to str
        They decide which formula holds.
    numbers : mapping of str to int or float
        They go into the formula: parameters, and sizes that words stand for.
    shown : mapping of str to str, int or float
        What a report names: every parameter that has a value, in the subject's order.
    """

    words: Mapping[str, str]
    numbers: Mapping[str, Number]
    shown: Mapping[str, Chosen]


class Subject(Protocol):
    """What a prediction is made for, on one machine or on none."""

    @property
    def origin(self) -> str:
        """Where it was read from, for messages."""

    @property
    def names(self) -> tuple[str, ...]:
        """All its parameters."""

    @property
    def words(self) -> frozenset[str]:
        """Those of its parameters that take words."""

    def about(self, name: str) -> str:
        """Return what a parameter is, for messages; empty where nobody says."""

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Check `given` and complete it with defaults; numbers may stay without a value.

        Raises
        ------
        RefusedError
            A name is unknown, or a value is not allowed.
        """

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the formula that holds for `words`.

        Raises
        ------
        SubjectError
            There is none.
        """

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Return all values that a parameter may take when the others are as `given`.

        Raises
        ------
        RefusedError
            `given` is not allowed.
        SubjectError
            They are not finitely many.
        """
