"""What ``# advise:`` comments say, once read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from advisor.distribution import ArraySpec
from advisor.finding import Remark
from advisor.source import SourceProblem, Span, split_lines
from costdb.expr import Expr, ExprError, parse
from costdb.records import dataclass, only


class CommentError(ValueError):
    """A comment that does not follow the grammar.

    Attributes
    ----------
    line, column : int
        Both from 1, as people count.
    message : str
        One line that names what was expected.
    """

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column
        self.message = message

    def in_file(self, path: str) -> SourceProblem:
        """Return the same problem with the file it is in."""
        return SourceProblem(path, self.line, self.column - 1, self.message)


@dataclass(frozen=True, slots=True)
class Directive:
    """What all directives share.

    Attributes
    ----------
    span : Span
        From the comment sign to the end of the directive.
    own_line : bool
        True when only blanks precede the comment, which then speaks of the statement below;
        otherwise it speaks of the statement that it follows.
    """

    span: Span
    own_line: bool

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.span.start_line

    @property
    def column(self) -> int:
        """The column of the comment sign, from 0 as in every span."""
        return self.span.start_column


@dataclass(frozen=True, slots=True)
class KernelComment(Directive):
    """``kernel N=1000 P=16``: the function is a kernel, with usual values of its sizes.

    Attributes
    ----------
    sizes : tuple of (str, int)
    numbers : tuple of str
        What is bound to a number that is no size, such as ``alpha=1.5``: its type is all that a
        price depends on.
    """

    sizes: tuple[tuple[str, int], ...]
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberComment(Directive):
    """``alpha: f8``: a parameter is one number of that type."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class ArrayComment(Directive):
    """``image: i4[N, N] over (block(row), none) on mesh(row=4)``: an array's distribution.

    Attributes
    ----------
    spec : ArraySpec
        Free of contradictions.
    dim_spans : tuple of Span
        Where the distribution of each dimension is written; empty without ``over``.
    mesh_spans : tuple of (str, Span)
        Where the extent of each mesh axis is written.
    """

    spec: ArraySpec
    dim_spans: tuple[Span, ...]
    mesh_spans: tuple[tuple[str, Span], ...]


@dataclass(frozen=True, slots=True)
class Trip(Directive):
    """``trip 10``: how often the loop's body runs; an expression in text."""

    count: str


@dataclass(frozen=True, slots=True)
class Probability(Directive):
    """``prob 0.3``: how likely the branch is taken; an expression in text."""

    probability: str


@dataclass(frozen=True, slots=True)
class StatedCost(Directive):
    """``cost 3*N us``: what the statement costs.

    Attributes
    ----------
    cost : str
        An expression, in `unit`.
    unit : str
        ``us``, ``ms`` or ``s``.
    """

    cost: str
    unit: str

    @property
    def microseconds(self) -> str:
        """The cost in microseconds, an expression in text."""
        scale = MICROSECONDS_OF[self.unit]
        return self.cost if scale == 1 else f"({self.cost})*{scale}"


MICROSECONDS_OF = {"us": 1, "ms": 1_000, "s": 1_000_000}


class Scope(StrEnum):
    """What a suppression covers."""

    STATEMENT = "ignore"
    FILE = "ignore-file"
    START = "ignore-start"
    END = "ignore-end"


@dataclass(frozen=True, slots=True)
class Suppression(Directive):
    """``ignore[ADV201]``: findings that are not wanted.

    Attributes
    ----------
    scope : Scope
        The statement, the file, or the start or end of a block of lines.
    codes : tuple of str
        Codes of findings; empty for all of them.
    """

    scope: Scope
    codes: tuple[str, ...]

    def covers(self, code: str) -> bool:
        """Return whether a finding of this code is unwanted."""
        return not self.codes or code in self.codes


AnyDirective = (
    KernelComment | NumberComment | ArrayComment | Trip | Probability | StatedCost | Suppression
)


@dataclass(frozen=True, slots=True)
class SuppressedBlock:
    """Lines `first_line` to `last_line`, both included, where a suppression holds."""

    suppression: Suppression
    first_line: int
    last_line: int


def suppressed_blocks(directives: tuple[AnyDirective, ...]) -> tuple[SuppressedBlock, ...]:
    """Pair every ``ignore-start`` with the nearest following ``ignore-end`` of the same codes.

    Parameters
    ----------
    directives : tuple of directives
        Of one file, in order.

    Returns
    -------
    tuple of SuppressedBlock
        In order of their ends. Blocks may nest and may overlap.

    Raises
    ------
    CommentError
        For a start without end, or an end without start.
    """
    open_starts: list[Suppression] = []
    blocks = []
    for directive in only(Suppression, directives):
        if directive.scope is Scope.START:
            open_starts.append(directive)
        elif directive.scope is Scope.END:
            start = next(
                (s for s in reversed(open_starts) if set(s.codes) == set(directive.codes)), None
            )
            if start is None:
                raise _unpaired(directive, Scope.START)
            open_starts.remove(start)
            blocks.append(SuppressedBlock(start, start.line, directive.line))
    if open_starts:
        raise _unpaired(open_starts[0], Scope.END)
    return tuple(blocks)


def _unpaired(suppression: Suppression, partner: Scope) -> CommentError:
    codes = f"[{', '.join(suppression.codes)}]" if suppression.codes else ""
    return CommentError(
        suppression.line,
        suppression.column + 1,
        f"{suppression.scope}{codes} without {partner}{codes}",
    )


# What ``# advise:`` comments say of single statements, by the lines they speak of.


@dataclass(frozen=True, slots=True)
class Pragmas:
    """Trips, probabilities and costs (in microseconds), each by line."""

    trips: dict[int, Expr]
    probabilities: dict[int, Expr]
    costs_us: dict[int, Expr]


def read_pragmas(path: str, directives: Sequence[AnyDirective]) -> Pragmas:
    """Return the pragmas among directives.

    Raises
    ------
    SourceProblem
        For an expression that does not parse.
    """
    alone = {directive.line for directive in directives if directive.own_line}
    found = Pragmas({}, {}, {})
    for directive in directives:
        line = directive.line
        if directive.own_line:
            # several directives may stand above one statement
            while line in alone:
                line += 1
        match directive:
            case Trip():
                table, text = found.trips, directive.count
            case Probability():
                table, text = found.probabilities, directive.probability
            case StatedCost():
                table, text = found.costs_us, directive.microseconds
            case _:
                continue
        try:
            table[line] = parse(text)
        except ExprError as error:
            raise SourceProblem(path, directive.line, directive.column, str(error)) from error
    return found


def spoken_of(table: Mapping[int, Expr], lines: range) -> Expr | None:
    """Return what the pragmas say of a statement whose header takes up some lines."""
    return next((table[line] for line in lines if line in table), None)


# Comments that call a function a kernel where no function begins.

_BEGINS = ("def ", "async def ", "@")


def marks_of_nothing(
    path: str, source: str, directives: tuple[AnyDirective, ...]
) -> Iterator[Remark]:
    """Yield a remark for every ``# advise: kernel`` that does not stand above a function.

    Between the two there may be other comments to the tool, and nothing else.
    """
    comments = [found for found in directives if isinstance(found, KernelComment)]
    if not comments:
        return
    lines = split_lines(source)
    alone = {found.line for found in directives if found.own_line}
    for comment in comments:
        below = comment.line
        while below in alone:
            below += 1
        follows = lines[below - 1].lstrip() if below <= len(lines) else ""
        if not comment.own_line or not follows.startswith(_BEGINS):
            message = "this marks no kernel: no function begins right below it"
            yield Remark(path, "", comment.span, message)
