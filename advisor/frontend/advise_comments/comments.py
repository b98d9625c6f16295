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
    codes       = "[" CODE { "," CODE } "]"

A directive ends at the end of its comment or at the next comment sign, so that one comment may
hold a directive and a remark, or a directive after somebody else's pragma.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

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
from advisor.dtypes import UnknownDtype, dtype_of
from advisor.frontend.advise_comments.directive_reader import DirectiveReader
from advisor.frontend.advise_comments.directives import (
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
from advisor.source import Span

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
    word = reader.name(_EXPECTED)
    read = _READERS.get(word)
    if read is None:
        reader.position = start
        reader.fail(_EXPECTED)
    return read(reader, span, own_line)


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
        reader.expect("on")
        reader.expect("mesh")
        reader.expect("(")
        axes = reader.separated(lambda: _mesh_axis(reader), ")")
        mesh = MeshSpec(tuple((axis, extent) for axis, extent, _ in axes))
        mesh_spans = tuple((axis, place) for axis, _, place in axes)
    order: StorageOrder = "C"
    order_span: Span | None = None
    halo: tuple[int, ...] | None = None
    while reader.peek():
        option = reader.name("over (...), order=, halo= or the end of the comment")
        if option not in ("order", "halo"):
            reader.position -= 1
            reader.fail(
                f"{'' if dim_spans else 'over (...), '}order=, halo= or the end of the comment"
            )
        if (order_span if option == "order" else halo) is not None:
            reader.fail_at(reader.position - 1, f"{option} is given twice")
        reader.expect("=")
        start = reader.position
        if option == "order":
            order = _order(reader)
            order_span = reader.span_since(start)
        else:
            halo = _halo(reader, dims)
    spec = ArraySpec(name, dtype, shape, dims, mesh, order, halo or (0,) * len(dims))
    for problem in check_spec(spec):
        reader.fail_at(first, problem)
    return ArrayComment(span, own_line, spec, dim_spans, mesh_spans, order_span)


def _order(reader: DirectiveReader) -> StorageOrder:
    if reader.accept("C"):
        return "C"
    if reader.accept("F"):
        return "F"
    return reader.fail("C or F")


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


def _trip(reader: DirectiveReader, span: Span, own_line: bool) -> Trip:
    return Trip(span, own_line, reader.expression("a number of iterations", least=0))


def _probability(reader: DirectiveReader, span: Span, own_line: bool) -> Probability:
    return Probability(span, own_line, reader.expression("a probability", least=0, most=1))


def _stated_cost(reader: DirectiveReader, span: Span, own_line: bool) -> StatedCost:
    unit = reader.last()
    if unit not in MICROSECONDS_OF:
        reader.fail_at_end("expected a unit (us, ms or s) at the end")
    cost = reader.expression("a cost such as 3*N us", least=0, leave=1)
    reader.expect(unit)
    return StatedCost(span, own_line, cost, unit)


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
    if not _CODE.fullmatch(reader.peek()):
        reader.fail("a code such as ADV201")
    return reader.name("a code such as ADV201")


_EXPECTED: Final = "kernel, NAME: DTYPE[...], trip, prob, cost or ignore"
_READERS: Final[dict[str, Callable[[DirectiveReader, Span, bool], AnyDirective]]] = {
    "kernel": _kernel,
    "trip": _trip,
    "prob": _probability,
    "cost": _stated_cost,
    "ignore": _suppression,
}
