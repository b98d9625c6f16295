"""Process models as subjects of predictions; they state all times, so they need no machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from costdb.estimate import Priced
from costdb.expr import to_text
from costdb.process.compile import ProcessError
from costdb.process.model import Model, compile_model, load_model, price_model
from costdb.subject import Bound, Chosen, Number, PlacedError, RefusedError, SubjectError
from costdb.wording import nearest, read_number


def load_process(paths: Sequence[Path]) -> ProcessSubject:
    """Return the model that the files at `paths` make together.

    Raises
    ------
    PlacedError
        One line with the place of whatever is wrong.
    """
    try:
        return ProcessSubject(load_model(paths))
    except ProcessError as error:
        raise PlacedError(str(error)) from error


@dataclass(frozen=True, slots=True)
class ProcessSubject:
    """A process model; see :class:`costdb.subject.Subject`."""

    model: Model

    @property
    def origin(self) -> str:
        """The files it was read from."""
        return " ".join(self.model.files)

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters, in the order of the text."""
        return tuple(self.model.parameters)

    @property
    def words(self) -> frozenset[str]:
        """No parameter of a process model takes words."""
        return frozenset()

    def about(self, name: str) -> str:
        """Return nothing: the source says nothing that could be shown."""
        return ""

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Check that `given` are numbers such as the model's parameters and sizes may be."""
        numbers: dict[str, Number] = {}
        for name, default in self.model.parameters.items():
            if default is not None:
                numbers[name] = default if isinstance(default, int) else float(default)
        for name, value in given.items():
            if name not in self.model.parameters:
                hint = nearest(name, self.names)
                raise RefusedError(f"{self.origin}: there is no parameter {name}{hint}")
            number = read_number(value) if isinstance(value, str) else value
            if number is None or not math.isfinite(number):
                raise RefusedError(f"{self.origin}: {name} = {value} is not a number")
            if name in self.model.sizes and (number < 1 or number != int(number)):
                raise RefusedError(
                    f"{self.origin}: {name} = {value} must be a whole number of at least 1"
                )
            if number < 0:
                raise RefusedError(f"{self.origin}: {name} = {value} must not be negative")
            numbers[name] = number
        return Bound({}, numbers, {name: numbers[name] for name in self.names if name in numbers})

    def price(self, words: Mapping[str, str]) -> Priced:
        """Return the cost of the model in microseconds."""
        try:
            return price_model(self.model)
        except ProcessError as error:
            raise PlacedError(str(error)) from error

    def formula(self) -> str:
        """Return the cost in seconds over the parameters, as text that parses.

        Raises
        ------
        PlacedError
            It is too large to write down.
        """
        try:
            return to_text(compile_model(self.model).T)
        except ProcessError as error:
            raise PlacedError(str(error)) from error

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Refuse: a model does not say how large its parameters may be."""
        raise SubjectError(
            f"{self.origin}: which values may {name} take? Say so, as --over {name}=1..64"
        )
