"""Annotated NumPy kernels that nobody wrote: drawn by a rule from what the front end reads.

A kernel has two to four statements over arrays of one shape, vectors of its rows and columns,
and at times a table with places in it. Statements are element by element with intermediate
results, stencils, reductions and scans along either axis, products, transpositions, choices,
broadcasts, transforms, and loops over rows; they stand by themselves or in a loop over time steps,
of which some hand over names. The largest array has 10 KB to 35 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from random import Random

_BYTES = 10e3, 35e6
_MOST_WORK = 1.5e7
"""Elements that all statements of a kernel touch: what makes it quick enough to be timed often."""
_LONGEST_PRODUCT, _MOST_ROWS = 400, 400
_ITEM = {"f8": 8, "f4": 4, "i8": 8, "i4": 4, "c16": 16}
_TYPES = ("f8", "f8", "f8", "f8", "f8", "f4", "f4", "i8", "i4")
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Drawn:
    """A kernel: a file to write, and the only function in it."""

    name: str
    source: str


@dataclass(slots=True)
class _Kernel:
    """What a kernel has so far.

    Attributes
    ----------
    plane, vector : str
        Extents of its arrays in the annotation, and of vectors over its rows.
    used : set of str
        Arrays that some statement mentions.
    """

    source: Random
    dtype: str
    rank: int
    rows: int
    columns: int
    used: set[str]
    made: int = 0

    @property
    def floats(self) -> bool:
        return self.dtype.startswith("f")

    @property
    def square(self) -> bool:
        return self.rank == 2 and self.rows == self.columns

    def plane(self) -> str:
        """Return the name of an array of the kernel's shape."""
        return self.use(self.source.choice("abc"))

    def use(self, name: str) -> str:
        self.used.add(name)
        return name

    def fresh(self) -> str:
        self.made += 1
        return f"t{self.made}"

    def number(self) -> str:
        return self.source.choice(("0.25", "0.5", "1.5", "3.0") if self.floats else ("2", "3"))


def drawn(seed: int, number: int) -> Drawn:
    """Return one kernel; the same seed and number give the same."""
    source = Random(f"kernel {seed} {number}")
    dtype = source.choice(_TYPES)
    rank = source.choice((1, 2, 2, 2))
    elements = exp(source.uniform(*map(log, _BYTES))) / _ITEM[dtype]
    if rank == 1:
        rows, columns = round(elements), 1
    elif source.random() < 0.4:
        rows = columns = round(elements**0.5)
    else:
        rows = max(8, round(elements**0.5 * 2 ** source.uniform(-2, 2)))
        columns = max(8, round(elements / rows))
    kernel = _Kernel(source, dtype, rank, rows, columns, set())
    makers = [*_ANY, *(_PLANES if rank == 2 else _LINES)]
    lines: list[str] = []
    for maker in source.sample(makers, source.randint(2, 4)):
        lines += maker(kernel)
    steps = int(min(_MOST_WORK / (rows * columns * 2 * len(lines)), 16))
    if kernel.floats and steps >= 2 and source.random() < 0.25:
        kernel.used.clear()
        lines = _handed_over(kernel)
    elif steps >= 2 and source.random() < 0.4:
        lines = ["for _ in range(T):", *(_INDENT + line for line in lines)]
    else:
        steps = 0
    name = f"kernel{number}"
    return Drawn(name, _text(kernel, name, lines, steps))


def _text(kernel: _Kernel, name: str, lines: list[str], steps: int) -> str:
    sizes = {"N": kernel.rows, "M": kernel.columns} if kernel.rank == 2 else {"N": kernel.rows}
    plane, mesh = ("N, M", "(block(p), none)") if kernel.rank == 2 else ("N", "(block(p))")
    if kernel.square:
        del sizes["M"]
        plane = "N, N"
    if "K" in kernel.used:
        sizes["K"] = max(64, kernel.rows // 3)
        kernel.used.remove("K")
    if steps:
        sizes["T"] = steps
    across = "N" if kernel.square else "M"
    shapes = {
        **dict.fromkeys("abc", (kernel.dtype, plane, mesh)),
        "x": (kernel.dtype, "N", "(block(p))"),
        "y": (kernel.dtype, across, "(none)"),
        "q": (kernel.dtype, "N", "(block(p))"),
        "z": ("c16", "N", "(block(p))"),
        "s": (kernel.dtype, "K", "(none)"),
        "idx": ("i8", "N", "(block(p))"),
    }
    used = [one for one in shapes if one in kernel.used]
    arrays = [
        f"# advise: {one}: {dtype}[{extents}] over {dist} on mesh(p=1)"
        for one, (dtype, extents, dist) in shapes.items()
        if one in used
    ]
    told = " ".join(f"{size}={value}" for size, value in sizes.items())
    arguments = [*used, *(["T: int"] if steps else [])]
    body = [*lines, f"return {', '.join(used)}"]
    return "\n".join((
        "import numpy as np", "",
        f"# advise: kernel {told}", *arrays,
        f"def {name}({', '.join(arguments)}):", *(_INDENT + line for line in body), "",
    ))  # fmt: skip


def _expression(kernel: _Kernel, depth: int) -> str:
    """Return an expression whose operands are whole arrays."""
    if depth == 0:
        return kernel.plane()
    source = kernel.source
    kind = source.random()
    inner = _expression(kernel, depth - 1)
    if kind < 0.5:
        other = _other(kernel, inner, source.randrange(depth))
        return f"({inner} {source.choice('+-*')} {other})"
    if kind < 0.65:
        return f"({kernel.number()} {source.choice('+*')} {inner})"
    if kind < 0.8 or not kernel.floats:
        other = _other(kernel, inner, source.randrange(depth))
        return f"np.{source.choice(('minimum', 'maximum'))}({inner}, {other})"
    if kind < 0.88:
        return f"({inner} / {_other(kernel, inner, 0)})"
    if kind < 0.94:
        return f"np.sqrt(np.abs({inner}))"
    return f"np.exp(-np.abs({inner}))"


def _other(kernel: _Kernel, one: str, depth: int) -> str:
    """Return an expression that is another one, as nobody writes ``a - a``."""
    made = _expression(kernel, depth)
    while made == one:
        made = _expression(kernel, depth)
    return made


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") else text


def _chain(kernel: _Kernel) -> list[str]:
    return [f"{kernel.plane()}[...] = {_bare(_expression(kernel, kernel.source.randint(1, 3)))}"]


def _named(kernel: _Kernel) -> list[str]:
    name = kernel.fresh()
    first = f"{name} = {_bare(_expression(kernel, kernel.source.randint(1, 2)))}"
    return [first, f"{kernel.plane()}[...] = {name} {kernel.source.choice('+-*')} {kernel.plane()}"]


def _in_place(kernel: _Kernel) -> list[str]:
    sign = kernel.source.choice(("+=", "-="))
    return [f"{kernel.plane()} {sign} {_bare(_expression(kernel, kernel.source.randint(1, 2)))}"]


def _choice(kernel: _Kernel) -> list[str]:
    one = kernel.plane()
    two = _other(kernel, one, kernel.source.randint(0, 1))
    left, right = kernel.source.sample("abc", 2)
    kernel.used |= {left, right}
    test = f"{left} {kernel.source.choice('<>')} {right}"
    return [f"{kernel.plane()}[...] = np.where({test}, {one}, {two})"]


def _stencil(kernel: _Kernel) -> list[str]:
    target, read = kernel.source.sample("abc", 2)
    kernel.used |= {target, read}
    offsets = (
        [(0,), (1,), (2,)]
        if kernel.rank == 1
        else [(0, 1), (2, 1), (1, 0), (1, 2), (1, 1), (0, 0), (2, 2)]
    )
    points = kernel.source.sample(offsets, kernel.source.randint(2, min(5, len(offsets))))
    slices = ("{}[:-2]", "{}[1:-1]", "{}[2:]")
    parts = (", ".join(slices[one].format("")[1:-1] for one in point) for point in points)
    total = " + ".join(f"{read}[{part}]" for part in parts)
    inner = ", ".join(["1:-1"] * kernel.rank)
    scaled = f"{kernel.number()} * ({total})" if kernel.source.random() < 0.6 else total
    return [f"{target}[{inner}] = {scaled}"]


def _reduction(kernel: _Kernel) -> list[str]:
    axis = kernel.source.randrange(2)
    target = kernel.use("y" if axis == 0 else "x")
    what = kernel.source.choice(("sum", "sum", "max", "min"))
    inner = kernel.plane() if kernel.source.random() < 0.6 else _expression(kernel, 1)
    inner = inner if not inner.startswith("np.") else f"({inner})"
    sign = kernel.source.choice(("[...] =", " +="))
    return [f"{target}{sign} {inner}.{what}(axis={axis})"]


def _scan(kernel: _Kernel) -> list[str]:
    axis = kernel.source.randrange(kernel.rank)
    operand = f"{kernel.plane()}, axis={axis}" if kernel.rank == 2 else kernel.plane()
    return [f"{kernel.plane()}[...] = np.cumsum({operand})"]


def _move(kernel: _Kernel) -> list[str]:
    target, read = kernel.source.sample("abc", 2)
    kernel.used |= {target, read}
    rest = ", :" if kernel.rank == 2 else ""
    if kernel.source.random() < 0.5:
        axis = ", axis=0" if kernel.rank == 2 else ""
        return [f"{target}[...] = np.roll({read}, {kernel.source.randint(1, 3)}{axis})"]
    return [f"{target}[1:{rest}] = {read}[:-1{rest}]"]


def _turn(kernel: _Kernel) -> list[str]:
    target, read = kernel.source.sample("abc", 2)
    if not kernel.square:
        return _chain(kernel)
    kernel.used |= {target, read}
    return [f"{target}{kernel.source.choice(('[...] =', ' +='))} {read}.T"]


def _product(kernel: _Kernel) -> list[str]:
    if not kernel.floats:
        return _chain(kernel)
    if kernel.square and kernel.rows <= _LONGEST_PRODUCT and kernel.source.random() < 0.5:
        target, one, two = kernel.source.sample("abc", 3)
        kernel.used |= {target, one, two}
        return [f"{target}[...] = {one} @ {two}"]
    kernel.used |= {"x", "y"}
    return [f"x[...] = {kernel.plane()} @ y"]


def _broadcast(kernel: _Kernel) -> list[str]:
    kernel.used |= {"x", "y"}
    kind = kernel.source.randrange(3)
    if kind == 0:
        return [f"{kernel.plane()}[...] = x[:, None] {kernel.source.choice('+-*')} y[None, :]"]
    vector = ("x[:, None]", "y[None, :]")[kind - 1]
    return [f"{kernel.plane()}[...] = {kernel.plane()} {kernel.source.choice('+-*')} {vector}"]


def _sweep(kernel: _Kernel) -> list[str]:
    target, read = kernel.source.sample("abc", 2)
    if kernel.rows > _MOST_ROWS:
        return _chain(kernel)
    kernel.used |= {target, read}
    return [
        f"for i in range(1, {target}.shape[0]):",
        f"{_INDENT}{target}[i, :] = {target}[i, :] - {read}[i, :] * {target}[i - 1, :]",
    ]


def _table(kernel: _Kernel) -> list[str]:
    kernel.used |= {"s", "idx", "K"}
    if kernel.floats and kernel.source.random() < 0.4:
        return [f"np.add.at(s, idx, {kernel.plane()})"]
    return [f"{kernel.plane()}[...] = s[idx] {kernel.source.choice('+*')} {kernel.plane()}"]


def _transform(kernel: _Kernel) -> list[str]:
    kernel.used.add("z")
    return [f"z[...] = np.fft.{kernel.source.choice(('fft', 'ifft'))}(z)"]


def _sorted(kernel: _Kernel) -> list[str]:
    # nothing else is stored into what is sorted: how long it takes depends on the values
    kernel.used.add("q")
    return [f"{kernel.plane()}[...] = np.sort(q)"]


def _handed_over(kernel: _Kernel) -> list[str]:
    """Return a loop over time steps whose arrays get one another's names."""
    kernel.used |= {"a", "b"}
    inner, near, far = (
        ("1:-1", ":-2", "2:") if kernel.rank == 1 else ("1:-1, 1:-1", ":-2, 1:-1", "2:, 1:-1")
    )
    spread = f"a[{near}] - 2.0 * a[{inner}] + a[{far}]"
    kind = kernel.source.randrange(3)
    if kind == 0:
        step = [f"b[{inner}] = a[{inner}] + 0.1 * ({spread})", "a, b = b, a"]
    elif kind == 1:
        step = ["n = 2.0 * a - b", f"n[{inner}] += 0.1 * ({spread})", "b = a", "a = n"]
    else:
        step = ["n = 0.5 * (a + b)", "m = 0.5 * (a - b)", "a = n", "b = m"]
    return ["for _ in range(T):", *(_INDENT + line for line in step)]


_Maker = Callable[[_Kernel], list[str]]
_ANY: tuple[_Maker, ...] = (_chain, _chain, _named, _in_place, _choice, _stencil, _scan, _move)
_PLANES: tuple[_Maker, ...] = (_reduction, _reduction, _turn, _product, _broadcast, _sweep)
_LINES: tuple[_Maker, ...] = (_table, _transform, _sorted)
