"""What private statements take longer after a remote reference than alone, by who does them.

What the interpreter does by itself is resumed in a tenth of a microsecond. A call of the array
library comes through many functions, whose code lies elsewhere, and takes several times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from costdb.calibration.fitting import quality
from costdb.calibration.ranks.remote_private import INTERPRETED, LIBRARY, PRIVATE
from costdb.calibration.section import Quality, Timing
from costdb.machines.documents import Json
from costdb.machines.stated import measured
from costdb.pgas.rates import RESUME_US
from costdb.work import Then

_OPERATION = "remote.beside."
_PRIVATE = "remote.private"
_STATEMENTS = {
    Then.ANYTHING: PRIVATE,
    Then.INTERPRETED: INTERPRETED,
    Then.LIBRARY: LIBRARY,
}


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
    def statement(self) -> str:
        """The private statement."""
        return _statements(self.timing)[0]

    @property
    def then(self) -> Then:
        """Who does it."""
        return Then.LIBRARY if self.statement in LIBRARY else Then.INTERPRETED

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
        given = [one for one in self._found if not one.timing.point.held_out]
        self._resume_us: dict[Then, list[float]] = {}
        for then, statements in _STATEMENTS.items():
            seen = [max(0.0, one.longer_us) for one in given if one.statement in statements]
            if seen:
                # it differs by the statement, and which one a program has is not known
                self._resume_us[then] = sorted(seen)

    def document(self) -> dict[str, Json]:
        """Return what a profile says of it: nothing where nothing was measured."""
        note = "ends: the private statements and kinds of reference that it was measured with"
        return {
            key: measured(median(seen), "us", seen[0], seen[-1], note)
            for then, key in RESUME_US.items()
            for seen in [self._resume_us.get(then, [])]
            if seen
        }

    def tested(self) -> Iterator[tuple[Timing, float]]:
        """Yield the points kept from the fit with their predicted times."""
        for one in self._found:
            seen = self._resume_us.get(one.then)
            if seen and one.timing.point.held_out:
                yield one.timing, one.apart_us + median(seen) * one.words

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
