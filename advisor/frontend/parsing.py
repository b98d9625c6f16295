"""From text to LibCST's tree, or one line that says why not."""

from __future__ import annotations

import re
from typing import Final

import libcst as cst

from advisor.frontend.guard import check_parseable
from advisor.source import ParseProblem

_PLACE: Final = re.compile(r"error at (\d+):(\d+)")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_PYTHON_2: Final = re.compile(
    r"""[ \t]*(?:print[ \t]+[^\s=(.,:]|exec[ \t]+[^\s=(.,:]|raise[ \t]+\w+[ \t]*,)|.*(?:<>|`)"""
)


def parse(path: str, source: str) -> cst.Module:
    """Return the tree of a file.

    Raises
    ------
    ParseProblem
        It is not Python 3, or nested too deeply, or too large.
    """
    check_parseable(path, source)
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise _problem(path, source, error) from error


def _problem(path: str, source: str, error: cst.ParserSyntaxError) -> ParseProblem:
    message = error.message.splitlines()[0]
    # raw_line counts from 1, raw_column from 0
    line, column = error.raw_line, error.raw_column
    place = _PLACE.search(message)
    lines = _LINE_END.split(source)
    if place is None:
        reason = f"does not parse: {message}"
    else:
        # the parser names the end of the token that it stumbled over, and all that it would
        # have taken instead, which nobody reads
        if line == int(place[1]):
            column = max(0, int(place[2]) - 1)
        reason = "does not parse as Python 3"
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    if _PYTHON_2.match(text):
        reason += ": this looks like Python 2"
    return ParseProblem(path, line, min(column, len(text)), reason)
