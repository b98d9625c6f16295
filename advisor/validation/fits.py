"""The sections that need no kernel: samples of calibrations, looked at again, and sorts."""

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


def sorts(context: Context) -> Section:
    """Return runs of the sorts of the shared-memory study."""
    import numba  # noqa: F401 -- says which package is missing before anything is priced

    from costdb.validation.sorts import validate_sorts

    return validate_sorts(context.machine, context.progress)
