"""Edits are carried out exactly, on any line ends, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.files import decode_source, replace_file
from advisor.source import (
    Edit,
    EditError,
    SourceProblem,
    Span,
    apply_edits,
    conflicting,
    newline_of,
    split_lines,
    unified_diff,
)

TEXT = st.text(st.sampled_from("ab\té\u2028\x0c🐍\n\r"), max_size=30).map(
    lambda text: text + "\r\n"
) | st.text(st.sampled_from("ab\té🐍\n"), max_size=30)


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> Edit:
    return Edit(Span(*start, *end), text)


@given(TEXT)
def test_lines_join_to_the_text_and_end_where_python_ends_them(source: str) -> None:
    lines = split_lines(source)
    assert "".join(lines) == source
    assert len(lines) == source.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


@given(TEXT, st.data())
def test_disjoint_edits_equal_slicing_from_the_back(source: str, data: st.DataObject) -> None:
    offsets, position = {}, 0
    for number, line in enumerate(split_lines(source), start=1):
        for column in range(len(line.rstrip("\r\n")) + 1):
            offsets[number, column] = position + column
        position += len(line)
    places = sorted(offsets)
    chosen = sorted(data.draw(st.sets(st.sampled_from(places), max_size=6)))
    pairs = list(zip(chosen[::2], chosen[1::2], strict=False))
    edits = [edit(a, b, data.draw(st.sampled_from(("", "x", "yz")))) for a, b in pairs]
    expected = source
    for one, (a, b) in reversed(list(zip(edits, pairs, strict=True))):
        expected = expected[: offsets[a]] + one.replacement + expected[offsets[b] :]
    assert apply_edits(source, data.draw(st.permutations(edits))) == expected


def test_replacements_take_the_line_ends_of_the_text() -> None:
    assert apply_edits("a\r\nb\r\n", [edit((1, 0), (1, 1), "x\ny")]) == "x\r\ny\r\nb\r\n"
    assert apply_edits("a\rb", [edit((2, 1), (2, 1), "\nc")]) == "a\rb\rc"
    assert apply_edits("a\r\nb\r\n", [edit((1, 0), (1, 1), "x\r\ny")]) == "x\r\ny\r\nb\r\n"
    assert newline_of("no end") == "\n"


@pytest.mark.parametrize(
    "edits",
    [
        [edit((1, 0), (1, 3), "x"), edit((1, 2), (1, 4), "y")],
        [edit((1, 0), (2, 1), "x"), edit((1, 3), (1, 3), "y")],
        [edit((1, 1), (1, 1), "x"), edit((1, 1), (1, 1), "y")],
        [edit((3, 0), (3, 0), "x")],
        [edit((0, 0), (1, 0), "x")],
        [edit((1, 5), (1, 5), "x")],
        [edit((2, 1), (1, 0), "x")],
    ],
)
def test_what_has_no_one_meaning_is_refused(edits: list[Edit]) -> None:
    with pytest.raises(EditError) as refusal:
        apply_edits("abcd\nefgh", edits)
    assert "\n" not in str(refusal.value)


def test_touching_edits_do_not_conflict() -> None:
    left, right = edit((1, 0), (1, 2), "x"), edit((1, 2), (1, 4), "y")
    assert not conflicting(left, right)
    assert apply_edits("abcd", [right, left]) == "xy"


def test_diff_of_texts_without_a_final_line_end() -> None:
    assert unified_diff("a.py", "a\nb", "a\nc\n") == (
        "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"
    )
    assert unified_diff("a.py", "same", "same") == ""


@given(TEXT, TEXT)
def test_a_diff_holds_every_line_of_both_sides(before: str, after: str) -> None:
    diff = unified_diff("a.py", before, after)
    assert bool(diff) == (before != after)
    for sign, text, other in (("-", before, after), ("+", after, before)):
        for line in set(text.split("\n")[:-1]) - set(other.split("\n")[:-1]):
            assert f"\n{sign}{line}\n" in diff


# Files are decoded as Python would, and replaced all at once or not at all.


@pytest.mark.parametrize(
    "data, encoding, text",
    [
        (b"x\r\n", "utf-8", "x\r\n"),
        (b"\xef\xbb\xbf# coding: utf8\n", "utf-8-sig", "# coding: utf8\n"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n\xe9", "iso8859-1", None),
        (b"x = 1\n# coding: latin-1\n", "utf-8", None),
        (b"\n\n# coding: latin-1\n", "utf-8", None),
        (b"", "utf-8", ""),
    ],
)
def test_the_declaration_decides(data: bytes, encoding: str, text: str | None) -> None:
    file = decode_source("k.py", data)
    assert file.encoding == encoding
    assert text is None or file.text == text
    assert file.encode(file.text) == data


@pytest.mark.parametrize(
    "data, message",
    [
        (b"# coding: klingon\n", "k.py:1:1: unknown encoding 'klingon'"),
        (b"# coding: undefined\n", "k.py:1:1: unknown encoding 'undefined'"),
        (b"\n# coding: hex\n", "k.py:2:1: unknown encoding 'hex'"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "k.py:1:1: declares 'latin-1'"),
        (b"a\r\nb\r'\xc3\xa9' \xff", "k.py:3:5: byte 0xff is not utf-8"),
        (b"\xef\xbb\xbfa\xff", "k.py:1:2: byte 0xff is not utf-8"),
    ],
)
def test_what_cannot_be_decoded_has_a_place(data: bytes, message: str) -> None:
    with pytest.raises(SourceProblem) as problem:
        decode_source("k.py", data)
    assert str(problem.value).startswith(message)


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    replace_file(str(tmp_path / "new"), b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_failure_before_the_end_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "k.py"
    path.write_bytes(b"old")
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        replace_file(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
