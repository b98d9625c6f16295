"""Positions and texts against encoded bytes; findings that are carried to where their lines are."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from lsp_session import changed
from lsprotocol.types import Position

from advisor.finding import Remark
from advisor.lsp.analyses import Document, carried, code_points, count_units
from advisor.source import Span

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
LETTERS = st.text(st.sampled_from("ab ä漢😀𝑓\u200d\t\f\u2028\x85"), max_size=12)
PIECES = st.sampled_from(["a", "ä", "😀", "\n", "\r\n", "\r", "\f", "\u2028"])
TEXTS = st.lists(PIECES, max_size=14).map("".join)
ENCODINGS = st.sampled_from(list(CODECS))


@given(LETTERS, ENCODINGS, st.data())
def test_columns_are_code_units(line: str, encoding: str, data: st.DataObject) -> None:
    codec, width = CODECS[encoding]
    place = data.draw(st.integers(0, len(line)))
    column = len(line[:place].encode(codec)) // width
    assert count_units(line[:place], encoding) == column
    assert code_points(line, column, encoding) == place
    assert code_points(line, column + 1000, encoding) == len(line)
    if place < len(line):
        inside = range(column, column + len(line[place].encode(codec)) // width)
        assert {code_points(line, unit, encoding) for unit in inside} == {place}


def model_lines(text: str) -> list[str]:
    return re.split(r"\r\n|\n|\r", text)


@given(TEXTS, TEXTS, ENCODINGS, st.data())
@settings(max_examples=150)
def test_changes_replace_what_lies_between_two_positions(
    text: str, new: str, encoding: str, data: st.DataObject
) -> None:
    codec, width = CODECS[encoding]

    def position(offset: int) -> Position:
        before = model_lines(text[:offset])
        return Position(len(before) - 1, len(before[-1].encode(codec)) // width)

    offsets = [n for n in range(len(text) + 1) if text[n - 1 : n + 1] != "\r\n" or n == 0]
    first, last = sorted(data.draw(st.lists(st.sampled_from(offsets), min_size=2, max_size=2)))
    document = Document("file:///a.py", encoding, 1, text)
    document.apply(changed(new, position(first), position(last)))
    assert document.text == text[:first] + new + text[last:]
    assert "".join(document.lines) == document.text
    assert [line.rstrip("\r\n") for line in document.lines] == model_lines(document.text)
    # what is carried to a line was about a line with the same text, and order is kept
    old = Document("file:///a.py", encoding, 1, text).lines
    about = [Remark("a.py", "", Span(n, 0, n, 0), str(n)) for n in range(1, len(old) + 1)]
    known = [(one.span.start_line, int(one.message)) for one in carried(about, old, document.lines)]
    assert all(document.lines[here - 1] == old[origin - 1] for here, origin in known)
    assert [here for here, _ in known] == sorted({here for here, _ in known})


@given(TEXTS, ENCODINGS, st.integers(-1, 20), st.integers(0, 30))
@example("", "utf-16", 3, 3)
def test_positions_outside_the_text_are_taken_to_its_nearest_end(
    text: str, encoding: str, line: int, column: int
) -> None:
    document = Document("file:///a.py", encoding, 1, text)
    place = document.place(Position(max(0, line), column))
    assert 1 <= place[0] <= len(document.lines)
    assert 0 <= place[1] <= len(document.lines[place[0] - 1].rstrip("\r\n"))
    if line >= len(document.lines):
        assert document.position(*place) == document.position(len(document.lines), 10**6)


def test_halves_of_a_character_are_put_together() -> None:
    document = Document("file:///a.py", "utf-16", 1, "x = '\ud83d'")
    end = Position(0, 6)
    document.apply(changed("\ude00", end, end))
    assert document.text == "x = '😀'"
    assert document.position(1, 6) == Position(0, 7)
