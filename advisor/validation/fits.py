"""The sections that look at stored samples again and measure nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from costdb.store.database import reading
from costdb.store.place import store_path
from costdb.validation.results import Section

if TYPE_CHECKING:
    from advisor.validation.sections import Context


def lines(context: Context) -> Section:
    """Return the regressions of the lines paper."""
    from costdb.validation.lines import validate_lines

    context.progress("fitting messages, scans and statements", 0.0)
    with reading(store_path()) as connection:
        return validate_lines(connection, context.machine.name)


def smp(context: Context) -> Section:
    """Return the three suites of the shared-memory study."""
    from costdb.validation.supersteps import validate_supersteps

    context.progress("fitting supersteps", 0.0)
    with reading(store_path()) as connection:
        return validate_supersteps(connection, context.machine)
