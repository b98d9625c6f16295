"""Radix, sample and column sort with real threads, superstep by superstep; needs numba.

A superstep moves elements between shared arrays, each processor its share; what a processor
computes on what it has read, such as sorting its keys, is done between the supersteps and not
timed, as the model does not count it. It is done by the processor's own thread, so that the keys
are in its cache and all are awake when the next superstep begins: that is at a barrier.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import numpy as np
from numba import njit, prange, set_num_threads
from numpy.typing import NDArray

KEY_BITS = 32
DIGIT_BITS = 6
SAMPLES_PER_PROCESSOR = 100
SEED = 20_261_121

Keys = NDArray[np.int64]

COPY, TRANSPOSE, BACK, SHIFTED, COUNT, PREFIX, OFFSETS, MOVE = range(8)


@njit
def _bucket(key: int, digit: int, limits: Keys) -> int:
    """Return the digit of a key, or where there are limits the bucket between them."""
    if digit >= 0:
        return (key >> digit) & (limits.size - 1)
    # without branches, which random keys would have mispredicted
    found = 0
    for place in range(limits.size - 1):
        found += int(key >= limits[place])
    return found


@njit
def _share(
    kind: int, me: int, source: Keys, target: Keys, digit: int, limits: Keys, counters: Keys
) -> None:
    """Do one processor's part of a superstep."""
    processors = counters.shape[0]
    rows = source.size // processors
    first = me * rows
    if kind == COPY:
        for k in range(first, first + rows):
            target[k] = source[k]
    elif kind == TRANSPOSE:
        # element k goes to row k // processors of column k % processors; divisions take longer
        column, row = first % processors, first // processors
        for k in range(first, first + rows):
            target[column * rows + row] = source[k]
            column += 1
            if column == processors:
                column, row = 0, row + 1
    elif kind == BACK:
        place = me
        for k in range(first, first + rows):
            target[place] = source[k]
            place += processors
    elif kind == SHIFTED:
        # the second half of a column and the first half of the next one; the last has no next
        if me < processors - 1:
            for k in range(first + rows // 2, first + rows // 2 + rows):
                target[k] = source[k]
    elif kind == COUNT:
        for bucket in range(limits.size):
            counters[me, bucket] = 0
        for k in range(first, first + rows):
            counters[me, _bucket(source[k], digit, limits)] += 1
    elif kind == PREFIX:
        # of a part of the buckets: how many keys earlier processors have in them
        for bucket in range(me, limits.size, processors):
            before = 0
            for other in range(processors):
                here = counters[other, bucket]
                counters[other, bucket] = before
                before += here
            target[bucket] = before
    elif kind == OFFSETS:
        before = 0
        for bucket in range(limits.size):
            counters[me, bucket] += before
            before += source[bucket]
    else:
        for k in range(first, first + rows):
            bucket = _bucket(source[k], digit, limits)
            target[counters[me, bucket]] = source[k]
            counters[me, bucket] += 1


@njit(parallel=True)
def _superstep(
    kind: int, source: Keys, target: Keys, digit: int, limits: Keys, counters: Keys
) -> None:
    for me in prange(counters.shape[0]):
        # unsigned as it is, sums with it would be floating-point numbers
        _share(kind, np.int64(me), source, target, digit, limits, counters)


@njit(parallel=True)
def _sort_parts(keys: Keys, begins: Keys) -> None:
    """Sort the keys from each place up to the next, each part by a processor of its own."""
    for part in prange(begins.size - 1):
        keys[begins[part] : begins[part + 1]].sort()


@dataclass(slots=True)
class Run:
    """Supersteps of one run, and what they took.

    Attributes
    ----------
    processors : int
    microseconds : float
        All supersteps so far.
    """

    processors: int
    microseconds: float = field(default=0.0)

    def step(
        self, kind: int, source: Keys, target: Keys, digit: int, limits: Keys, counters: Keys
    ) -> None:
        """Do a superstep and add its time; the clock starts when all processors are there."""
        _sort_parts(counters[:0, 0], np.zeros(self.processors + 1, np.int64))
        begin = time.perf_counter_ns()
        _superstep(kind, source, target, digit, limits, counters)
        self.microseconds += (time.perf_counter_ns() - begin) / 1000

    def move(self, kind: int, source: Keys, target: Keys) -> None:
        """Do a superstep that counts nothing."""
        self.step(kind, source, target, -1, np.empty(0, np.int64), _counters(self.processors, 1))


def _radix(run: Run, keys: Keys) -> Keys:
    here, there = keys.copy(), np.ones_like(keys)
    digits = 2**DIGIT_BITS
    for digit in range(0, KEY_BITS, DIGIT_BITS):
        counters, totals = _counters(run.processors, digits), np.ones(digits, np.int64)
        limits = np.ones(digits, np.int64)
        run.step(COUNT, here, there, digit, limits, counters)
        run.step(PREFIX, here, totals, digit, limits, counters)
        run.step(OFFSETS, totals, there, digit, limits, counters)
        run.step(MOVE, here, there, digit, limits, counters)
        here, there = there, here
    return here


def _sample(run: Run, keys: Keys) -> Keys:
    processors = run.processors
    sample = np.ones(SAMPLES_PER_PROCESSOR * processors, np.int64)
    run.move(COPY, keys[:: max(1, keys.size // sample.size)][: sample.size].copy(), sample)
    sample.sort()
    limits = np.append(sample[SAMPLES_PER_PROCESSOR::SAMPLES_PER_PROCESSOR], 0)
    counters, totals = _counters(processors, processors), np.ones(processors, np.int64)
    moved, made = np.ones_like(keys), np.ones_like(keys)
    run.step(COUNT, keys, moved, -1, limits, counters)
    run.step(PREFIX, keys, totals, -1, limits, counters)
    run.step(OFFSETS, totals, moved, -1, limits, counters)
    run.step(MOVE, keys, moved, -1, limits, counters)
    _sort_parts(moved, np.append(0, np.cumsum(totals)))
    run.move(COPY, moved, made)
    return made


def _column(run: Run, keys: Keys) -> Keys:
    here, there = np.ones_like(keys), np.ones_like(keys)
    rows = keys.size // run.processors
    columns = np.arange(run.processors + 1) * rows
    run.move(COPY, keys, here)
    for kind in (TRANSPOSE, BACK, COPY):
        _sort_parts(here, columns)
        run.move(kind, here, there)
        here, there = there, here
    there[:] = here
    run.move(SHIFTED, here, there)
    # what is shifted begins in the middle of a column and ends in that of the next
    _sort_parts(there, columns[:-1] + rows // 2)
    return there


def _counters(processors: int, buckets: int) -> NDArray[np.int64]:
    # whole lines for each processor, so that counting is not fought over
    return np.ones((processors, -(-buckets // 8) * 8), np.int64)


SORTS = {"radix": _radix, "sample": _sample, "column": _column}


def run_sort(name: str, keys: Keys, processors: int) -> tuple[Keys, Run]:
    """Sort keys and return them with what the supersteps took.

    Parameters
    ----------
    keys : array of int64, shape (n,)
        From 0 on, below ``2**KEY_BITS``; `n` a multiple of twice the processors.
    """
    set_num_threads(processors)
    run = Run(processors)
    return SORTS[name](run, keys), run


def _ready(comm, sizes, name):
    keys = np.random.default_rng(SEED).integers(0, 2**KEY_BITS, sizes["n"])

    def run():
        _, made = run_sort(name, keys, sizes["p"])
        return made.microseconds * 1e-6

    return SimpleNamespace(run=run)


radix, sample, column = (partial(_ready, name=name) for name in SORTS)
