"""What private statements take longer after a remote reference than alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from costdb.calibration.fitting import measured, quality
from costdb.calibration.section import Quality, Timing
from costdb.machines.documents import Json

_OPERATION = "remote.beside."
_PRIVATE = "remote.private"


@dataclass(frozen=True, slots=True)
class Beside:
    """References with a private statement after each.

    Attributes
    ----------
    timing : Timing
    apart_us : float
        What the references and the statements take apart.
    """

    timing: Timing
    apart_us: float

    @property
    def words(self) -> float:
        """How many references there are."""
        return float(self.timing.point.features["words"])

    @property
    def longer_us(self) -> float:
        """What each reference makes the rest take longer."""
        return (self.timing.typical_us - self.apart_us) / self.words


class Resumption:
    """What a program's own work takes longer after each reference to another's memory.

    Parameters
    ----------
    timings : sequence of Timing
        Of the section; points that were not measured are none.
    word_us : mapping of str to float
        One reference, by ``"read"`` and ``"write"``.
    """

    def __init__(self, timings: Sequence[Timing], word_us: Mapping[str, float]) -> None:
        alone = {
            _statements(timing): timing.typical_us
            for timing in timings
            if timing.point.operation == _PRIVATE
        }
        self._found = [
            Beside(timing, alone[_statements(timing)] + each * float(_statements(timing)[1]))
            for kind, each in word_us.items()
            for timing in timings
            if timing.point.operation == _OPERATION + kind and _statements(timing) in alone
        ]
        given = [one.longer_us for one in self._found if not one.timing.point.held_out]
        # by which statement follows it differs; which one a program has is not known
        self._resume_us = sorted(max(0.0, each) for each in given)

    def document(self) -> dict[str, Json]:
        """Return what a profile says of it: nothing where nothing was measured."""
        seen = self._resume_us
        if not seen:
            return {}
        note = "ends: the private statements and kinds of reference that it was measured with"
        return {"resume_us": measured(median(seen), "us", seen[0], seen[-1], note)}

    def tested(self) -> Iterator[tuple[Timing, float]]:
        """Yield the points kept from the fit with their predicted times."""
        for one in self._found:
            if self._resume_us and one.timing.point.held_out:
                yield one.timing, one.apart_us + median(self._resume_us) * one.words

    def qualities(self) -> Iterator[Quality]:
        """Yield the errors with it and without."""
        kept = [(timing.typical_us, predicted) for timing, predicted in self.tested()]
        if not kept:
            return
        apart = [one.apart_us for one in self._found if one.timing.point.held_out]
        times, predicted = (np.array(column) for column in zip(*kept, strict=True))
        operation = _OPERATION.rstrip(".")
        yield quality(operation, "apart", times, np.array(apart), chosen=False)
        yield quality(operation, "apart and resumed", times, predicted, chosen=True)


def _statements(timing: Timing) -> tuple[str, int]:
    features = timing.point.features
    return str(features["private"]), int(features["words"])
