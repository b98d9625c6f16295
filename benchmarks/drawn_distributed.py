"""Annotated kernels that nobody wrote, each distributed in ways drawn by a rule.

A kernel has two to four statements over matrices, vectors and at times a table with places in it:
shifts, stencils, slices with steps, scans, reductions, transpositions, recurrences forwards and
backwards, triangular loops, loops over elements, products, rolls, sorts, broadcasts. Its arrays lie
in blocks or are dealt out, over one axis of ranks or a mesh, all alike or each in its own way.
Numbers are whole more often than not, so that results have to be equal to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

_PLANES = (
    "(block(p), none)", "(none, block(p))", "(cyclic(p), none)", "(none, cyclic(p))",
    "(cyclic(p, 2), none)", "(none, cyclic(p, 3))", "(block(p), block(q))",
    "(cyclic(p), block(q))", "(cyclic(p, 2), cyclic(q))", "(block(q), none)", "(none, none)",
)  # fmt: skip
_VECTORS = ("(block(p))", "(cyclic(p))", "(cyclic(p, 2))", "(block(q))", "(none)")
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Drawn:
    """A kernel: a file to write, the function in it, and the sizes it runs at."""

    name: str
    source: str
    sizes: dict[str, int]


@dataclass(slots=True)
class _Kernel:
    """What a kernel has so far: whether its matrices are square, and which arrays it mentions."""

    source: Random
    square: bool
    whole: bool
    used: set[str]
    made: int = 0

    def use(self, names: str) -> str:
        self.used.update(names)
        return names

    def two(self) -> tuple[str, str]:
        one, other = self.source.sample("abc", 2)
        self.used |= {one, other}
        return one, other

    def fresh(self) -> str:
        self.made += 1
        return f"t{self.made}"

    def pick(self, *words: str) -> str:
        return self.source.choice(words)


def drawn(seed: int, number: int) -> Drawn:
    """Return one kernel; the same seed and number give the same."""
    source = Random(f"distributed {seed} {number}")
    kernel = _Kernel(source, source.random() < 0.5, source.random() < 0.7, set())
    lines: list[str] = []
    for maker in source.choices(_MAKERS, k=source.randint(1, 4)):
        lines += maker(kernel)
    used = sorted(kernel.used)
    dtype = "i8" if kernel.whole else "f8"
    sizes = {"N": source.randint(4, 13), "M": source.randint(4, 13)}
    across = "N" if kernel.square else "M"
    shapes = {
        **dict.fromkeys("abc", f"{dtype}[N, {across}]"),
        "x": f"{dtype}[N]", "y": f"{dtype}[{across}]", "s": f"{dtype}[N]", "k": "i8[N]",
    }  # fmt: skip
    line = source.random() < 0.4
    planes, vectors = ([over for over in every if not line or "(q" not in over]
                       for every in (_PLANES, _VECTORS))  # fmt: skip
    alike = source.choice(planes)
    mesh = "mesh(p=P)" if line else "mesh(p=2, q=2)"
    arrays = []
    for one in used:
        plane = alike if source.random() < 0.7 else source.choice(planes)
        over = plane if one in "abc" else source.choice(vectors)
        arrays.append(f"# advise: {one}: {shapes[one]} over {over} on {mesh}")
    name = f"drawn{number}"
    text = "\n".join((
        "import numpy as np", "", "# advise: kernel", *arrays, f"def {name}({', '.join(used)}):",
        *(_INDENT + line for line in (*lines, f"return {', '.join(used)}")), "",
    ))  # fmt: skip
    if kernel.square:
        del sizes["M"]
    return Drawn(name, text, {**sizes, "P": 2})


def _shift(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    other = kernel.pick(one, other)
    by, axis = kernel.source.randint(1, 3), kernel.source.randrange(2)
    low, high = (f"{by}:", f":-{by}")
    if kernel.source.random() < 0.5:
        low, high = high, low
    places = ([low, ":"], [high, ":"]) if axis == 0 else ([":", low], [":", high])
    target, read = (", ".join(place) for place in places)
    sign = kernel.pick("=", "+=", "-=")
    return [f"{one}[{target}] {sign} {other}[{read}]"]


def _stencil(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    slices = (":-2", "1:-1", "2:")
    points = [(kernel.source.choice(slices), kernel.source.choice(slices)) for _ in range(3)]
    total = " + ".join(f"{other}[{row}, {column}]" for row, column in points)
    return [f"{one}[1:-1, 1:-1] = 2 * ({total})"]


def _time_loop(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    if kernel.source.random() < 0.2:
        return ["for _ in range(3):", f"    {one}[1:-1, :] = {other}[:-2, :] + {other}[2:, :]",
                f"    {one}, {other} = {other}, {one}"]  # fmt: skip
    body = [f"{one}[1:-1, :] = {other}[:-2, :] + {other}[2:, :] - {other}[1:-1, :]"]
    if kernel.source.random() < 0.5:
        first, second = kernel.fresh(), kernel.fresh()
        body = [f"{first}[:, 1:-1] = {second}[:, :-2] + {second}[:, 2:]",
                f"{first}, {second} = {second}, {first}"]  # fmt: skip
        begin = [f"{first} = {one}.copy()", f"{second} = {other}.copy()"]
        return [*begin, "for _ in range(3):", *(_INDENT + line for line in body),
                f"{one}[...] = {first}"]  # fmt: skip
    return ["for _ in range(3):", *(_INDENT + line for line in (*body, f"{other} += {one}"))]


def _steps(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    step, start = kernel.source.randint(2, 3), kernel.source.randrange(2)
    part = f"{start}::{step}" if start else f"::{step}"
    place = kernel.pick(f"{part}, :", f":, {part}")
    return [f"{one}[{place}] = {other}[{place}] + 1"]


def _scan(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    axis = kernel.source.randrange(2)
    if kernel.source.random() < 0.3:
        kernel.use("x")
        return ["x[...] = np.cumsum(x)"]
    if kernel.source.random() < 0.3:
        turned = "[::-1, :]" if axis == 0 else "[:, ::-1]"
        return [f"{one}[...] = np.cumsum({other}{turned}, axis={axis}){turned}"]
    return [f"{one}[...] = np.cumsum({other}, axis={axis})"]


def _reduction(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    kind = kernel.source.randrange(4)
    what = kernel.pick("sum", "max", "min")
    if kind == 0:
        return [f"{kernel.use('x')} += {one}.{what}(axis=1)"]
    if kind == 1:
        return [f"{kernel.use('y')}[...] = ({one} - {other}).{what}(axis=0)"]
    number = kernel.fresh()
    if kind == 2:
        return [f"{number} = {one}.{what}()", f"{other} += {number}"]
    return [f"{number} = {one}[1, 2] + {one}[0, 3]", f"{other} -= {number}"]


def _turn(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    if not kernel.square:
        return _broadcast(kernel)
    return [f"{one}[...] {kernel.pick('=', '+=').replace('...', '')} {other}.T".replace(
        "[...] +=", " +=")]  # fmt: skip


def _recurrence(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    by, axis = kernel.source.randint(1, 2), kernel.source.randrange(2)

    def at(index: str) -> str:
        return f"[{index}, :]" if axis == 0 else f"[:, {index}]"

    length = f"{one}.shape[{axis}]"
    kind = kernel.source.randrange(4)
    if kind == 0:
        return [f"for i in range({length} - {by + 1}, -1, -1):",
                f"    {one}{at('i')} = {one}{at('i')} + {one}{at(f'i + {by}')}"]  # fmt: skip
    if kind == 1:
        return [f"for i in range(1, {length} - 1):",
                f"    {one}{at('i')} = {one}{at('i - 1')} - {one}{at('i + 1')}"]  # fmt: skip
    if kind == 2:
        return [f"for i in range({by}, {length}):",
                f"    {one}{at('i')} = 2 * {one}{at(f'i - {by}')} + {other}{at('i')}",
                f"    {other}{at('i')} = {one}{at('i')} - {other}{at(f'i - {by}')}"]  # fmt: skip
    return [f"for i in range({by}, {length}):",
            f"    {one}{at('i')} += {one}{at(f'i - {by}')} * {other}{at('i')}"]  # fmt: skip


def _triangle(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    kind = kernel.source.randrange(3)
    if not kernel.square or kind == 0:
        return [f"for i in range({one}.shape[0]):",
                f"    {one}[i, 1:] = {other}[i, :-1] + i"]  # fmt: skip
    if kind == 1:
        return [f"for i in range(1, {one}.shape[0]):", "    for j in range(i):",
                f"        {one}[i, j] = {other}[j, i] + {one}[i, j]"]  # fmt: skip
    return [f"for i in range({one}.shape[0] - 1):",
            f"    {one}[i + 1 :, i + 1 :] -= "
            f"{other}[i + 1 :, i, None] * {one}[i, None, i + 1 :]"]  # fmt: skip


def _elements(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    inner = kernel.pick(
        f"{one}[i, j] = {other}[i - 1, j] + 2 * {other}[i + 1, j] - {other}[i, j - 1]",
        f"{one}[i, j] = {one}[i - 1, j] + {one}[i, j - 1]",
        f"{one}[i, j] = {other}[i, j + 1] * j + {one}[i, j]",
    )
    return [f"for i in range(1, {one}.shape[0] - 1):",
            f"    for j in range(1, {one}.shape[1] - 1):", f"        {inner}"]  # fmt: skip


def _broadcast(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    kernel.use("xy")
    return [kernel.pick(
        f"{one}[...] = x[:, None] * y[None, :]",
        f"{one}[...] = {other} + x[:, None]",
        f"{one} -= y[None, :]",
        f"{one}[...] = np.where({other} > 1, {other}, y[None, :])",
    )]  # fmt: skip


def _move(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    axis = kernel.source.randrange(2)
    return [kernel.pick(
        f"{one}[...] = np.roll({other}, {kernel.source.randint(1, 3)}, axis={axis})",
        f"{one}[...] = np.flip({other}, axis={axis})",
        f"{one}[...] = np.sort({other}, axis={axis})",
        f"{one}[...] = np.maximum({other}, {one})",
    )]  # fmt: skip


def _product(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    if kernel.square and kernel.source.random() < 0.5:
        third = next(name for name in "abc" if name not in (one, other))
        kernel.use(third)
        return [f"{one}[...] = {other} @ {third}"]
    kernel.use("xy")
    return [kernel.pick(f"x[...] = {one} @ y", f"y += x @ {one}")]


def _table(kernel: _Kernel) -> list[str]:
    kernel.use("sk")
    return [kernel.pick("np.add.at(s, k, 1)", "s += s[k]", "np.add.at(s, k, s)",
                        "s[1:] = s[:-1] + k[1:]")]  # fmt: skip


def _temporary(kernel: _Kernel) -> list[str]:
    one, other = kernel.two()
    name = kernel.fresh()
    if kernel.source.random() < 0.5:
        return [f"{name} = {other}[1:, :] - {other}[:-1, :]", f"{one}[1:, :] = 2 * {name}",
                f"{one}[1:-1, :] += {name}[1:, :]"]  # fmt: skip
    return [f"{name} = {other}[:, 1:-1] + {one}[:, 2:]", f"{one}[:, :-2] = {name} + {name}"]


_MAKERS: tuple[Callable[[_Kernel], list[str]], ...] = (
    _shift, _shift, _stencil, _time_loop, _steps, _scan, _reduction, _reduction, _turn,
    _recurrence, _recurrence, _triangle, _elements, _broadcast, _move, _product, _table,
    _temporary,
)  # fmt: skip
