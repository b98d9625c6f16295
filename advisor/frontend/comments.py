"""Reads ``# advise:`` comments: the grammar of the annotations for code that imports nothing.

::

    directive   = "kernel" { NAME "=" ( INTEGER | NUMBER ) [","] }
                | NAME ":" DTYPE
                | NAME ":" DTYPE "[" EXPR { "," EXPR } "]" [ distributed ] { option }
                | "trip" EXPR
                | "prob" EXPR
                | "cost" EXPR ( "us" | "ms" | "s" )
                | ( "ignore" | "ignore-file" | "ignore-start" | "ignore-end" ) [ codes ]
    distributed = "over" "(" dim { "," dim } ")" "on" "mesh" "(" axis { "," axis } ")"
    dim         = "none" | "None" | NAME | "block" "(" names ")"
                | "cyclic" "(" names [ "," INTEGER ] ")"
    names       = NAME { "*" NAME }
    axis        = NAME "=" ( INTEGER | NAME )
    option      = "order" "=" ( "C" | "F" )
                | "halo" "=" ( INTEGER | "(" INTEGER { "," INTEGER } ")" )
    codes       = "[" rule { "," rule } "]"
    rule        = CODE | NAME { "-" NAME }

A directive ends at the end of its comment or at the next comment sign, so that one comment may
hold a directive and a remark, or a directive after somebody else's pragma.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import Final, NoReturn, TypeVar

from advisor.distribution import (
    ArraySpec,
    AxisMap,
    BlockDim,
    CyclicDim,
    MeshSpec,
    NotDistributed,
    StorageOrder,
    check_spec,
)
from advisor.frontend.directives import (
    MICROSECONDS_OF,
    AnyDirective,
    ArrayComment,
    CommentError,
    KernelComment,
    NumberComment,
    Probability,
    Scope,
    StatedCost,
    Suppression,
    Trip,
)
from advisor.numpy_table import UnknownDtype, dtype_of
from advisor.source import Span
from costdb.records import IDENTIFIER, dataclass

Item = TypeVar("Item")

_DIRECTIVE: Final = re.compile(r"#[ \t]*advise[ \t]*:([^#\r\n]*)")
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
# Strings are matched only so that a comment sign within one is not taken for a comment.
_STRING_OR_COMMENT: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"""|\Z)|'''
    r"""'''(?:\\.|[^\\])*?(?:'''|\Z)|"""
    r""""(?:\\(?:\r\n|.)|[^"\\\r\n])*"?|"""
    r"""'(?:\\(?:\r\n|.)|[^'\\\r\n])*'?|"""
    r"""(?P<comment>\#[^\r\n]*)""",
    re.DOTALL,
)
_CODE: Final = re.compile(r"[A-Z]+[0-9]+")


_TOKEN: Final = re.compile(
    rf"(?P<name>{IDENTIFIER})|(?P<number>\d+(?:_\d+)*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<mark>\S)"
)
_DECIMAL: Final = re.compile(r"\d[\d_]*\.|\.\d")
_CLOSING: Final = {"(": ")", "[": "]"}
_LARGEST_DIGITS: Final = 18
_LONGEST_SHOWN: Final = 30
_EXPR_COLUMN: Final = re.compile(r"column (\d+): (.*)")


def parse_comment(
    text: str, line: int = 1, column: int = 0, *, own_line: bool = True
) -> tuple[AnyDirective, ...]:
    """Read the directives in the text of one comment.

    Parameters
    ----------
    text : str
        From the comment sign to the end of the line.
    line, column : int
        Where the comment sign stands: line from 1, column from 0.
    own_line : bool
        Whether only blanks precede the comment.

    Returns
    -------
    tuple of directives
        Empty for a comment without ``advise:``.

    Raises
    ------
    CommentError
        For the first directive that does not follow the grammar or contradicts itself.
    """
    directives = []
    for found in _DIRECTIVE.finditer(text):
        end = found.start() + len(found.group().rstrip())
        span = Span(line, column + found.start(), line, column + end)
        reader = DirectiveReader(found.group(1), line, column + found.start(1))
        directives.append(_directive(reader, span, own_line))
        reader.end()
    return tuple(directives)


@dataclass(frozen=True, slots=True)
class Comments:
    """All directives of a file in order, and what is wrong with those that could not be read."""

    directives: tuple[AnyDirective, ...]
    errors: tuple[CommentError, ...]


def scan_comments(source: str) -> Comments:
    """Find and read every directive of a file, whether or not the file parses as Python.

    Comment signs within strings are not comments. Each comment is read on its own, so that
    one mistake hides no other directive.
    """
    if "advise" not in source:
        return Comments((), ())
    line_starts = [0, *(found.end() for found in _NEWLINE.finditer(source))]
    directives: list[AnyDirective] = []
    errors: list[CommentError] = []
    for found in _STRING_OR_COMMENT.finditer(source):
        if found.lastgroup != "comment" or "advise" not in found.group():
            continue
        line = bisect_right(line_starts, found.start())
        line_start = line_starts[line - 1]
        own_line = not source[line_start : found.start()].strip()
        try:
            directives += parse_comment(
                found.group(), line, found.start() - line_start, own_line=own_line
            )
        except CommentError as error:
            errors.append(error)
    return Comments(tuple(directives), tuple(errors))


def read_comments(source: str) -> tuple[AnyDirective, ...]:
    """Return every directive of a file, in order.

    Raises
    ------
    CommentError
        For the first that cannot be read.
    """
    comments = scan_comments(source)
    if comments.errors:
        raise comments.errors[0]
    return comments.directives


def _directive(reader: DirectiveReader, span: Span, own_line: bool) -> AnyDirective:
    if reader.peek(1) == ":":
        return _array(reader, span, own_line)
    start = reader.position
    match reader.name(_EXPECTED):
        case "kernel":
            return _kernel(reader, span, own_line)
        case "trip":
            return Trip(span, own_line, reader.expression("a number of iterations"))
        case "prob":
            return Probability(span, own_line, reader.expression("a probability", most=1))
        case "cost":
            unit = reader.tokens[-1].group()
            if unit not in MICROSECONDS_OF:
                reader.fail_at(len(reader.tokens), "expected a unit (us, ms or s) at the end")
            cost = reader.expression("a cost such as 3*N us", leave=1)
            reader.expect(unit)
            return StatedCost(span, own_line, cost, unit)
        case "ignore":
            return _suppression(reader, span, own_line)
    reader.position = start
    return reader.fail(_EXPECTED)


def _kernel(reader: DirectiveReader, span: Span, own_line: bool) -> KernelComment:
    sizes: dict[str, int] = {}
    numbers: list[str] = []
    while reader.peek():
        name = reader.name("a size such as N=1000")
        if name in sizes or name in numbers:
            reader.fail_at(reader.position - 1, f"size {name} is bound twice")
        reader.expect("=")
        if reader.accept_decimal():
            numbers.append(name)
        else:
            sizes[name] = reader.integer("a whole number", 1)
        if reader.accept(",") and not reader.peek():
            reader.fail("a size such as N=1000")
    return KernelComment(span, own_line, tuple(sizes.items()), tuple(numbers))


def _array(reader: DirectiveReader, span: Span, own_line: bool) -> ArrayComment | NumberComment:
    first = reader.position
    name = reader.name("the name of an array")
    reader.expect(":")
    dtype = reader.name("an element type such as i4 or float64")
    try:
        dtype_of(dtype)
    except UnknownDtype as unknown:
        reader.fail_at(reader.position - 1, str(unknown))
    if not reader.peek():
        return NumberComment(span, own_line, name, dtype_of(dtype).name)
    reader.expect("[")
    shape = reader.separated(lambda: reader.expression("an extent", ",]", least=1), "]")
    dims: tuple[AxisMap, ...] = (NotDistributed(),) * len(shape)
    dim_spans: tuple[Span, ...] = ()
    mesh = MeshSpec()
    mesh_spans: tuple[tuple[str, Span], ...] = ()
    if reader.accept("over"):
        reader.expect("(")
        placed = reader.separated(lambda: _dim(reader), ")")
        dims = tuple(dim for dim, _ in placed)
        dim_spans = tuple(place for _, place in placed)
        for word in ("on", "mesh", "("):
            reader.expect(word)
        axes = reader.separated(lambda: _mesh_axis(reader), ")")
        mesh = MeshSpec(tuple((axis, extent) for axis, extent, _ in axes))
        mesh_spans = tuple((axis, place) for axis, _, place in axes)
    order: StorageOrder | None = None
    halo: tuple[int, ...] | None = None
    while reader.peek():
        option = reader.name("over (...), order=, halo= or the end of the comment")
        if option not in ("order", "halo"):
            reader.position -= 1
            reader.fail(
                f"{'' if dim_spans else 'over (...), '}order=, halo= or the end of the comment"
            )
        if (order if option == "order" else halo) is not None:
            reader.fail_at(reader.position - 1, f"{option} is given twice")
        reader.expect("=")
        if option == "order":
            order = "C" if reader.accept("C") else "F"
            if order == "F" and not reader.accept("F"):
                reader.fail("C or F")
        else:
            halo = _halo(reader, dims)
    spec = ArraySpec(name, dtype, shape, dims, mesh, order or "C", halo or (0,) * len(dims))
    for problem in check_spec(spec):
        reader.fail_at(first, problem)
    return ArrayComment(span, own_line, spec, dim_spans, mesh_spans)


def _halo(reader: DirectiveReader, dims: tuple[AxisMap, ...]) -> tuple[int, ...]:
    what = "a whole number of elements"
    if reader.accept("("):
        return reader.separated(lambda: reader.integer(what, 0), ")")
    position = reader.position
    width = reader.integer(what, 0)
    if width and not any(dim.axes for dim in dims):
        reader.fail_at(position, f"halo {width}, but no dimension is distributed")
    return tuple(width if dim.axes else 0 for dim in dims)


def _dim(reader: DirectiveReader) -> tuple[AxisMap, Span]:
    start = reader.position
    dim = _distribution(reader)
    return dim, reader.span_since(start)


def _distribution(reader: DirectiveReader) -> AxisMap:
    what = "block(axis), cyclic(axis, k), a mesh axis or none"
    word = reader.name(what)
    if word not in ("block", "cyclic"):
        return NotDistributed() if word in ("none", "None") else BlockDim((word,))
    reader.expect("(")
    axes = [reader.name("a mesh axis")]
    while reader.accept("*"):
        axes.append(reader.name("a mesh axis"))
    k = 1
    if word == "cyclic" and reader.accept(","):
        k = reader.integer("the elements in a piece", 1)
    reader.expect(")")
    return BlockDim(tuple(axes)) if word == "block" else CyclicDim(tuple(axes), k)


def _mesh_axis(reader: DirectiveReader) -> tuple[str, int | str, Span]:
    name = reader.name("a mesh axis such as row=4")
    reader.expect("=")
    what = "a number of ranks or the name of a size"
    start = reader.position
    counted = reader.peek()[:1].isdigit()
    extent: int | str = reader.integer(what, 1) if counted else reader.name(what)
    return name, extent, reader.span_since(start)


def _suppression(reader: DirectiveReader, span: Span, own_line: bool) -> Suppression:
    scope = Scope.STATEMENT
    if reader.accept("-"):
        scope = next((s for s in Scope if s == f"ignore-{reader.peek()}"), scope)
        if scope is Scope.STATEMENT:
            reader.fail("file, start or end")
        reader.position += 1
    codes: tuple[str, ...] = ()
    if reader.accept("["):
        codes = reader.separated(lambda: _code(reader), "]")
    return Suppression(span, own_line, scope, codes)


def _code(reader: DirectiveReader) -> str:
    what = "a code such as ADV201, or the name of a rule"
    word = reader.name(what)
    if _CODE.fullmatch(word):
        return word
    if not word.islower():
        reader.position -= 1
        reader.fail(what)
    while reader.accept("-"):
        word += f"-{reader.name(what)}"
    return word


_EXPECTED: Final = "kernel, NAME: DTYPE[...], trip, prob, cost or ignore"


# Tokens of one directive, and a walk over them that explains what it misses.


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}...")


class DirectiveReader:
    """Walks over the tokens of one directive."""

    def __init__(self, body: str, line: int, column: int) -> None:
        self.body = body
        self.line = line
        self.column = column  # of the body's first character, from 0
        self.tokens = list(_TOKEN.finditer(body))
        self.position = 0

    def peek(self, ahead: int = 0) -> str:
        """Return the text of a coming token, empty past the end."""
        place = self.position + ahead
        return self.tokens[place].group() if place < len(self.tokens) else ""

    def fail(self, expected: str) -> NoReturn:
        """Refuse the next token."""
        found = self.peek()
        shown = f"found {_shown(found)}" if found else "the comment ends"
        self.fail_at(self.position, f"expected {expected}, but {shown}")

    def fail_at(self, position: int, message: str) -> NoReturn:
        """Refuse the directive because of the token at a position."""
        offset = len(self.body.rstrip())
        if position < len(self.tokens):
            offset = self.tokens[position].start()
        raise CommentError(self.line, self.column + offset + 1, message)

    def accept(self, text: str) -> bool:
        """Step over the next token if it is `text`."""
        if self.peek() != text:
            return False
        self.position += 1
        return True

    def expect(self, text: str) -> None:
        """Step over `text`, which must come next."""
        if not self.accept(text):
            self.fail(repr(text))

    def name(self, what: str) -> str:
        """Step over a name."""
        if self.position == len(self.tokens) or self.tokens[self.position].lastgroup != "name":
            self.fail(what)
        self.position += 1
        return self.tokens[self.position - 1].group()

    def accept_decimal(self) -> bool:
        """Step over a number with a decimal point, if that comes next, and its sign."""
        ahead = int(self.peek() == "-")
        if not _DECIMAL.match(self.peek(ahead)):
            return False
        self.position += ahead + 1
        return True

    def integer(self, what: str, least: int) -> int:
        """Step over a whole number that is at least `least`."""
        digits = self.peek().replace("_", "")
        if not (digits.isascii() and digits.isdecimal()):
            self.fail(what)
        if len(digits) > _LARGEST_DIGITS:
            self.fail(f"{what} below 10**{_LARGEST_DIGITS}")
        if int(digits) < least:
            self.fail(f"{what}, at least {least}")
        self.position += 1
        return int(digits)

    def expression(
        self, what: str, stops: str = "", *, least: int = 0, most: int | None = None, leave: int = 0
    ) -> str:
        """Step over an expression and return its text.

        Parameters
        ----------
        what : str
            Named when nothing is there.
        stops : str
            Marks that end the expression where they stand outside brackets.
        least, most : int
            Bounds of its value; only a constant is held against them.
        leave : int
            Tokens at the end of the directive that do not belong to it.
        """
        first = self.position
        closing: list[str] = []
        while self.position < len(self.tokens) - leave:
            text = self.peek()
            if closing and text == closing[-1]:
                closing.pop()
            elif not closing and text in stops:
                break
            elif text in _CLOSING:
                closing.append(_CLOSING[text])
            self.position += 1
        if closing:
            self.fail(repr(closing[-1]))
        if self.position == first:
            self.fail(what)
        start = self.tokens[first].start()
        text = self.body[start : self.tokens[self.position - 1].end()]
        value = self._constant(text, start)
        if value is not None and (value < least or (most is not None and value > most)):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            self.fail_at(first, f"expected {what} {bounds}, but found {_shown(text)}")
        return text

    def _constant(self, text: str, start: int) -> int | Fraction | float | None:
        """Check an expression and return its value, or None when it depends on a size."""
        # imported here: a file whose directives hold no expression need not pay for it
        from costdb.expr import ExprError, evaluate, free_symbols, parse

        try:
            expression = parse(text)
            return None if free_symbols(expression) else evaluate(expression, {})
        except ExprError as error:
            placed = _EXPR_COLUMN.fullmatch(str(error))
            offset = int(placed.group(1)) - 1 if placed else 0
            message = placed.group(2) if placed else str(error)
            raise CommentError(self.line, self.column + start + offset + 1, message) from error

    def separated(self, item: Callable[[], Item], closing: str) -> tuple[Item, ...]:
        """Step over items parted by commas, and the closing bracket."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        if not self.accept(closing):
            self.fail(f"',' or {closing!r}")
        return tuple(items)

    def span_since(self, position: int) -> Span:
        """Return the place of the tokens from a position to the last one stepped over."""
        start, end = self.tokens[position].start(), self.tokens[self.position - 1].end()
        return Span(self.line, self.column + start, self.line, self.column + end)

    def end(self) -> None:
        """Refuse anything that is left."""
        if self.position < len(self.tokens):
            self.fail("the end of the comment")
