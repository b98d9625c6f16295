"""Names in remarks are not the program's; those in strings may be."""

from __future__ import annotations

import io
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.kit.names import without_comments

PIECES = (
    "u = 1",
    "'u # u'",
    '"u # u"',
    "'it\\'s # u'",
    '"""u # u"""',
    "'''\nu # u\n'''",
    "r'\\u # u'",
    "# u 'u",
    '# "u',
    "# '''",
    " ; ",
    "\n",
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_only_comments_are_blanked(source: str) -> None:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    if any(token.type == tokenize.ERRORTOKEN for token in tokens):
        return
    lines = source.split("\n")
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column] + " " * len(token.string)
    assert list(without_comments(source)) == lines


@pytest.mark.parametrize("line", ["f\"{'#'}{u}\"", 'x = f"{v!r:#>9}{u}"', "F'{a}'  # u"])
def test_lines_with_formatted_strings_are_left_as_they_are(line: str) -> None:
    assert without_comments(f"{line}\nx  # u") == (line, "x     ")
