"""Which files can hold anything to advise on, told from their text alone."""

from __future__ import annotations

import re
from collections.abc import Collection

PICKLING_METHOD = (
    "[isb]?send|i?recv|sendrecv|bcast|(?:all)?gather|scatter|(?:all)?reduce|alltoall|barrier"
)
"""Methods of communicators that other things have as well."""

BUFFER_METHOD = (
    "Sendrecv(?:_replace)?|Isend|Irecv|(?:A|Ia)ll(?:reduce|gatherv?|toall[vw]?)|(?:B|Ib)cast"
    "|(?:G|Ig)atherv?|(?:S|Is)catterv?|(?:E|Ie)xscan|(?:R|Ir)educe_scatter(?:_block)?"
    "|Isendrecv(?:_replace)?"
)
"""Methods, as a regular expression, that few things but mpi4py's communicators have."""

_MARK = re.compile(r"\badvisor\b|#[ \t]*advise[ \t]*:")
_MPI = re.compile(r"\bmpi4py\b")
_PROGRAM = re.compile(rf"\bmpi4py\b|\bprange\b|\.(?:{BUFFER_METHOD})\s*\(")
_NUMBA = re.compile(r"\bnumba\b")
_JIT = re.compile(r"\bn?jit\b")
_MARK_BYTES = re.compile(_MARK.pattern.encode())
_MPI_BYTES = re.compile(_MPI.pattern.encode())
_PRANGE_BYTES = re.compile(rb"\bprange\b")
_CALL_BYTES = re.compile(rf"\.(?:{BUFFER_METHOD})\s*\(".encode())
_NUMBA_BYTES = re.compile(_NUMBA.pattern.encode())
_JIT_BYTES = re.compile(_JIT.pattern.encode())

_SENDING_WORDS = (
    b"send",
    b"recv",
    b"cast",
    b"ather",
    b"catter",
    b"educe",
    b"lltoall",
    b"arrier",
)
_WORDS = (b"advis", b"mpi4py", b"prange", b"numba", b"xscan", *_SENDING_WORDS)
"""One of these is in every text that a pattern matches, here or in `beside`.

Each is a part of as many of the words looked for as possible: finding one takes a twentieth of the
time that a pattern takes, but every file pays for all of them.
"""

_CALLED = frozenset((b"xscan", *_SENDING_WORDS))

_ANY_CALL = re.compile(rf"\.[ \t]*(?:{BUFFER_METHOD}|{PICKLING_METHOD})\s*\(".encode())

_DECLARATION = re.compile(rb"coding[:=][ \t]*([-\w.]+)")
_LIKE_ASCII = frozenset(
    (b"utf-8", b"utf8", b"ascii", b"us-ascii", b"latin-1", b"latin1", b"iso-8859-1", b"iso-8859-15")
)
"""Encodings that are often declared and in which bytes below 128 mean what they mean in ASCII."""

_FIRST_LINES_BYTES = 512


def imports_mpi(source: str) -> bool:
    """Return whether a file mentions mpi4py."""
    return _MPI.search(source) is not None


def may_communicate(source: str) -> bool:
    """Return whether a file may hold an SPMD program; cheap, and never wrongly False."""
    return _PROGRAM.search(source) is not None


def may_hold_kernels(source: str) -> bool:
    """Return whether a file may hold annotated kernels; cheap, and never wrongly False."""
    return _MARK.search(source) is not None


def may_call_compiled(source: str) -> bool:
    """Return whether a file may have numba compile functions; cheap, and never wrongly False."""
    return _NUMBA.search(source) is not None and _JIT.search(source) is not None


def needs_reading(source: str) -> bool:
    """Return whether a file may hold anything to advise on; cheap, and never wrongly False."""
    return may_hold_kernels(source) or may_communicate(source) or may_call_compiled(source)


def words_in(data: bytes) -> tuple[bytes, ...]:
    """Return which of the words that hint at anything are in the bytes of a text.

    Of those that are parts of methods none, unless such a method is called.
    """
    found = tuple([word for word in _WORDS if word in data])
    if may_send(found) and _ANY_CALL.search(data) is None:
        return tuple(word for word in found if word not in _CALLED)
    return found


def may_send(words: Collection[bytes]) -> bool:
    """Return whether a text with these of the words may send anything."""
    return bool(words) and not _CALLED.isdisjoint(words)


def may_mention_mpi(data: bytes, words: Collection[bytes]) -> bool:
    """Return whether a text with these of the words mentions mpi4py."""
    return b"mpi4py" in words and _MPI_BYTES.search(data) is not None


def needs_decoding(data: bytes, words: Collection[bytes] | None = None) -> bool:
    """Return whether the text in `data` may need reading; never wrongly False.

    Every encoding that a Python file may have writes marks as ASCII, but for a few that it must
    declare: whatever declares one of these is decoded first.

    Parameters
    ----------
    data : bytes
    words : collection of bytes or None
        What `words_in` finds in it, where that is known.
    """
    if words is None:
        words = words_in(data)
    if words and _speaks_of_us(data, words):
        return True
    declared = _DECLARATION.findall(data, 0, _FIRST_LINES_BYTES)
    return any(name.lower() not in _LIKE_ASCII for name in declared)


def _speaks_of_us(data: bytes, words: Collection[bytes]) -> bool:
    if b"advis" in words and _MARK_BYTES.search(data):
        return True
    if may_mention_mpi(data, words) or (b"prange" in words and _PRANGE_BYTES.search(data)):
        return True
    if may_send(words) and _CALL_BYTES.search(data):
        return True
    # two words, so that a text that only speaks of numba is not parsed
    return bool(b"numba" in words and _NUMBA_BYTES.search(data) and _JIT_BYTES.search(data))
