"""Which files can hold anything to advise on, told from their text alone."""

from __future__ import annotations

import re

_MARK = re.compile(r"\badvisor\b|#[ \t]*advise[ \t]*:")


def needs_reading(source: str) -> bool:
    """Return whether a file may hold a kernel; cheap, and never wrongly False."""
    return _MARK.search(source) is not None
