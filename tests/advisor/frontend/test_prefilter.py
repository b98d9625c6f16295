"""What may be passed over unread: told from bytes as from text, and never wrongly."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.frontend.prefilter import (
    BUFFER_METHOD,
    may_be_given_communicator,
    may_communicate,
    needs_decoding,
    needs_reading,
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


@pytest.mark.parametrize("dot", [".", ". ", ".\t"])
@pytest.mark.parametrize(
    "method",
    ["send", "isend", "recv", "sendrecv", "bcast", "allgather", "gather", "scatter", "reduce",
     "allreduce", "alltoall", "barrier"],
)  # fmt: skip
def test_what_sends_by_a_parameter_is_seen(tmp_path: Path, method: str, dot: str) -> None:
    (tmp_path / "main.py").write_text("from mpi4py import MPI\nimport hälper\n", "utf-8")
    around = "rather = reduced\nx.sender\ncast = 'é'\n"
    text = f"{around}def all(cömm):\n    cömm{dot}{method}(1)\n{around}"
    path = str(tmp_path / "hälper.py")
    assert needs_reading(text, path) and needs_decoding(text.encode(), path)
    assert may_be_given_communicator(path, text)
    for other, place in ((around, path), (text, str(tmp_path / "elper.py")), (text, None)):
        assert not needs_reading(other, place)
        assert not needs_decoding(other.encode(), place)
