"""What a fast Fourier transform of some length takes, as NumPy's library (pocketfft) does it.

A length of small factors is taken apart into them, into eights and fours first: each is a pass
over the data, whose arithmetic is known. One with a large prime factor may be a convolution
instead (Bluestein's algorithm), with transforms of at least twice the length: which of the two is
left to a guess of the library, that counts a pass over the data for each prime factor as many
operations as the factor, a tenth more beyond 5. Either way the library works out roots of unity,
and for a convolution a transform of them, anew with each call.
"""

from __future__ import annotations

from functools import lru_cache

_FACTORS = 2, 3, 5, 7, 11
_SHORT = 50
_CONVOLUTION = 1.5
"""A convolution counts so many times the transforms in it when the library guesses."""

_EVEN = {2: 5.0, 4: 8.5, 8: 12.25}
"""Additions and multiplications of reals on each element, those by roots of unity with them."""
_UNROLLED = 11
_ROLLED = 1.5
"""Passes of larger factors are loops, which keep less at hand than what is written out."""
_DOUBLING = _EVEN[8] / 3
_BY_FACTORS = 2 * 6 / _DOUBLING
"""A convolution multiplies each element by a root and by a transform of them."""


@lru_cache(maxsize=256)
def passes(length: int) -> float:
    """Return the operations on each element, those of doubling the length being one."""
    around = padded(length)
    if around is None:
        return sum(map(_operations, _taken_apart(length))) / _DOUBLING
    # there and back
    return (2 * passes(around) + _BY_FACTORS) * around / length


@lru_cache(maxsize=256)
def sweeps(length: int) -> float:
    """Return how often a transform goes over its data, in data of the length."""
    around = padded(length)
    if around is None:
        return float(len(_taken_apart(length)))
    return 2 * sweeps(around) * around / length


@lru_cache(maxsize=256)
def planned(length: int) -> tuple[int, float]:
    """Return of how many roots of unity a call needs, and the operations beside that."""
    around = padded(length)
    if around is None:
        return length, 0.0
    return around + length, passes(around) * around


@lru_cache(maxsize=256)
def padded(length: int) -> int | None:
    """Return the length of the transforms in a convolution, None where there is none."""
    if length < _SHORT or max(_primes(length)) ** 2 <= length:
        return None
    around = _smooth(2 * length - 1)
    alone, convolved = length * _guess(length), 2 * _CONVOLUTION * around * _guess(around)
    return around if convolved < alone else None


def _guess(length: int) -> float:
    return sum(factor if factor <= 5 else 1.1 * factor for factor in _primes(length))


def _taken_apart(length: int) -> list[int]:
    primes = _primes(length)
    twos, odd = primes.count(2), [prime for prime in primes if prime > 2]
    eights, rest = divmod(twos, 3)
    return [8] * eights + ([2**rest] if rest else []) + odd


def _operations(factor: int) -> float:
    if factor == 1:
        return 0.0
    if factor in _EVEN:
        return _EVEN[factor]
    # sums and differences of pairs, which are then weighed with sines and cosines
    written_out = (factor - 1) * (2 * factor + 8) / factor
    return written_out if factor <= _UNROLLED else _ROLLED * written_out


def _primes(length: int) -> list[int]:
    found, rest, factor = [], length, 2
    while factor * factor <= rest:
        while rest % factor == 0:
            found.append(factor)
            rest //= factor
        factor += 1
    return [*found, rest] if rest > 1 or not found else found


def _smooth(least: int) -> int:
    """Return the least product of small factors that is no less."""
    best = 1 << (least - 1).bit_length()

    def search(product: int, factors: tuple[int, ...]) -> None:
        nonlocal best
        if product >= least:
            best = min(best, product)
            return
        for number, factor in enumerate(factors):
            if product * factor < best:
                search(product * factor, factors[number:])

    search(1, _FACTORS[::-1])
    return best
