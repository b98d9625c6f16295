"""A heap as the GNU C library keeps it: where blocks are taken, and what is given back.

Blocks up to a threshold come from the heap, larger ones from the system each time. A block is
taken from the smallest free part that holds it, else from the heap's end, which grows by what is
lacking and some padding. Free neighbours become one; when the free end reaches twice the
threshold after a release, all of it but the padding goes back to the system. The threshold is the
largest block that the system was ever given back, up to a limit. Pages that come from the system
fault when they are first touched.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

from costdb.arrays.amounts import HUGE_BYTES, KEPT_BYTES

PAGE_BYTES = 4096
HUGE_PAGE_BYTES = 2 * 2**20
PADDING_BYTES = 128 * 2**10
"""What the library takes more than it needs, and keeps when it gives back: its constant."""
_OVERHEAD_BYTES = 16
_LEAST_SPLIT_BYTES = 32
_CONSOLIDATED_BYTES = 2**16
"""Only the release of as much as this looks whether the end should be given back."""


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
    small_bytes, huge_bytes : int
        What has come anew, in small pages and in huge ones.
    """

    threshold: int
    end: int = 0
    limit: int = PADDING_BYTES
    touched: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)
    small_bytes: float = 0
    huge_bytes: float = 0

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
            self.touched = min(self.touched, self.limit)

    def _touch(self, begin: int, end: int, *, huge: bool) -> None:
        pages = (-(-end // PAGE_BYTES) - -(-begin // PAGE_BYTES)) * PAGE_BYTES
        whole = 0
        if huge:
            first = -(-begin // HUGE_PAGE_BYTES)
            whole = max(0, end // HUGE_PAGE_BYTES - first) * HUGE_PAGE_BYTES
        self.small_bytes += max(0, pages - whole)
        self.huge_bytes += whole


def block_bytes(size: int) -> int:
    """Return what an array of some bytes takes of a heap."""
    return -(-(size + _OVERHEAD_BYTES // 2) // _OVERHEAD_BYTES) * _OVERHEAD_BYTES


def _by_size(part: tuple[int, int]) -> tuple[int, int]:
    return part[1], part[0]
