"""Files are decoded as Python would, and replaced all at once or not at all."""

from pathlib import Path

import pytest

from advisor.files import decode_source, replace_file
from advisor.source import SourceProblem


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
