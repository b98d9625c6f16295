"""A file's tree with the place of every node, and what is within a node."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, Final

import libcst as cst
from libcst.metadata.position_provider import PositionProvider, PositionProvidingCodegenState

from advisor.source import ParseProblem, Span, without_progress
from costdb.records import dataclass, fields

# Parse text, and refuse what the parser would not survive before it sees it.
#
# LibCST's parser is recursive and compiled: some thousand open brackets end the process, and some
# ten thousand chained operators keep it busy for minutes. So the depth of nesting is bounded from
# the tokens alone, in one pass that costs a hundredth of what parsing does. The bound is from
# above: every operator is taken to hold all that follow it up to the next comma.


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
    """Return the tree of a file, in which no loop shows its progress.

    Raises
    ------
    ParseProblem
        It is not Python 3, or nested too deeply, or too large.
    """
    check_parseable(path, source)
    try:
        return cst.parse_module(without_progress(source))
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


MOST_NODES: Final = 2000
"""Of which all that is within is kept of late: of a loop it is asked twenty times."""

MOST_TREES: Final = 16
"""Kept of late: several readers ask for one, and a program for those of the modules beside it."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed file.

    Attributes
    ----------
    module : libcst.Module
    span_of : callable
        The place of a node.
    comments : callable
        Their places in the order of the source.
    """

    module: cst.Module
    span_of: Callable[[cst.CSTNode], Span]
    comments: Callable[[], tuple[Span, ...]]


@lru_cache(MOST_TREES)
def tree_of(path: str, source: str) -> Tree:
    """Return the tree of a file.

    Raises
    ------
    ParseProblem
        As :func:`advisor.frontend.trees.parse` does.
    """
    module = parse(path, source)
    # worked out when first asked: of most modules beside a program nobody asks for any
    placing = cache(lambda: _Placing(module))
    return Tree(
        module,
        lambda node: Span(*placing().places[id(node)]),
        lambda: tuple(sorted(Span(*one) for one in placing().comments)),
    )


class _Placing(PositionProvidingCodegenState):
    """Where nodes stand, told as their text is made: a quarter of the time of LibCST's own."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(module.default_indent, module.default_newline, PositionProvider())
        self.places: dict[int, tuple[int, int, int, int]] = {}
        self.comments: list[tuple[int, int, int, int]] = []
        self._begun: list[tuple[int, int]] = []
        self._within: list[tuple[Any, Any, Any, tuple[int, int]]] = []
        module._codegen(self)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._begun.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        # with the blanks around it where nothing says what of it has a meaning
        place = self.places.setdefault(id(node), (*self._begun.pop(), self.line, self.column))
        if type(node) is cst.Comment:
            self.comments.append(place)

    def record_syntactic_position(self, node: cst.CSTNode, **ends: cst.CSTNode | None) -> Any:
        of = node, ends.get("start_node"), ends.get("end_node")
        self._within.append((*of, (self.line, self.column)))
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        node, first, last, begun = self._within.pop()
        begun = begun if first is None else self.places[id(first)][:2]
        end = (self.line, self.column) if last is None else self.places[id(last)][2:]
        self.places[id(node)] = (*begun, *end)


# What is within a node, without what LibCST's own visit does besides: ``node.visit(visitor)`` makes
# every node anew, so that visitors may change the tree, and goes through blanks, commas and
# brackets; names and statements need neither.

_TOKENS = frozenset(
    {
        "leading_lines", "lines_after_decorators", "lines_after_module_docstring", "header",
        "footer", "trailing_whitespace", "indent", "encoding", "default_indent",
        "default_newline", "has_trailing_newline", "lpar", "rpar", "lbracket", "rbracket",
        "lbrace", "rbrace", "comma", "semicolon", "equal", "colon", "first_colon", "second_colon",
        "dot", "separator", "leading_whitespace",
    }
)  # fmt: skip
"""Fields that hold nothing but blanks, comments and punctuation."""


def parts_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what stands directly within a node, in the order of the source.

    Blanks, comments and punctuation are left out, and names that denote nothing by themselves:
    those of attributes and keywords, and all within an import.
    """
    for name in _fields_of(type(node)):
        held = getattr(node, name)
        for part in held if isinstance(held, list | tuple) else (held,):
            if _is_node(type(part)):  # type: ignore[arg-type]  # a type is hashable
                yield part


@cache
def _is_node(kind: type) -> bool:
    return issubclass(kind, cst.CSTNode)


@lru_cache(MOST_NODES)
def nodes_in(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """Return a node and all that is within it, as `parts_of` does."""
    found, pending = [], [node]
    while pending:
        found.append(pending.pop())
        pending.extend(reversed(list(parts_of(found[-1]))))
    return tuple(found)


GOING_THROUGH = frozenset({"sum", "max", "min", "any", "all"})
"""Functions of Python that go through what a generator gives, and keep a number."""


def is_loop(node: cst.CSTNode) -> bool:
    """Return whether a node is a loop: also a call of such a function, given a comprehension."""
    match node:
        case cst.For() | cst.While():
            return True
        case cst.Call(
            cst.Name(name), [cst.Arg(cst.ListComp() | cst.GeneratorExp(), None, star="")]
        ):
            return name in GOING_THROUGH
    return False


_NO_NAME = re.compile(r"<(list|rows?) ([0-9]+)>")
_AS_NAME = re.compile(r"(list|rows?)__([0-9]+)")


def name_of(text: str) -> str:
    """Return what a name of `as_python` is called, which may be no name in the source."""
    found = _AS_NAME.fullmatch(text)
    return text if found is None else f"<{found[1]} {found[2]}>"


@lru_cache(MOST_NODES)
def as_python(node: cst.CSTNode) -> ast.stmt | ast.expr:
    """Return a statement or an expression as Python's own parser reads it.

    What stands for one and is none is code that nobody knows, and given all names in it.
    """
    text = _NO_NAME.sub(r"\1__\2", cst.Module([]).code_for_node(node).strip())
    try:
        if isinstance(node, cst.BaseExpression):
            return ast.parse(f"({text})", mode="eval").body
        (found,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        names = dict.fromkeys(one.value for one in nodes_in(node) if type(one) is cst.Name)
        given: list[ast.expr] = [ast.Name(one, ast.Load()) for one in names]
        return ast.Call(ast.Name("<unknown>", ast.Load()), given, [])
    return found


_ORDERS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.CompFor: ("asynchronous", "target"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.For: ("asynchronous", "target"),
    cst.FunctionDef: (
        "decorators", "asynchronous", "name", "type_parameters", "params", "returns", "body"
    ),
    cst.IfExp: ("body", "test", "orelse"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.Parameters: ("posonly_params", "posonly_ind", "params"),
    cst.With: ("asynchronous", "items"),
}  # fmt: skip
"""Of nodes whose fields are declared in another order than they stand in the source."""


@cache
def _fields_of(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = [field.name for field in fields(kind)]
    if kind in (cst.Import, cst.ImportFrom):
        return ()
    silent = {cst.Attribute: "attr", cst.Arg: "keyword"}.get(kind)
    kept = [n for n in names if n not in _TOKENS and n != silent and not n.startswith("whitespace")]
    order = _ORDERS.get(kind, ())
    return (*order, *(name for name in kept if name not in order))
