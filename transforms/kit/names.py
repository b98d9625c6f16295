"""Names in the text of a program: where they stand, what binds them, what an argument says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from io import StringIO
from textwrap import dedent
from tokenize import NAME, NEWLINE, OP, TokenError, generate_tokens

from advisor.ir.kernel import lines_of
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.program import RANKS, Program, SpmdFunction
from advisor.ir.spmd.ranks import Communicator
from advisor.ir.spmd.steps import Branch, Communicate, Loop
from advisor.source import Span
from costdb.expr import Expr, free_symbols
from costdb.wording import IDENTIFIER, NAME_PART
from transforms.kit.ranks import root_arms
from transforms.kit.rewrite import python_text, stands_alone

_WORD = re.compile(rf"(?<![{NAME_PART}.]){IDENTIFIER}")


_BINDERS = frozenset({"for", "as", "def", "class", "import", "del", "global", "nonlocal"})


_HEADERS = frozenset(
    {"for", "while", "if", "elif", "else", "with", "try", "except", "finally", "def", "class"}
)


_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


_COMPARISONS = frozenset({"==", "!=", "<=", ">="})

_COMMENT_OR_STRING = re.compile(
    r"""(\"{3}|'{3})(?:\\.|(?!\1).)*\1|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'|\#[^\r\n]*""",
    re.DOTALL,
)


_FORMATTED = re.compile(r"""\b[rR]?[fFtT][rR]?["']""")


_LIKE = re.compile(r"\b(?:(?:empty|zeros|ones|full)_like|len)\(\s*$")


_MEASURE = re.compile(r"\.(?:shape|size|dtype|ndim|nbytes|itemsize)\b(?!\s*=(?!=))")


_TARGETS_BEFORE = re.compile(rf"\s*({IDENTIFIER}\s*,\s*)*")


_TARGETS_BEHIND = re.compile(rf"\s*(,\s*{IDENTIFIER}\s*)*(:[^=]*)?=(?!=)")

_KEYWORD = re.compile(r"\A\s*\w+\s*=(?!=)\s*")


_NAME = re.compile(IDENTIFIER)
BASE = re.compile(r"([\w.]+)\s*\[.*\]", re.DOTALL)
"""A subscript of a name."""


# --- what an argument or a statement says


def argument(step: Communicate, name: str, program: Program) -> str | None:
    """Return the text of an argument's value; None where it is left out."""
    place = step.places.get(name)
    if place is None:
        return None
    return _KEYWORD.sub("", program.context.text(place), count=1)


def keywords(step: Communicate, names: Iterable[str], program: Program) -> list[str]:
    """Return arguments as keywords, those that are given."""
    found = ((name, argument(step, name, program)) for name in names)
    return [f"{name}={text}" for name, text in found if text is not None]


def is_simple(step: Communicate, program: Program) -> bool:
    """Return whether a statement is nothing but a call, whose value may get a name.

    It stands alone on its lines, and holds no comment, so that it can be replaced as a whole.
    """
    context = program.context
    statement = context.text(step.statement)
    if "#" in statement or not stands_alone(context, step.statement):
        return False
    call = context.text(step.span)
    if step.result is None:
        return statement == call
    return is_name(step.result) and _without_blanks(statement) == _without_blanks(
        f"{step.result}={call}"
    )


def is_name(text: str) -> bool:
    """Return whether a text is a name."""
    return _NAME.fullmatch(text) is not None


def _without_blanks(text: str) -> str:
    return re.sub(r"\s+", "", text)


def is_uniform(program: Program, sizes: Iterable[Expr]) -> bool:
    """Return whether sizes are known, and the same on every rank."""
    return all(
        name == RANKS or (name in program.sizes and program.sizes[name].value is not None)
        for size in sizes
        for name in free_symbols(size)
    )


def shape_text(view: View, function: SpmdFunction, program: Program, place: Span) -> str | None:
    """Return the shape of a view as Python that means it at a place; None where nothing does."""
    shape = view.shape
    if shape is None:
        return None
    texts = {
        name: name
        for size in shape
        for name in free_symbols(size)
        if _has_value_at(name, function, program, place)
    }
    parts = [python_text(size, texts) for size in shape]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return known[0] if len(known) == 1 else f"({', '.join(known)})"


def _has_value_at(name: str, function: SpmdFunction, program: Program, place: Span) -> bool:
    """Return whether a symbol's name surely denotes it at a place, on every rank that gets there.

    That is so for a name with one meaning that is bound before, in a block around the place.
    """
    if not is_name(name) or any(re.fullmatch(rf"{name}_\d+", other) for other in program.sizes):
        return False
    if name in function.parameters:
        return True
    fact = program.sizes.get(name)
    if fact is None or fact.span is None or fact.span.start_line >= place.start_line:
        return False
    column = fact.span.start_column
    if column > 0 and not function.whole.contains(fact.span):
        return False
    between = program.context.lines[fact.span.start_line - 1 : place.start_line]
    if column > 0:
        return all(_indent(line) >= column for line in between if line.strip())
    return program.context.lines[fact.span.start_line - 1].startswith(name)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# --- where names stand


def occurrences(name: str, function: SpmdFunction, program: Program) -> list[Span]:
    """Return every place of a name in a function, strings included, which may be evaluated."""
    pattern = re.compile(rf"(?<![{NAME_PART}.]){re.escape(name)}(?![{NAME_PART}])")
    whole, found = function.whole, []
    lines = without_comments(program.context.source)
    for number, line in enumerate(lines[whole.start_line - 1 : whole.end_line], whole.start_line):
        found += [
            Span(number, match.start(), number, match.end()) for match in pattern.finditer(line)
        ]
    return found


@lru_cache(maxsize=4)
def without_comments(source: str) -> tuple[str, ...]:
    """Return the lines of a source with blanks in the place of its comments.

    On lines with formatted strings they are left: those may hold anything between their quotes.
    """
    lines = lines_of(_COMMENT_OR_STRING.sub(_blanked, source))
    if not _FORMATTED.search(source):
        return tuple(lines)
    pairs = zip(lines, lines_of(source), strict=True)
    return tuple(whole if _FORMATTED.search(whole) else line for line, whole in pairs)


def _blanked(found: re.Match[str]) -> str:
    return " " * len(found[0]) if found[0].startswith("#") else found[0]


def is_binding(place: Span, program: Program) -> bool:
    """Return whether a name at a place is what a statement gives a value to."""
    line = program.context.lines[place.start_line - 1]
    return bool(
        _TARGETS_BEFORE.fullmatch(line[: place.start_column])
        and _TARGETS_BEHIND.match(line[place.end_column :])
    )


def is_measured(place: Span, program: Program) -> bool:
    """Return whether only the shape or the type of what a name denotes is asked for at a place."""
    line = program.context.lines[place.start_line - 1]
    before, behind = line[: place.start_column], line[place.end_column :]
    return _LIKE.search(before) is not None or _MEASURE.match(behind) is not None


def within(place: Span, spans: Iterable[Span]) -> bool:
    """Return whether a place is in one of several spans."""
    return any(span.contains(place) for span in spans)


def root_lines(
    function: SpmdFunction, communicator: Communicator, root: Expr, program: Program
) -> list[Span]:
    """Return the stretches of source that only the root gets to: whole suites of branches."""
    found: list[Span] = []
    for visit in function.visits():
        branch = visit.step
        if not isinstance(branch, Branch):
            continue
        arms = root_arms(branch, communicator, root)
        if arms is None or arms[0] != branch.then or branch.then == branch.orelse:
            continue
        found.append(suite_of(branch.span, program))
    return found


def suite_of(header: Span, program: Program) -> Span:
    """Return the lines that belong to the header of an ``if``, by their indentation."""
    lines = program.context.lines
    indent = header.start_column
    last = header.end_line
    for number in range(header.end_line + 1, len(lines) + 1):
        line = lines[number - 1]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        if line.strip():
            last = number
    return Span(header.start_line, header.start_column, last, len(lines[last - 1]))


# --- what binds them


def words(text: str) -> frozenset[str]:
    """Return the names in a piece of source, without attributes."""
    return frozenset(_WORD.findall(text))


def bound_in(program: Program, loop: Loop) -> frozenset[str]:
    """Return every name that a loop may bind, and some that it only indexes with."""
    suite = suite_of(loop.span, program)
    return bound_in_lines(program, suite.start_line, suite.end_line)


def bound_in_lines(program: Program, first: int, last: int) -> frozenset[str]:
    """Return every name that whole lines of one block may bind, and some more; in doubt, all."""
    lines = program.context.lines[first - 1 : last]
    text = dedent("\n".join(line.rstrip("\n") for line in lines)) + "\n"
    try:
        tokens = [
            t for t in generate_tokens(StringIO(text).readline) if t.type in (NAME, OP, NEWLINE)
        ]
    except (TokenError, SyntaxError):
        return words(text)
    found: set[str] = set()
    statement: list[str] = []
    depth, binds = 0, False
    for token in tokens:
        word = token.string
        if token.type == NEWLINE or (word == ";" and not depth):
            statement, binds = [], False
        elif token.type == NAME:
            binds = word in _BINDERS or (binds and word != "in")
            if binds:
                found.add(word)
            statement.append(word)
        elif word in _BRACKETS:
            depth += _BRACKETS[word]
        elif word == ":=":
            found.add(statement[-1])
        elif word.endswith("=") and word not in _COMPARISONS and not depth:
            found.update(statement)
        elif word == ":" and not depth and statement and statement[0] in _HEADERS:
            statement, binds = [], False
    return frozenset(found)
