"""Parse text, and refuse what the parser would not survive before it sees it.

LibCST's parser is recursive and compiled: some thousand open brackets end the process, and some
ten thousand chained operators keep it busy for minutes. So the depth of nesting is bounded from
the tokens alone, in one pass that costs a hundredth of what parsing does. The bound is from
above: every operator is taken to hold all that follow it up to the next comma.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import libcst as cst

from advisor.source import ParseProblem

# How the front end says that it does not understand something.


class NotUnderstood(Exception):
    """An expression or statement outside the understood language; never an error of the user."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotKnown(NotUnderstood):
    """A name whose meaning was lost, or that was never given one."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


MOST_BRACKETS: Final = 200
"""Open at once; Python's own parser takes no more."""

MOST_LEVELS: Final = 100
"""Of indentation; Python's own parser takes no more."""

MOST_CHAINED: Final = 1000
"""Operators, calls and conditions that may depend on one another."""

MOST_TOKENS: Final = 200_000
"""Strings, brackets, operators and line ends; some 20 000 lines of usual code."""

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_TOKEN: Final = re.compile(
    r'''
    (?P<string>
        """[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""|\Z)
      | \'\'\'[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:\'\'\'|\Z)
      | "[^"\\\r\n]*(?:\\(?:\r\n|.)[^"\\\r\n]*)*"?
      | '[^'\\\r\n]*(?:\\(?:\r\n|.)[^'\\\r\n]*)*'?
    )
  | (?P<comment>\#[^\r\n]*)
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
  | (?P<line>(?:\r\n|\n|\r)[ \t\f]*)
  | (?P<joined>\\(?:\r\n|\n|\r))
  | (?P<comma>[,;])
  | (?P<number>\b\d[\w.]*(?:(?<=[eE])[-+]\d+)?)
  | (?P<operator>
        \b(?:if|else|elif|not|and|or|lambda|await|for|in|is|from|yield)\b
      | \*\*|//|->|<<|>>|[<>=!]=|[-+*/%@&|^~<>.]
    )
    ''',
    re.VERBOSE | re.DOTALL,
)
_CONDITION: Final = re.compile(r"(el)?if\b")
_REPLACED: Final = re.compile(r"\{\{|\}\}")
_SHORT: Final = 2 * MOST_BRACKETS


def check_parseable(path: str, source: str) -> None:
    """Refuse a text that is nested too deeply, too large, or no text.

    Raises
    ------
    ParseProblem
        At the place where it becomes so.
    """
    null = source.find("\0")
    if null >= 0:
        raise _problem(path, source, null, "null byte: this is not Python source")
    found = _first_too_much(source, in_fields=False)
    if found is not None:
        raise _problem(path, source, *found)


@contextmanager
def deep_nesting_refused(path: str) -> Iterator[None]:
    """Turn running out of stack into its one line.

    Raises
    ------
    ParseProblem
        Instead of RecursionError.
    """
    try:
        yield
    except RecursionError as error:
        raise ParseProblem(path, 1, 0, "nested too deeply to be analysed") from error


def _first_too_much(source: str, *, in_fields: bool) -> tuple[int, str] | None:
    """Return where and why a text is too much for the parser.

    Parameters
    ----------
    source : str
    in_fields : bool
        Whether this is the inside of a formatted string: only what stands in braces counts.
    """
    chained = [0]  # by open bracket, the statement first
    total = 0
    levels = [0]
    conditions: dict[int, int] = {}
    for number, token in enumerate(_TOKEN.finditer(source)):
        if number >= MOST_TOKENS:
            return token.start(), (
                f"too large to be parsed: more than {MOST_TOKENS} strings, operators and lines"
            )
        kind = token.lastgroup
        if in_fields and len(chained) == 1 and token.group() != "{":
            continue
        if kind == "open":
            if len(chained) > MOST_BRACKETS:
                return token.start(), (
                    f"nested too deeply: more than {MOST_BRACKETS} open brackets, which is what"
                    " Python itself takes"
                )
            # what is called or indexed holds what came before it
            chained[-1] += 1
            total += 1
            chained.append(0)
        elif kind == "close":
            if len(chained) > 1:
                total -= chained.pop()
        elif kind == "comma":
            total -= chained[-1]
            chained[-1] = 0
        elif kind == "line":
            if len(chained) == 1:
                total = chained[0] = 0
                # a blank line and a comment say nothing about levels
                if source[token.end() : token.end() + 1] not in ("", "\r", "\n", "#"):
                    width = len(token.group().lstrip("\r\n"))
                    found = _too_indented(levels, width) or _too_many(
                        conditions, width, _CONDITION.match(source, token.end())
                    )
                    if found is not None:
                        return token.end(), found
        elif kind == "string" or kind == "operator":
            chained[-1] += 1
            total += 1
            if kind == "string" and _is_formatted(source, token):
                inside = _first_too_much(_REPLACED.sub("  ", token.group()[1:]), in_fields=True)
                if inside is not None:
                    return token.start() + 1 + inside[0], inside[1]
        if total > MOST_CHAINED:
            return token.start(), (
                f"nested too deeply: more than {MOST_CHAINED} operators, calls and conditions"
                " depend on one another"
            )
    return None


def _too_indented(levels: list[int], width: int) -> str | None:
    while levels[-1] > width:
        levels.pop()
    if levels[-1] < width:
        levels.append(width)
    if len(levels) - 1 > MOST_LEVELS:
        return (
            f"nested too deeply: more than {MOST_LEVELS} levels of indentation, which is what"
            " Python itself takes"
        )
    return None


def _too_many(
    conditions: dict[int, int], width: int, condition: re.Match[str] | None
) -> str | None:
    """Count the branches of one condition: each holds all that follow."""
    if condition is None:
        return None
    conditions[width] = conditions.get(width, 0) + 1 if condition[1] else 0
    if conditions[width] > MOST_CHAINED:
        return f"nested too deeply: more than {MOST_CHAINED} branches of one condition"
    return None


def _is_formatted(source: str, token: re.Match[str]) -> bool:
    prefix = source[max(0, token.start() - 2) : token.start()].lower()
    return len(token.group()) > _SHORT and ("f" in prefix or "t" in prefix)


def _problem(path: str, source: str, offset: int, message: str) -> ParseProblem:
    starts = [0, *(found.end() for found in _LINE_END.finditer(source, 0, offset))]
    line = bisect_right(starts, offset)
    return ParseProblem(path, line, offset - starts[line - 1], message)


# From text to LibCST's tree, or one line that says why not.

_PLACE: Final = re.compile(r"error at (\d+):(\d+)")
_NO_TOKEN: Final = "tokenizer error: "
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
        raise _not_parsed(path, source, error) from error
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


def _not_parsed(path: str, source: str, error: cst.ParserSyntaxError) -> ParseProblem:
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
