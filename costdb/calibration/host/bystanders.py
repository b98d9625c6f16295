"""Whether anything else ran while a launch was measured, as far as the system tells."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STATISTICS = Path("/proc/stat")
# user, nice, system, interrupts, soft interrupts and stolen; the others are idle.
_BUSY_COLUMNS = (1, 2, 3, 6, 7, 8)


class Bystanders:
    """Watches from its making on; processes that this one started and waited for are its own."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._before = _others_s()

    def busy_cores(self) -> float | None:
        """Return how many cores were kept busy by others on average; None where unknown."""
        now, seconds = _others_s(), time.monotonic() - self._begun
        if now is None or self._before is None or seconds <= 0:
            return None
        return max(0.0, (now - self._before) / seconds)


def _others_s() -> float | None:
    try:
        columns = _STATISTICS.read_text().splitlines()[0].split()
        busy = sum(int(columns[at]) for at in _BUSY_COLUMNS)
    except (OSError, ValueError, IndexError):
        return None
    own = os.times()
    ours_s = own.user + own.system + own.children_user + own.children_system
    return busy / os.sysconf("SC_CLK_TCK") - ours_s
