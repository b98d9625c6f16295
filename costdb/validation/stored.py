"""What the calibrations of a machine measured, taken out of the store to be looked at again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from costdb.calibration.recording import timings_of
from costdb.calibration.section import Timing
from costdb.store.runs import newest_run_of
from costdb.validation.results import CannotValidateError


@dataclass(frozen=True, slots=True)
class Stored:
    """The timings of one section of a calibration, and when it began."""

    timings: Sequence[Timing]
    began: str


def stored_timings(connection: sqlite3.Connection, machine: str, section: str) -> Stored:
    """Return what the newest calibration of a machine has of a section.

    Raises
    ------
    CannotValidateError
        No calibration finished a launch of it.
    """
    run = newest_run_of(connection, machine, section)
    timings = () if run is None else timings_of(connection, run, section)
    if run is None or not timings:
        raise CannotValidateError(
            f"no samples of {section} are stored for {machine}: "
            f"advise calibrate --name {machine} --only {section}"
        )
    return Stored(timings, run.id.split(".")[0])
