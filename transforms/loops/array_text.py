"""Statements over arrays as source, written as a person would."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from advisor.ir.kernel import Kernel, once
from advisor.ir.nests import chosen_in, masked
from advisor.ir.shapes import kind_of_or_none, whole
from advisor.ir.statements import SET, Bind, Loop, ScalarBind, Scatter, Statement, Store, is_total
from advisor.ir.values import (
    Along,
    Called,
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    Part,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Tally,
    Transpose,
    Value,
    Windows,
    bounds_in,
    parts_of,
)
from advisor.numpy_table import PYTHON_INTEGER, REDUCED, ROWS, SCANNED, SIGNS, Kind
from advisor.source import Span, assigned_names, names_in, tree_of, walked
from costdb.expr import ONE, Expr, python_text, to_text
from costdb.expr.nodes import Add, Num, Sym
from costdb.records import dataclass, replace
from transforms.kit.kernels import ZERO, mapped, type_of
from transforms.loops.axes import chain, kept_axis
from transforms.loops.lift import STACKED
from transforms.loops.masked import comprehended, filled, in_list
from transforms.loops.raising import combined

LOOSE, _COMPARED, _OR, _AND, _SUM, _PRODUCT, _SIGNED, TIGHT = range(8)
_LEVELS = {
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys(("*", "/", "//", "%"), _PRODUCT),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _COMPARED),
    **{"&": _AND, "|": _OR},
}
_SIGNS = {
    name: (sign, _LEVELS[sign])
    for name, sign in {**SIGNS, "logical_and": "&", "logical_or": "|"}.items()
    if sign in _LEVELS
}
_EXTREMES = ("maximum", "minimum")
_PYTHONS = {Kind.INTEGER: "int", Kind.FLOATING: "float"}
_CALLED = frozenset(
    ["searchsorted", "repeat", "real", "imag", "linalg.solve", "linalg.lstsq", "polyfit"]
).union(STACKED)
FILLED = {"": "empty", "0": "zeros", "1": "ones"}
_NAMED_FROM = 10
"""Smaller numbers stand for many things."""
_OF_ARRAYS = frozenset({*REDUCED.values(), "std", "var"})
"""Functions that are methods of arrays, too."""


class NoWords(Exception):
    """A part of a statement or a value that source has no words for."""


def lines(statements: Sequence[Statement], kernel: Kernel) -> list[str] | None:
    """Return statements as lines of source; None where a part of them has no words."""
    try:
        return Words(kernel).lines(statements)
    except NoWords:
        return None


def bound(total: Store, kernel: Kernel) -> ScalarBind:
    """Return what gives a number its name, as its text does."""
    own = combined(total)
    value = total.value if own is None else own[1]
    if _is_whole(value, kernel):
        value = Copy(value, "int64", of_python=True)
    return ScalarBind(total.array, value, total.span, combined=own is not None)


def _is_whole(value: Value, kernel: Kernel) -> bool:
    return is_count(value, kernel) or _is_place(value)


def _is_place(value: Value) -> bool:
    """Return whether a value is a place in an array, counted from somewhere."""
    match value:
        case Elementwise("add", (one, Scalar())):
            return _is_place(one)
        case Reduction(operation="argmin" | "argmax"):
            return True
    return False


def is_count(value: Value, kernel: Kernel) -> bool:
    """Return whether a value is how often something holds."""
    match value:
        case Reduction(operand, _, "add" | "count_nonzero", "int64", fused=False):
            return type_of(operand, kernel).dtype == "bool"
    return False


def counted(statements: tuple[Statement, ...], kernel: Kernel) -> tuple[Statement, ...]:
    """Return statements that count where they are written so."""

    def other(part: object) -> object:
        if isinstance(part, Reduction) and part.axis is None and is_count(part, kernel):
            return replace(part, operation="count_nonzero")
        return part

    return mapped(statements, other)


def _element(read: Read) -> str:
    """Return the name of an element of what is unpacked: nothing else of it has a name."""
    match read.region:
        case (Point(Num(int(place))),) if ", " in read.array:
            return read.array[1:-1].split(", ")[place]
    raise NoWords


def within(text: str, own: int, level: int) -> str:
    """Return source in parentheses where it binds less than a level."""
    return f"({text})" if own < level else text


def _from_end(text: str, whole: str) -> str:
    """Return a place from the array's own end: there it is where that is too short, too."""
    short = text.removeprefix(whole)
    return f"-{short}" if short != text and short.isdecimal() else text


def _is_near(expr: Expr, value: Expr) -> bool:
    """Return whether a number is, but for an end or two, a larger one that has a name."""
    match expr, value:
        case Num(int(number)), Num(int(named)):
            return named >= _NAMED_FROM and abs(number - named) <= 2
    return False


def _terms(expr: Expr) -> int:
    return len(expr.terms) + bool(expr.constant) if isinstance(expr, Add) else int(expr != ZERO)


@once
def _along(kernel: Kernel) -> Mapping[tuple[str, int], set[str]]:
    """Return the names that subscripts of an axis, and loops along it, go by in the source."""
    first, last = kernel.context.whole
    nodes = [
        one
        for one in walked(tree_of(kernel.context.source))
        if isinstance(one, ast.comprehension) or first <= getattr(one, "lineno", 0) <= last
    ]
    by: dict[str, set[str]] = {}
    for one in nodes:
        if isinstance(one, ast.For | ast.comprehension):
            for name in assigned_names(one.target):
                by.setdefault(name, set()).update(names_in(one.iter))
    found: dict[tuple[str, int], set[str]] = {}
    for one in nodes:
        if isinstance(one, ast.Subscript):
            places = one.slice.elts if isinstance(one.slice, ast.Tuple) else [one.slice]
            for axis, place in enumerate(places):
                names = found.setdefault((ast.unparse(one.value), axis), set())
                names.update(*(by.get(name, {name}) for name in names_in(place)))
    return found


@dataclass(frozen=True, slots=True)
class Words:
    """Writes statements and values of a kernel; what has no words raises `NoWords`."""

    kernel: Kernel

    @property
    def module(self) -> str:
        """What NumPy is called."""
        if self.kernel.context.array_module is None:
            raise NoWords
        return self.kernel.context.array_module

    def _builtin(self, name: str | None) -> str:
        if name is None or name in self.kernel.context.not_builtins:
            raise NoWords
        return name

    def rank(self, value: Value) -> int:
        """Return how many axes a value has."""
        return len(type_of(value, self.kernel).extents)

    # --- statements

    def lines(self, statements: Sequence[Statement]) -> list[str]:
        """Return statements as lines of source."""
        texts, made = self.kernel.context.scalar_texts, list[str]()
        for one in statements:
            match one:
                case Loop(variable, low, high, step, body) if variable in texts:
                    ends = [high] if low == ZERO and step == 1 else [low, high]
                    bounds = ", ".join([*map(self.size, ends), *([str(step)] * (step > 1))])
                    made.append(f"for {texts[variable]} in range({bounds}):")
                    made += (f"{self.kernel.context.indent}{line}" for line in self.lines(body))
                case Bind(name, value):
                    made.append(f"{name} = {self.text(value)}")
                case Store():
                    made.append(self._stored(one))
                case Scatter():
                    made.append(self._combined(one))
                case _:
                    raise NoWords
        return made

    def _combined(self, one: Scatter) -> str:
        """Return the source of what is combined, or stored, at places."""
        at, value = ", ".join(map(self.text, one.all_places)), self.text(one.value)
        function = f"{self.module}.{one.operation}.at"
        if one.operation == SET:
            return f"{one.array}[{at}] = {value}"
        return f"{function}({one.array}, {f'({at})' if one.others else at}, {value})"

    def _stored(self, store: Store) -> str:
        number = combined(store) if store.variable or is_total(store) else None
        if number is not None and comprehended([store], self.kernel):
            # what Python made of a comprehension has no name
            text = self.text(number[1])
            return f"{self._builtin('int')}({text})" if _is_whole(number[1], self.kernel) else text
        if store.array in self.kernel.lists and not store.variable:
            whole = filled(store, self.kernel)
            made = None if whole is None else in_list(self.text(whole), store, self.kernel)
            if made is None:
                raise NoWords
            # a comprehension has no name
            named = self.kernel.lists[store.array].place is None
            return f"{store.array} = {made}" if named else made
        target = Read(store.array, store.region)
        # the source goes on with the number that the element is made of
        own = store.array if is_total(store) else store.variable
        place = own or self.text(target)
        sign, value = "=", store.value
        match value:
            case Elementwise(operation, (left, Copy(right, of_python=True) as wide)) if (
                operation in _EXTREMES and left == target
            ):
                # both are numbers of Python, and so is what comes to the same by NumPy
                told = self._stored(replace(store, value=replace(value, operands=(left, right))))
                return f"{place} = {self._python(told.removeprefix(f'{place} = '), wide.dtype)}"
        alone = all(isinstance(part, Point) for part in store.region)
        match value:
            case Scan(operand, axis, "add", _) if store.in_place and operand == target:
                several = sum(not isinstance(part, Point) for part in store.region) > 1
                along = f", axis={axis}" if several else ""
                return f"{self.module}.cumsum({place}{along}, out={place})"
            case Elementwise("where", (mask, chosen, _)) if masked(store) is not None:
                place, value = f"{place}[{self.text(mask)}]", self._chosen(chosen, mask)
            case Elementwise(operation, (known, other)) if store.in_place and known == target:
                if operation in _SIGNS and ROWS[operation].result != "truth":
                    sign, value = f"{_SIGNS[operation][0]}=", other
                elif alone and operation in _EXTREMES and isinstance(other, Reduction):
                    inner = self.text(other.operand, TIGHT)
                    return f"{place} = {inner}.{REDUCED[operation]}(initial={place})"
        text = self.text(value)
        if is_total(store) and _is_whole(value, self.kernel):
            # NumPy's number where Python's was is not what every reader of it takes
            text = f"{self._builtin('int')}({text})"
        if place == store.array and sign == "=" and not is_total(store):
            place = f"{place}[:]"
        return f"{place} {sign} {text}"

    def _python(self, text: str, dtype: str) -> str:
        """Return source that makes a number of Python of one of NumPy."""
        kind = kind_of_or_none(dtype) or Kind.BOOLEAN
        return f"{self._builtin(_PYTHONS.get(kind))}({text})"

    def _chosen(self, value: Value, mask: Value) -> Value:
        found = chosen_in(value, mask, partial(type_of, kernel=self.kernel), ONE)
        if found is None:
            raise NoWords
        return found

    # --- values

    def text(self, value: Value, level: int = LOOSE) -> str:
        """Return a value as source, in parentheses where it binds less than `level`."""
        kernel = self.kernel
        match value:
            case Read():
                return self._read(value)
            case Scalar(text, dtype, span):
                try:
                    return self._number(text, dtype, level)
                except NoWords:
                    if span is None:
                        raise
                    return self._own_words(span)
            case Expand(Read() as read, axis):
                return self._read(read, (axis,))
            case Expand(Expand(Read() as read, inside), axis):
                return self._read(read, (inside, axis))
            case Expand(Reduction(inside, _, operation), axis) if operation in REDUCED and (
                kept_axis(value)
            ):
                return self._along(REDUCED[operation], inside, (axis,), "", kept=True)
            case Expand(Along(function, inside, _, _, options), axis) if kept_axis(value):
                return self._along(function, inside, (axis,), options, kept=True)
            case Expand(operand, axis):
                parts = [":"] * self.rank(operand)
                parts.insert(axis, "None")
                return f"{self.text(operand, TIGHT)}[{', '.join(parts)}]"
            case Called("diagonal", (operand,)):
                return f"{self.text(operand, TIGHT)}.diagonal()"
            case Roll(operand, axis, amount):
                along = f", axis={axis}" * (self.rank(operand) > 1)
                return f"{self.module}.roll({self.text(operand)}, {self.size(amount)}{along})"
            case Flip(operand, axis):
                return f"{self.text(operand, TIGHT)}[{':, ' * axis}::-1]"
            case Fill("arange", (extent,), "int64", begin, ()):
                first = "" if begin == ZERO else f"{self.size(begin)}, "
                return f"{self.module}.arange({first}{self.size(begin + extent)})"
            case Chosen(Fill("arange", _, _, begin, ()), mask):
                start, found = self.size(begin), f"flatnonzero({self.text(mask)})"
                found = f"{self.module}.{found}"
                return found if start == "0" else within(f"{found} + {start}", _SUM, level)
            case Transpose(operand, (1, 0)):
                return f"{self.text(operand, TIGHT)}.T"
            case Transpose(operand, order):
                return f"{self.text(operand, TIGHT)}.transpose({', '.join(map(str, order))})"
            case MatMul(left, right):
                return self._joined("@", left, right, _PRODUCT, level)
            case Reduction(Elementwise("multiply", (one, other)), axis, "add", _, fused=True):
                if axis == 1 and isinstance(other, Expand):
                    other = other.operand
                elif axis == 0 and isinstance(one, Expand):
                    one = one.operand
                return self._joined("@", one, other, _PRODUCT, level)
            case Reduction(condition, None) if is_count(value, kernel):
                return f"{self.module}.count_nonzero({self.text(condition)})"
            case Reduction(condition, int(axis)) if is_count(value, kernel):
                # NumPy counts along an axis by a sum, after a pass more
                return self._along("sum", condition, (axis,), "", kept=False)
            case Reduction(_, _, operation, _, fused=False) if operation in REDUCED:
                return self._along(REDUCED[operation], *chain(value), "")
            case Along(function, operand, axes, kept, options):
                return self._along(function, operand, axes, options, kept=kept)
            case Windows():
                return self._windows(value)
            case Sort(operand, axis) | Scan(operand, axis, reverse=False) | Fourier(operand, axis):
                return self._by_axis(value, operand, axis)
            case Elementwise("negative", (operand,)):
                return within(f"-{self.text(operand, _SIGNED)}", _SIGNED, level)
            case Elementwise("invert" | "logical_not", (operand,)) if (
                type_of(operand, kernel).dtype == "bool"
            ):
                inner = self.text(operand, _SIGNED)
                # a truth value of Python is a number to `~`
                plain = all(isinstance(part, Scalar | Elementwise) for part in parts_of(operand))
                return f"(not {inner})" if plain else within(f"~{inner}", _SIGNED, level)
            case Elementwise("power", (operand, Scalar() as exponent), called=False):
                power = f"{self.text(operand, TIGHT)} ** {self.text(exponent, TIGHT)}"
                return within(power, _SIGNED, level)
            case Elementwise(
                "minimum", (Elementwise("maximum", (inside, Scalar() as low)), Scalar() as high)
            ):
                return self.called("clip", (inside, low, high))
            case Elementwise(operation, (left, right), called) if operation in _SIGNS and not (
                called and operation.startswith("logical")
            ):
                sign, own = _SIGNS[operation]
                return self._joined(sign, left, right, own, level)
            case Elementwise("where", (test, one, other), called=False) if not self.rank(value):
                # what is not chosen may fail
                return f"({self.text(one)} if {self.text(test)} else {self.text(other)})"
            case Elementwise(operation, operands) if operation.isidentifier():
                return self.called(operation, operands)
            case Chosen(operand, mask):
                elements = chosen_in(operand, mask, partial(type_of, kernel=kernel), ONE)
                if elements is not None and elements != value:
                    return self.text(elements, level)
                return f"{self.text(operand, TIGHT)}[{self.text(mask)}]"
            case Gather(Read() as table):
                return self._read(table, (), [*map(self.text, value.all_places)])
            case Fill(number, shape, dtype, of=()) if number in FILLED:
                extents = f"({', '.join(map(self.size, shape))}{',' * (len(shape) == 1)})"
                told = "" if dtype == "float64" else f", dtype={self.module}.{dtype}"
                return f"{self.module}.{FILLED[number]}({extents}{told})"
            case Fill("eye", (rows, columns), "bool") if rows == columns:
                return f"{self.module}.eye({self.size(rows)}, dtype={self._builtin('bool')})"
            case Copy(operand, dtype, of_python=True) if not self.rank(operand):
                return self._python(self.text(operand), dtype)
            case Copy(operand, dtype):
                return f"{self.text(operand, TIGHT)}.astype({self.module}.{dtype})"
            case Called(function, operands, stated=stated) if function.split("[")[0] in _CALLED:
                options = "".join(f", {name}={text}" for name, text in stated)
                # of several results the first
                function, result, _ = function.partition("[0]")
                return f"{self.called(function, operands)[:-1]}{options}){result}"
            case Called("column_stack" | "vstack" as function, operands):
                return f"{self.module}.{function}(({', '.join(map(self.text, operands))}))"
            case Tally(at, weights, extent):
                terms = "" if weights is None else f", weights={self.text(weights)}"
                told = f"{self.text(at)}{terms}, minlength={self.size(extent)}"
                return f"{self.module}.bincount({told})"
            case Part(Tally() as tally, (Range(low, high),)):
                of_all = f":{self.size(high)}" if low == ZERO else f"{to_text(low)}:-1"
                return f"{self.text(tally)}[{of_all}]"
            case Part(operand, region):
                places = [
                    self.size(one.at) if isinstance(one, Point) else ":" * (all_of == one)
                    for one, all_of in zip(
                        region, whole(type_of(operand, kernel).extents), strict=True
                    )
                ]
                if not all(places):
                    raise NoWords
                return f"{self.text(operand, TIGHT)}[{', '.join(places)}]"
            case Called():
                spans = [at for at, one in kernel.context.written if one == value]
                for text in map(kernel.context.text, spans):
                    if "\n" not in text:
                        return text
        raise NoWords

    def called(self, function: str, parts: Sequence[Value]) -> str:
        """Return the call of a function of NumPy."""
        return f"{self.module}.{function}({', '.join(map(self.text, parts))})"

    def _joined(self, sign: str, left: Value, right: Value, own: int, level: int) -> str:
        # products of matrices and of numbers stand beside each other from left to right
        one = self.text(left, TIGHT if sign == "@" else own + (own == _COMPARED))
        return within(f"{one} {sign} {self.text(right, own + 1)}", own, level)

    def _along(
        self,
        function: str,
        operand: Value,
        along: tuple[int, ...] | None,
        options: str,
        *,
        kept: bool = False,
    ) -> str:
        """Return a function along axes; none are named where these are all."""
        method = function in _OF_ARRAYS
        inner, module = self.text(operand, TIGHT if method else LOOSE), self.module
        given = [options] if options and "=" not in options else []
        if along is not None and (kept or len(along) < self.rank(operand)):
            given.append(f"axis={along[0] if len(along) == 1 else along}")
        given += [options] if "=" in options else []
        given += ["keepdims=True"] if kept else []
        if method:
            return f"{inner}.{function}({', '.join(given)})"
        return f"{module}.{function}({', '.join((inner, *given))})"

    def _windows(self, value: Windows) -> str:
        """Return windows as NumPy's view of them."""
        sizes: list[str] = []
        axes: list[int] = []
        inner: Value = value
        while isinstance(inner, Windows):
            sizes.insert(0, self.size(inner.length))
            axes.insert(0, inner.axis)
            inner = inner.operand
        rank = self.rank(inner)
        if max(axes) >= rank:
            raise NoWords
        shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
        along = f", axis={axes[0] if len(axes) == 1 else tuple(axes)}" * (axes != [*range(rank)])
        view = f"{self.module}.lib.stride_tricks.sliding_window_view"
        return f"{view}({self.text(inner)}, {shape}{along})"

    def _by_axis(self, value: Sort | Scan | Fourier, operand: Value, axis: int) -> str:
        """Return what keeps the shape of its operand, along an axis of it."""
        match value:
            case Sort():
                name = "sort"
            case Fourier():
                name = "fft.ifft" if value.inverse else "fft.fft"
            case _:
                name = SCANNED.get(value.operation, f"{value.operation}.accumulate")
        rank = self.rank(operand)
        last = axis == rank - 1 and (isinstance(value, Sort | Fourier) or rank == 1)
        along = "" if last else f", axis={axis}"
        return f"{self.module}.{name}({self.text(operand)}{along})"

    def _number(self, text: str, dtype: str, level: int) -> str:
        """Return a number as source: a literal, a name that the source has for it, or operators.

        What is computed stands there by the names of functions, and what modules hold by theirs.
        """

        def value(node: ast.expr) -> Value:
            match node:
                case ast.Call(ast.Name(name), args) if name in _SIGNS or name in (
                    "negative",
                    "power",
                ):
                    return Elementwise(name, tuple(map(value, args)))
                case ast.UnaryOp(ast.USub(), ast.Constant()):
                    return Scalar(ast.unparse(node), dtype)
                case ast.UnaryOp(ast.USub(), operand):
                    return Elementwise("negative", (value(operand),))
                case ast.Name() | ast.Constant() | ast.Attribute() | ast.Subscript():
                    return Scalar(ast.unparse(node), dtype)
            raise NoWords

        context = self.kernel.context
        if text.isidentifier() or text in context.identifiers:
            named = context.scalar_texts.get(text) if dtype == PYTHON_INTEGER else None
            if named is None and text not in context.identifiers:
                raise NoWords
            return named or text
        home, _, constant = text.partition(".")
        if home in ("numpy", "math", "cmath") and constant in ("pi", "e", "inf", "nan"):
            return f"{self.module}.{constant}"
        try:
            return text if float(text) >= 0 else within(text, _SUM, level)
        except ValueError:
            pass
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise NoWords from None
        made = value(node)
        if isinstance(made, Scalar) and not isinstance(node, ast.Constant):
            raise NoWords
        return text if isinstance(made, Scalar) else self.text(made, level)

    def _own_words(self, span: Span) -> str:
        """Return a number as it is written, where that is a call or a name."""
        text = self.kernel.context.text(span)
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise NoWords from None
        return text if isinstance(node, ast.Call | ast.Attribute | ast.Name) else f"({text})"

    # --- sizes and regions

    def size(
        self,
        expr: Expr,
        extents: Mapping[str, str] | None = None,
        along: Collection[str] = (),
    ) -> str:
        """Return the source of a size, by a name that the kernel has for most of it.

        Of `extents` that have no other name the array itself tells. Of names for one number those
        are meant that loops `along` an axis go by; without them, none of several.
        """
        texts = {**(extents or {}), **self.kernel.context.scalar_texts}
        plain, named = python_text(expr, texts), self._named(along)
        near = [name for name, value in named if _is_near(expr, value)]
        for name, value in named:
            rest = expr - value
            # a name that saves nothing is of use where there is no other
            if near != [name] and _terms(rest) + (plain is not None) >= _terms(expr):
                continue
            text = python_text(rest, texts)
            if isinstance(rest, Num) and rest.value < 0:
                return f"{name} - {-rest.value}"
            if isinstance(rest, Num):
                return name if rest == ZERO else f"{name} + {text}"
            if text is not None:
                return f"{text} + {name}"
        if plain is None:
            raise NoWords
        for name, value in named:
            computed = python_text(value, texts)
            # what one small number is called says nothing of another that is as large
            small = isinstance(value, Num) and -_NAMED_FROM < value.value < _NAMED_FROM
            if computed is not None and not small and not computed.isidentifier():
                plain = name if plain == computed else plain.replace(f"({computed})", name)
        return plain

    def _named(self, along: Collection[str]) -> list[tuple[str, Expr]]:
        """Return the names of sizes that may be meant."""
        told = self.kernel.context.computed
        times = Counter(value for _, value in told)
        meant = {name for name, _ in told if name in along}
        return [
            (name, value)
            for name, value in told
            if not isinstance(value, Num) or (name in meant if meant else times[value] == 1)
        ]

    def _read(self, read: Read, new_axes: Sequence[int] = (), places: Sequence[str] = ()) -> str:
        """Return the source of a region, with new axes at some places.

        Places along its first axes stand in their place, where that is all of them.
        """
        if read.array.startswith("<"):
            return _element(read)
        lists = self.kernel.lists
        if read.array in lists and lists[read.array].place is not None:
            raise NoWords
        if not read.region:
            return read.array
        extents = self.kernel.extents(read.array)
        parts: list[str] = []
        sizes = {
            one.name: f"{read.array}.shape[{axis}]"
            for axis, one in enumerate(extents)
            if isinstance(one, Sym)
        }
        for axis, (part, extent) in enumerate(zip(read.region, extents, strict=True)):
            along = _along(self.kernel).get((read.array, axis), ())
            whole_axis = f"{read.array}.shape[{axis}] - "
            if isinstance(part, Point):
                parts.append(_from_end(self.size(part.at, sizes, along), whole_axis))
                continue
            low, high = bounds_in(part)
            ends = ["" if low == ZERO else self.size(low, sizes, along)]
            ends.append("" if high == extent else self.size(high, sizes, along))
            ends += [] if isinstance(part, Range) else [str(part.step)]
            ends[1] = _from_end(ends[1], whole_axis)
            if ends[1].isdecimal() and _is_near(high, extent):
                # a number alone says less than that end does, and only while the array is as long
                ends[1] = to_text(high - extent)
            parts.append(":".join(ends))
        if any("max(" in part for part in parts):
            self._builtin("max")
        kept = [number for number, part in enumerate(read.region) if not isinstance(part, Point)]
        for axis in new_axes:
            place = kept[axis] if axis < len(kept) else len(parts)
            parts.insert(place, "None")
            kept = [n + (n >= place) for n in kept]
            kept.insert(axis, place)
        if any(parts[number] != ":" for number in kept[: len(places)]):
            raise NoWords
        for number, text in zip(kept, places, strict=False):
            parts[number] = text
        while places and parts[-1] == ":":
            del parts[-1]
        if all(part == ":" for part in parts):
            return read.array
        return f"{read.array}[{', '.join(parts)}]"
