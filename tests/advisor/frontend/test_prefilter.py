"""What may be passed over unread: told from bytes as from text, and never wrongly."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.frontend.prefilter import (
    BUFFER_METHOD,
    may_communicate,
    may_send,
    needs_decoding,
    needs_reading,
    words_in,
)

METHODS = sorted(
    {
        name
        for word in (
            "Sendrecv", "send", "recv", "Allreduce", "Allgather", "Alltoall", "Bcast", "Gather",
            "Scatter", "Exscan", "Reduce_scatter", "Sendrecv_replace", "Reduce_scatter_block",
        )
        for end in ("", "v", "w")
        for name in (f"{word}{end}", f"I{word}{end}", f"I{word.lower()}{end}")
        if re.fullmatch(BUFFER_METHOD, name)
    }
)  # fmt: skip
MARKS = [
    "# advise: kernel", "#advise :", "import advisor", "from mpi4py import MPI", "prange",
    "import numba; numba.njit", "from numba import jit",
    *(f"halo.{method}(" for method in METHODS),
]  # fmt: skip


def test_all_methods_of_the_pattern_are_tried() -> None:
    assert len(METHODS) >= 18


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_is_seen_in_bytes_as_in_text(mark: str, encoding: str) -> None:
    text = f"é = 1\n{mark}\n"
    assert needs_reading(text) or may_communicate(text)
    assert needs_decoding(text.encode(encoding))


@given(st.lists(st.sampled_from([*MARKS, "x", " ", "é", "_", ".", "\n", "send", "("]), max_size=6))
def test_bytes_never_hide_what_text_shows(parts: list[str]) -> None:
    text = "".join(parts)
    if needs_reading(text) or may_communicate(text):
        assert needs_decoding(text.encode())


def test_plain_code_is_passed_over_and_declared_encodings_are_not() -> None:
    plain = b"import math\ndef broadcast(x):\n    return x.send(1), math.gather, advise\n"
    assert not needs_decoding(plain)
    assert needs_decoding(b"# coding: utf-7\n+ACM- advise: kernel\n")
    # these write what is looked for as ASCII does
    for name in (b"utf-8", b"UTF-8", b"latin-1", b"iso-8859-15"):
        assert not needs_decoding(b"# -*- coding: " + name + b" -*-\n" + plain)
    assert not needs_decoding(b"# what coding is\n" + plain)


@given(
    st.sampled_from(["send", "isend", "recv", "sendrecv", "bcast", "allgather", "gather",
                     "scatter", "reduce", "allreduce", "alltoall", "barrier"]),
    st.sampled_from([".", ". ", ".\t"]),
    st.lists(st.sampled_from(["rather", "reduced", "x.sender", "cast", "\n", "é"])),
)  # fmt: skip
def test_the_words_of_what_sends_are_seen(method: str, dot: str, around: list[str]) -> None:
    text = " ".join(around).encode()
    assert not may_send(words_in(text))
    assert may_send(words_in(text + f"\ncomm{dot}{method}(1)\n".encode() + text))
