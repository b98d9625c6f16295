"""From text to LibCST's tree, or one line that says why not."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final

import libcst as cst

from advisor.frontend.syntax.guard import check_parseable
from advisor.source import ParseProblem

_PLACE: Final = re.compile(r"error at (\d+):(\d+)")
_NO_TOKEN: Final = "tokenizer error: "
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
    except cst.CSTValidationError as error:
        # a name with a letter that joins others, which the grammar takes and the tree does not
        line, column = _place_by_python(source) or (1, 0)
        raise ParseProblem(path, line, column, "does not parse as Python 3") from error


def _place_by_python(source: str) -> tuple[int, int] | None:
    """Return where Python's own parser stops: line from 1, column from 0; None where it does not.

    To be called for a text that the guard has let through.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts about the text are not ours to tell
            ast.parse(source)
    except SyntaxError as error:
        if error.lineno is not None:
            return max(1, error.lineno), max(0, (error.offset or 1) - 1)
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _problem(path: str, source: str, error: cst.ParserSyntaxError) -> ParseProblem:
    message = error.message.splitlines()[0]
    # raw_line counts from 1, raw_column from 0
    line, column = error.raw_line, error.raw_column
    place = _PLACE.search(message)
    lines = _LINE_END.split(source)
    if place is None:
        # of what is no token, such as mixed indentation, LibCST does not say where it stands
        reason = f"does not parse: {message.removeprefix(_NO_TOKEN)}"
        line, column = _place_by_python(source) or (line, column)
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
