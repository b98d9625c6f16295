"""Pairs of kernels that come to the same results, written in two ways: drawn by a rule.

No rule proposes one for the other. They are what somebody may choose between all the same, as
``advisor.select`` and ``advise verify`` rank variants that are written by hand: a statement over
whole arrays or over their rows, columns or pieces, a reduction or a product, a scan or a loop, one
expression or several statements in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from random import Random

_BYTES = 10e3, 35e6
_ITEM = {"f8": 8, "f4": 4, "i8": 8, "i4": 4}
_ANY = ("f8", "f8", "f8", "f4", "i8", "i4")
_SUMS = ("f8", "f8", "i8", "i4")
"""Types whose sums are equal, or nearly, in whatever order they are taken."""
_DOUBLES = ("f8",)
_MOST_STATEMENTS = 4000
"""Statements over rows, columns or pieces that a kernel executes."""
_LONGEST_PRODUCT = 400


@dataclass(frozen=True, slots=True)
class Twins:
    """Two ways to write a kernel.

    Attributes
    ----------
    name : str
        What the choice is about.
    one, other : str
        Files with one kernel each, of the same name and arguments.
    sizes : dict
    """

    name: str
    one: str
    other: str
    sizes: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What a pair is drawn with: `width` is that of pieces, which divide the rows."""

    source: Random
    dtype: str
    width: int

    @property
    def floats(self) -> bool:
        return self.dtype.startswith("f")

    def pick(self, *choices: str) -> str:
        return self.source.choice(choices)

    def expression(self, at: str) -> str:
        """Return an expression over `a`, `b` and `c` with a subscript that all of them get."""
        one, two = self.source.sample("abc", 2)
        more = (f"a{at}", f"b{at}", f"c{at}", "0.5" if self.floats else "3")
        parts = [f"{one}{at}", f"{two}{at}"]
        parts += [self.pick(*more) for _ in range(self.source.randrange(3))]
        return "".join(
            part if not number else f" {self.pick('+', '-', '*')} {part}"
            for number, part in enumerate(parts)
        )


_Lines = tuple[list[str], list[str]]


def _both(drawing: _Drawing, at: str, loop: str) -> _Lines:
    """Return a statement over whole arrays, and the same one in a loop over parts of them."""
    text, target = drawing.expression("{at}"), drawing.pick("a", "b", "c")
    whole = f"{target}[...] = {text.format(at='')}"
    part = f"{target}{at} = {text.format(at=at)}"
    return [whole], [loop, f"    {part}"]


def _rows(drawing: _Drawing) -> _Lines:
    return _both(drawing, "[i, :]", "for i in range(N):")


def _columns(drawing: _Drawing) -> _Lines:
    return _both(drawing, "[:, j]", "for j in range(M):")


def _pieces(drawing: _Drawing) -> _Lines:
    width = drawing.width
    return _both(drawing, f"[k : k + {width}, :]", f"for k in range(0, N, {width}):")


def _sum_of_rows(drawing: _Drawing) -> _Lines:
    return ["y[...] = a.sum(axis=0)"], ["y[...] = 0", "for i in range(N):", "    y += a[i, :]"]


def _sum_of_columns(drawing: _Drawing) -> _Lines:
    return ["x[...] = a.sum(axis=1)"], ["x[...] = 0", "for j in range(M):", "    x += a[:, j]"]


def _product(drawing: _Drawing) -> _Lines:
    return ["x[...] = a @ y"], ["x[...] = (a * y[None, :]).sum(axis=1)"]


def _matrices(drawing: _Drawing) -> _Lines:
    return (
        ["c[...] = a @ b"],
        ["c[...] = 0", "for k in range(N):", "    c += a[:, k][:, None] * b[k, :][None, :]"],
    )


def _scan_down(drawing: _Drawing) -> _Lines:
    return (
        ["b[...] = np.cumsum(a, axis=0)"],
        ["b[0, :] = a[0, :]", "for i in range(1, N):", "    b[i, :] = b[i - 1, :] + a[i, :]"],
    )


def _scan_along(drawing: _Drawing) -> _Lines:
    return (
        ["b[...] = np.cumsum(a, axis=1)"],
        ["b[:, 0] = a[:, 0]", "for j in range(1, M):", "    b[:, j] = b[:, j - 1] + a[:, j]"],
    )


def _rolled(drawing: _Drawing) -> _Lines:
    if drawing.source.random() < 0.5:
        return ["b[...] = np.roll(a, 1, axis=0)"], ["b[1:, :] = a[:-1, :]", "b[0, :] = a[-1, :]"]
    return ["b[...] = np.roll(a, 1, axis=1)"], ["b[:, 1:] = a[:, :-1]", "b[:, 0] = a[:, -1]"]


def _chosen(drawing: _Drawing) -> _Lines:
    return ["c[...] = np.where(a > b, a, b)"], ["c[...] = np.maximum(a, b)"]


def _in_place(drawing: _Drawing) -> _Lines:
    one, two = drawing.pick("+", "-", "*"), drawing.pick("+", "-", "*")
    return [f"c[...] = (a {one} b) {two} b"], ["c[...] = a", f"c {one}= b", f"c {two}= b"]


def _turned(drawing: _Drawing) -> _Lines:
    return ["c[...] = a + b.T"], ["for i in range(N):", "    c[i, :] = a[i, :] + b[:, i]"]


def _factored(drawing: _Drawing) -> _Lines:
    return ["c[...] = a * b + a * c"], ["c[...] = a * (b + c)"]


def _divided(drawing: _Drawing) -> _Lines:
    return ["c[...] = (a + b) / 4.0"], ["c[...] = (a + b) * 0.25"]


def _handed_over(drawing: _Drawing) -> _Lines:
    near = "u[:-2, 1:-1] - u[2:, 1:-1]"
    step = f"v[1:-1, 1:-1] = 0.5 * ({near})" if drawing.floats else f"v[1:-1, 1:-1] = {near}"
    start = ["u = a.copy()", "v = a.copy()", "for t in range(T):", f"    {step}"]
    return [*start, "    u[...] = v", "c[...] = u"], [*start, "    u, v = v, u", "c[...] = u"]


def _centred(drawing: _Drawing) -> _Lines:
    return (
        ["b[1:-1, :] = a[:-2, :] + a[1:-1, :] + a[2:, :]"],
        ["b[1:-1, :] = a[:-2, :]", "b[1:-1, :] += a[1:-1, :]", "b[1:-1, :] += a[2:, :]"],
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """What can be written in two ways, and the types for which both come to the same."""

    name: str
    make: Callable[[_Drawing], _Lines]
    types: tuple[str, ...] = _ANY
    square: bool = False


_CHOICES = (
    _Choice("whole or by rows", _rows),
    _Choice("whole or by columns", _columns),
    _Choice("whole or in pieces", _pieces),
    _Choice("sum or loop over rows", _sum_of_rows, _SUMS),
    _Choice("sum or loop over columns", _sum_of_columns, _SUMS),
    _Choice("product or sum of products", _product, _DOUBLES),
    _Choice("product or outer products", _matrices, _DOUBLES, square=True),
    _Choice("scan or loop over rows", _scan_down),
    _Choice("scan or loop over columns", _scan_along),
    _Choice("roll or slices", _rolled),
    _Choice("choice or maximum", _chosen),
    _Choice("expression or in place", _in_place),
    _Choice("transposed or by columns", _turned, square=True),
    _Choice("factored out or not", _factored, _SUMS),
    _Choice("quotient or product", _divided, ("f8", "f4")),
    _Choice("copied or handed over", _handed_over),
    _Choice("one stencil or in steps", _centred),
)
CHOICES = tuple(choice.name for choice in _CHOICES)


def drawn_twins(seed: int, number: int) -> Twins:
    """Return two ways to write a kernel; the same seed and number give the same."""
    source = Random(f"twins {seed} {number}")
    choice = _CHOICES[number % len(_CHOICES)]
    dtype = source.choice(choice.types)
    elements = exp(source.uniform(*map(log, _BYTES))) / _ITEM[dtype]
    rows = max(8, round(elements**0.5 * 2 ** source.uniform(-2, 2)))
    columns = max(8, round(elements / rows))
    if choice.square:
        limit = _LONGEST_PRODUCT if "product" in choice.name else _MOST_STATEMENTS
        rows = columns = min(round(elements**0.5), limit)
    rows, columns = min(rows, _MOST_STATEMENTS), min(columns, _MOST_STATEMENTS)
    width = source.choice((4, 16, 64, 256))
    sizes = {"N": rows} if choice.square else {"N": rows, "M": columns}
    one, other = choice.make(_Drawing(source, dtype, width))
    text = "\n".join(one + other)
    if f"range(0, N, {width})" in text:
        sizes["N"] = max(rows // width, 2) * width
    if "range(T)" in text:
        sizes["T"] = source.randint(2, 6)
    files = [_text(lines, dtype, sizes, square=choice.square) for lines in (one, other)]
    return Twins(choice.name, *files, sizes)


def _text(lines: list[str], dtype: str, sizes: dict[str, int], *, square: bool) -> str:
    across = "N" if square else "M"
    shapes = {**dict.fromkeys("abc", f"N, {across}"), "x": "N", "y": across}
    told = " ".join(f"{size}={value}" for size, value in sizes.items())
    numbers = [f"{size}: int" for size in sizes]
    return "\n".join((
        "import numpy as np", "",
        f"# advise: kernel {told}",
        *(f"# advise: {name}: {dtype}[{extents}]" for name, extents in shapes.items()),
        f"def kernel({', '.join([*shapes, *numbers])}):",
        *(f"    {line}" for line in lines),
        "    return a, b, c, x, y", "",
    ))  # fmt: skip
