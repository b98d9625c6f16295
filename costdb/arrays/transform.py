"""What a fast Fourier transform of some length takes, as NumPy's library (pocketfft) does it.

A length of small factors is taken apart into them. One with a large prime factor may be a
convolution instead (Bluestein's algorithm), with transforms of at least twice the length: which of
the two is left to a guess of the library, that counts a pass over the data for each prime factor as
many operations as the factor, a tenth more beyond 5.
"""

from __future__ import annotations

from functools import lru_cache

_FACTORS = 2, 3, 5, 7, 11
_SHORT = 50
_CONVOLUTION = 1.5
"""A convolution counts so many times the transforms in it when the library guesses."""
_PER_DOUBLING = 2


@lru_cache(maxsize=256)
def passes(length: int) -> float:
    """Return the operations on each element, those of a pass of factor 2 being one.

    For a power of two it is the logarithm.
    """
    around = padded(length)
    if around is None:
        return _guess(length) / _PER_DOUBLING
    # of the factors, which are made anew with each call, there and back
    return 3 * _guess(around) / _PER_DOUBLING * around / length


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
