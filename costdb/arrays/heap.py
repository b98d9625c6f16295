"""A heap as the GNU C library keeps it: where blocks are taken, and what is given back.

Blocks up to a threshold come from the heap, larger ones from the system each time. A block is
taken from the smallest free part that holds it, else from the heap's end, which grows by what is
lacking and some padding. Free neighbours become one; when the free end reaches twice the
threshold after a release, all of it but the padding goes back to the system. The threshold is the
largest block that the system was ever given back, up to a limit. Pages that come from the system
fault when they are first touched. It clears them, and what it clears is as far away as what was
given back at once: the page that was given back last is the next that comes.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from math import log

from costdb.arrays.amounts import HUGE_BYTES, KEPT_BYTES

PAGE_BYTES = 4096
HUGE_PAGE_BYTES = 2 * 2**20
PADDING_BYTES = 128 * 2**10
"""What the library takes more than it needs, and keeps when it gives back: its constant."""
_OVERHEAD_BYTES = 16
_LEAST_SPLIT_BYTES = 32
SMALL_AWAY_BYTES, HUGE_AWAY_BYTES = (4_000_000, 16_000_000), (12_000_000, 60_000_000)
"""So much given back at once was measured, in small pages and in huge ones: less is as near as the
first, more as far as the second."""
_CONSOLIDATED_BYTES = 2**16
"""Only the release of as much as this looks whether the end should be given back."""


@dataclass(frozen=True, slots=True)
class Came:
    """What came anew from the system, in small pages and in huge ones, and what of it is far."""

    small_bytes: float = 0
    huge_bytes: float = 0
    far_small_bytes: float = 0
    far_huge_bytes: float = 0

    def plus(self, more: Came, times: float = 1) -> Came:
        """Return as much and so many times as much as came besides."""
        return Came(
            self.small_bytes + times * more.small_bytes,
            self.huge_bytes + times * more.huge_bytes,
            self.far_small_bytes + times * more.far_small_bytes,
            self.far_huge_bytes + times * more.far_huge_bytes,
        )


@dataclass(slots=True)
class Heap:
    """The state of a heap; addresses count from its first block.

    Attributes
    ----------
    threshold : int
        The largest block that the system was given back so far.
    end : int
        Of the blocks in use: here the free end begins.
    limit : int
        Of the heap: here the free end stops.
    touched : int
        Up to here pages were touched since they came from the system.
    free : list of (int, int)
        Free parts between blocks in use: address and bytes, by address.
    came : Came
        What has come anew.
    given_back : int
        What was given back before something came anew, at once or in turn.
    """

    threshold: int
    end: int = 0
    limit: int = PADDING_BYTES
    touched: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)
    came: Came = Came()
    given_back: int = 0
    _taken_since: bool = False

    def take(self, size: int, *, huge: bool = True) -> tuple[int, int]:
        """Return the address and the bytes of a block; a negative address for the system's.

        Parameters
        ----------
        size : int
        huge : bool
            Whether pages are asked to be huge if the block is large.
        """
        huge = huge and size >= HUGE_BYTES
        needed = block_bytes(size)
        fitting = min((part for part in self.free if part[1] >= needed), key=_by_size, default=None)
        if fitting is not None:
            self.free.remove(fitting)
            at, length = fitting
            if length - needed >= _LEAST_SPLIT_BYTES:
                insort(self.free, (at + needed, length - needed))
                length = needed
            return at, length
        if self.limit - self.end < needed + _LEAST_SPLIT_BYTES:
            if needed >= self.threshold:
                length = -(-(needed + _OVERHEAD_BYTES // 2) // PAGE_BYTES) * PAGE_BYTES
                self._touch(0, length, huge=huge)
                return -1, length
            lacking = needed + PADDING_BYTES + _LEAST_SPLIT_BYTES - (self.limit - self.end)
            self.limit += -(-lacking // PAGE_BYTES) * PAGE_BYTES
        at = self.end
        self.end += needed
        if self.end > self.touched:
            self._touch(max(at, self.touched), self.end, huge=huge)
            self.touched = self.end
        return at, needed

    def release(self, block: tuple[int, int]) -> None:
        """Free a block."""
        at, length = block
        if at < 0:
            self._give_back(length)
            if self.threshold < length <= KEPT_BYTES:
                self.threshold = length
            return
        for part in [part for part in self.free if part[0] + part[1] == at]:
            self.free.remove(part)
            at, length = part[0], part[1] + length
        for part in [part for part in self.free if part[0] == at + length]:
            self.free.remove(part)
            length += part[1]
        if at + length == self.end:
            self.end = at
            length += self.limit - self.end
        else:
            insort(self.free, (at, length))
        if length >= _CONSOLIDATED_BYTES and self.limit - self.end >= 2 * self.threshold:
            beyond = self.limit - self.end - _LEAST_SPLIT_BYTES - 1 - PADDING_BYTES
            self.limit -= max(0, beyond // PAGE_BYTES * PAGE_BYTES)
            self._give_back(self.touched - self.limit)
            self.touched = min(self.touched, self.limit)

    def _give_back(self, size: int) -> None:
        if size > 0:
            self.given_back = size + (0 if self._taken_since else self.given_back)
            self._taken_since = False

    def _touch(self, begin: int, end: int, *, huge: bool) -> None:
        pages = (-(-end // PAGE_BYTES) - -(-begin // PAGE_BYTES)) * PAGE_BYTES
        whole = 0
        if huge:
            first = -(-begin // HUGE_PAGE_BYTES)
            whole = max(0, end // HUGE_PAGE_BYTES - first) * HUGE_PAGE_BYTES
        small = max(0, pages - whole)
        far_small = small * far_share(self.given_back, SMALL_AWAY_BYTES)
        far_huge = whole * far_share(self.given_back, HUGE_AWAY_BYTES)
        self.came = self.came.plus(Came(small, whole, far_small, far_huge))
        self._taken_since = True


def far_share(given_back: float, away_bytes: tuple[int, int]) -> float:
    """Return how far memory is that was given back with so much: from 0, near, to 1."""
    near, far = away_bytes
    return log(min(max(given_back, near), far) / near) / log(far / near)


def block_bytes(size: int) -> int:
    """Return what an array of some bytes takes of a heap."""
    return -(-(size + _OVERHEAD_BYTES // 2) // _OVERHEAD_BYTES) * _OVERHEAD_BYTES


def _by_size(part: tuple[int, int]) -> tuple[int, int]:
    return part[1], part[0]
