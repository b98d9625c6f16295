"""Programs that sum over windows by repeated shifts, in all ways that are recognised."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
WIDER = {
    "int8": ("int8", "int16", "int64"),
    "int16": ("int16", "int32"),
    "int32": ("int32", "int64"),
    "uint8": ("uint8", "uint16", "int16", "int32"),
    "uint16": ("uint16", "uint32", "int64"),
    "uint32": ("uint32", "uint64"),
    "float32": ("float32", "float64"),
}
SIZES = ("N", "M", "K")
REMARKS = (
    "# add",
    '# it\'s moved by one, "and" added',
    "# note: b >= 1 # twice",
    "#",
    "# größer als vorher →",
    "# type: ignore",
)
TARGETS = ("total", "acc", "сумма", "window_sum", "lag", "running")
MOVED = ("moved", "shifted", "tmp", "running_2")
CENTRED = (
    "range(-b, b + 1)",
    "range(-b, b)",
    "range(1 - b, b + 1)",
    "range(-(b // 2), b // 2 + 1)",
    "range(-2, 3)",
    "range(-3, 1)",
    "range(-1, b)",
    "range(-b, 1)",
    "range(-b, 0)",
    "(-1, 0, 1)",
    "[-2, -1, 0]",
)
"""Loops over the shifts of windows that reach to both sides."""
INDICES = ("_", "k", "i", "step")


@dataclass(frozen=True)
class Program:
    """Source, and the names of the whole numbers that its kernel takes after its arrays."""

    source: str
    numbers: tuple[str, ...]
    exact: bool
    windows: int


@dataclass(frozen=True)
class Part:
    """The lines that start a window sum, and those of its loop, without indentation."""

    start: list[str]
    loop: list[str]


class Writer:
    """Writes one program, drawing every choice.

    Parameters
    ----------
    draw : callable
        Hypothesis's.
    """

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.dimensions = self.pick((1, 2, 3))
        self.dtype = self.pick((*INTEGERS, *FLOATS))
        self.numbers: list[str] = ["b"]
        self.used: set[str] = {"image", "b", "n", "out", "state"}

    def pick(self, choices: tuple):  # type: ignore[no-untyped-def,type-arg]
        return self.draw(st.sampled_from(choices))

    def maybe(self) -> bool:
        return self.draw(st.booleans())

    def fresh(self, names: tuple[str, ...]) -> str:
        name = self.pick(names)
        while name in self.used:
            name += "_"
        self.used.add(name)
        return name

    def subscript(self, axis: int, text: str) -> str:
        """Write a subscript that is `text` along an axis and everything along the others."""
        after = self.dimensions - axis - 1
        if after == 0 and axis > 0 and self.maybe():
            return f"[..., {text}]"
        if after and self.maybe():
            return f"[{', '.join([*[':'] * axis, text])}]"
        return f"[{', '.join([*[':'] * axis, text, *[':'] * after])}]"

    def axis_argument(self, axis: int) -> str:
        if self.dimensions == 1 and self.maybe():
            return ""
        number = axis - self.dimensions if self.maybe() else axis
        return f", axis={number}" if self.maybe() else f", {number}"

    def remark(self) -> str:
        return f"  {self.pick(REMARKS)}" if self.draw(st.integers(0, 3)) == 0 else ""

    def own_remark(self) -> list[str]:
        return [self.pick(REMARKS)] if self.draw(st.integers(0, 3)) == 0 else []

    def trips(self) -> tuple[str, int]:
        """Return an expression for a number of terms, and a whole number to take from it."""
        return self.pick(
            (
                *(("b", 0),) * 6,
                *(("b + 1", 0), ("2 * b", 0), ("b // 2", 0), ("max(b, 2)", 0), ("min(b, 4)", 0)),
                *(("4", 0), ("2", 0), ("width", 0), ("n", 0), ("b % 5", 0)),
            )
        )

    def header(self, index: str, first: int, width: str, *, runs: bool) -> str:
        """Write the header of a loop over `first` <= index < `width` (as many times, if `runs`)."""
        forms = [f"range({first}, {width})", f"range({first}, {width}, 1)"]
        if first == 0:
            forms += [f"range({width})"] * 3
        if runs:
            forms += [f"range({width} - {first})"] * 3
            forms += [f"range({first + 2}, {width} + 2)", f"range(-1, {width} - {first} - 1)"]
        if self.draw(st.integers(0, 9)) == 0:
            return f"for {index} in range(  # from here\n        {first}, {width}\n    ):"
        return f"for {index} in {self.pick(tuple(forms))}:{self.remark()}"

    def started(self, target: str, source: str, first: int, dtype: str) -> list[str]:
        """Write the first value of sums: the first term, or zeros."""
        same = dtype == self.dtype_of(source)
        # left alone, as yet: sums that get new arrays on the way, where something needs their
        # shape and nothing else
        like = "image" if source in self.rebound else source
        if first:
            values = [f"{source}.astype(np.{dtype})", f'{source}.astype("{dtype}")']
            values += [f"np.array({source}, dtype=np.{dtype})"]
            if same:
                copies = (f"{source}.copy()", f"np.copy({source})", f"np.array({source})")
                values += [*copies, copies[0], copies[0], f"+{source}"]
        else:
            shape = f"({', '.join(f'{like}.shape[{d}]' for d in range(self.dimensions))},)"
            values = [f"np.zeros({like}.shape, dtype=np.{dtype})"]
            values += [f"np.zeros({shape}, np.{dtype})"]
            values += [f"np.zeros_like({like}, dtype=np.{dtype})"]
            values += [f"np.full({shape}, 0, dtype=np.{dtype})"]
            if dtype == self.dtype_of(like):
                values += [f"np.zeros_like({like})"] * 2
        value = self.pick(tuple(values))
        if self.draw(st.integers(0, 4)) == 0:
            empty = f"{target} = np.empty({like}.shape, dtype=np.{dtype})"
            place = self.pick(("[...]", "[:]"))
            stored = self.pick((f"{source}", value)) if first else self.pick(("0", value))
            return [empty, f"{target}{place} = {stored}{self.remark()}"]
        return [f"{target} = {value}{self.remark()}"]

    def dtype_of(self, name: str) -> str:
        return self.types.get(name, self.dtype)

    def added(self, target: str, value: str) -> str:
        forms = [f"{target} += {value}"] * 4
        if target != "out":
            forms += [f"{target} = {target} + {value}", f"{target} = {value} + {target}"]
        forms += [f"{target}[...] += {value}", f"{target}[:] = {target} + {value}"]
        forms += [f"np.add({target}, {value}, out={target})"]
        form = self.pick(tuple(forms))
        if form.startswith(f"{target} = "):
            self.rebound.add(target)
        return form + self.remark()

    def moved_by_slices(self, moved: str, axis: int, side: int) -> list[str]:
        n = f"image.shape[{axis}]"
        later = self.pick(("1:", f"1 : {n}", "1::1"))
        sooner = self.pick((":-1", f"0 : {n} - 1", f": {n} - 1", "0:-1"))
        first, last = ("0", "0:1", ":1"), ("-1", "-1:", f"{n} - 1", f"{n} - 1 :")
        place, taken = (later, sooner) if side < 0 else (sooner, later)
        edge = self.pick(first if side < 0 else last)
        zero = self.pick(("0", "0.0")) if self.dtype in FLOATS else "0"
        return [
            f"{moved}{self.subscript(axis, place)} = {moved}{self.subscript(axis, taken)}"
            f"{self.remark()}",
            f"{moved}{self.subscript(axis, edge)} = {zero}{self.remark()}",
        ]

    def rolled(self, array: str, amount: str, axis: int) -> str:
        if self.maybe() and self.dimensions > 1:
            return f"np.roll({array}, shift={amount}, axis={axis})"
        return f"np.roll({array}, {amount}{self.axis_argument(axis)})"

    def window(self, source: str, moved_name: str | None, out: bool) -> tuple[Part, str, str]:
        """Write one window sum; return it, its result and the moved copy."""
        axis = self.pick(tuple(range(self.dimensions)))
        side, first = self.pick((-1, 1)), self.pick((0, 1))
        way = self.pick(("running slices", "running roll", "indexed slices", "indexed roll"))
        width, _ = self.trips()
        index = self.pick(INDICES)
        centred = way == "indexed roll" and first == 0 and self.maybe()
        dtypes = (
            (self.dtype_of(source),)
            if out
            else WIDER.get(self.dtype_of(source), (self.dtype_of(source),))
        )
        dtype = self.pick(dtypes)
        if out:
            target = "out"
            start = [f"out[...] = {source if first else 0}"]
        else:
            target = self.fresh(TARGETS)
            start = self.started(target, source, first, dtype)
        self.types[target] = dtype
        moved = ""
        if way.startswith("running"):
            moved = moved_name or self.fresh(MOVED)
            origin = source
            if first and dtype == self.dtype_of(source) and not out and self.maybe():
                origin = target
            if moved in self.types and self.types[moved] != self.dtype_of(source):
                moved = self.fresh(MOVED)
            self.types[moved] = self.dtype_of(source)
            copy = self.pick((f"{origin}.copy()", f"np.array({origin})"))
            line = f"{moved} = {copy}{self.remark()}"
            start = [*start, *self.own_remark(), line]
            if origin != target and self.maybe():
                start = [line, *start[: -1 if start[-1] == line else None]]
            if way == "running slices":
                move = self.moved_by_slices(moved, axis, side)
            else:
                rolled = self.rolled(moved, "1" if side < 0 else "-1", axis)
                place = self.pick((moved, moved, f"{moved}[...]"))
                move = [f"{place} = {rolled}{self.remark()}"]
            add = [self.added(target, moved)]
            body = [*move, *add] if first else [*add, *move]
            header = self.header(index, first, width, runs=True)
        else:
            header = self.header(index, first, width, runs=False)
            if centred:
                bounds = self.pick(CENTRED)
                header = f"for {index} in {bounds}:{self.remark()}"
            if index == "_":
                index = "j"
                header = header.replace("for _ in", "for j in")
            if way == "indexed roll":
                body = [
                    self.added(
                        target, self.rolled(source, index if side < 0 else f"-{index}", axis)
                    )
                ]
            else:
                extent = f"{source}.shape[{axis}]"
                ends = (f": {extent} - {index}", f"0 : {extent} - {index}")
                if first:
                    ends = (*ends, f":-{index}", f":-{index}")
                later, sooner = f"{index}:", self.pick(ends)
                place, taken = (later, sooner) if side < 0 else (sooner, later)
                where = self.subscript(axis, place)
                value = f"{source}{self.subscript(axis, taken)}"
                body = [f"{target}{where} += {value}{self.remark()}"]
        inner = [f"\t{line}" for line in self.commented(body)]
        return Part(start, [header, *inner]), target, moved

    def commented(self, lines: list[str]) -> list[str]:
        return [text for line in lines for text in (*self.own_remark(), line)] + self.own_remark()

    def program(self) -> Program:
        self.types: dict[str, str] = {"image": self.dtype}
        self.rebound: set[str] = set()
        out = self.draw(st.integers(0, 5)) == 0
        count = self.pick((1, 1, 2))
        timed = self.draw(st.integers(0, 3)) == 0
        first, target, moved = self.window("image", None, out and count == 1)
        parts = [first]
        result = target
        if count == 2:
            again = moved if moved and self.maybe() else None
            side_by_side = self.maybe()
            source = "image" if side_by_side else target
            second, other, _ = self.window(source, None if side_by_side else again, out)
            parts.append(second)
            result = f"{target}, {other}" if side_by_side or self.maybe() else other
            if side_by_side and not out and self.maybe():
                # a store to `out` before the first loop may change `image` for all one knows
                parts = [Part([*first.start, *second.start], first.loop), Part([], second.loop)]
        lines = [
            line
            for part in parts
            for line in (*self.commented(part.start), "", *self.unrelated(), *part.loop)
        ]
        if timed:
            lines = [f"for t in range(2):{self.remark()}", *(f"\t{line}" for line in lines)]
        lines = ["n = image.shape[0]", "width = b + 1 - 1", *lines, f"return {result}"]
        if self.maybe():
            lines.insert(0, '"""Sum windows.  # no comment"""')
        indent = self.pick(("    ", "    ", "  ", "\t"))
        text = "\n".join(_indented(line, indent) for line in ["\t" + line for line in lines])
        source = f"{self.head(out)}{text}\n"
        if self.draw(st.integers(0, 7)) == 0:
            source = source.replace("\n", "\r\n")
        exact = self.dtype not in FLOATS
        return Program(source, tuple(self.numbers), exact, count)

    def unrelated(self) -> list[str]:
        if self.draw(st.integers(0, 3)):
            return []
        name = self.fresh(("other", "noise"))
        self.types[name] = self.dtype
        return [self.pick((f"{name} = image * 2", f"{name} = np.zeros(image.shape)"))]

    def head(self, out: bool) -> str:
        extents = ", ".join(f'"{size}"' for size in SIZES[: self.dimensions])
        dims = ", ".join(('"row"', *["None"] * (self.dimensions - 1)))
        dist = f"Dist({extents}, {dims}, on=mesh)"
        arrays = [("image", self.dtype)]
        if out:
            arrays.append(("out", self.types["out"]))
        annotated = ", ".join(
            f"{name}: Annotated[NDArray[np.{dtype}], {dist}]" for name, dtype in arrays
        )
        return (
            "from typing import Annotated\n\nimport numpy as np\n"
            "from numpy.typing import NDArray\n\n"
            "from advisor import Dist, Mesh, kernel\n\n"
            f"mesh = Mesh(row=4)  {self.pick(REMARKS)}\n\n\n"
            f"@kernel(N=100, M=90, K=80, b=3)\ndef program({annotated}, b: int):\n"
        )


def _indented(line: str, indent: str) -> str:
    bare = line.lstrip("\t")
    return indent * (len(line) - len(bare)) + bare if bare else ""


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw a program whose every window is one that is to be found."""
    return Writer(draw).program()
