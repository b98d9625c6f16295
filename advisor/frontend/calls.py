"""What NumPy's functions and methods of arrays mean: operations on arrays, for every door."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Generic

from advisor.frontend.scope import A, Door, Given, matched
from advisor.frontend.trees import NotUnderstood
from advisor.ir.shapes import ArrayType, kind_of_or_none
from advisor.ir.values import (
    Along,
    Called,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    PeriodicPad,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Tally,
    Transpose,
    Value,
    Windows,
)
from advisor.numpy_functions import FUNCTIONS, INTEGERS, SIZE_AT, TYPED, Form
from advisor.numpy_table import (
    COPIES,
    ELEMENTWISE,
    PARAMETERS,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    REDUCTIONS,
    ROWS,
    SAME_AS,
    SCANS,
    UNKNOWN_DTYPE,
    Kind,
    Shape,
    ShapeConflict,
    broadcast,
    count_of,
    moved,
    promote,
    reduced_dtype,
    strong,
    transformed,
)
from costdb.expr import Expr, ceil, free_symbols, num, substitute, to_text
from costdb.expr.parse import parse
from costdb.records import replace

_OF_DATA = frozenset(
    ["nonzero", "flatnonzero", "argwhere", "unique", "compress", "extract", "setdiff1d"]
)
_FILLED = {"zeros": "0", "ones": "1", "empty": ""}
METHODS = frozenset(
    [
        *("copy", "astype", "transpose", "dot", "conj", "conjugate", "clip", "round", "take"),
        *("swapaxes", "argsort", "argpartition", "diagonal", "ravel", "repeat", "searchsorted"),
        *("trace",),
    ]
).union(SCANS, REDUCTIONS.keys() - {"count_nonzero", "linalg.norm"})
_METHOD_PARAMETERS = {
    "astype": ("dtype", "order", "casting"),
    "conj": (),
    "conjugate": (),
    "copy": ("order",),
    "clip": ("min", "max", "out"),
}
"""Where they are not those of the function of the same name."""
ONE, ZERO = num(1), num(0)


class Calls(Generic[A]):
    """Reads calls by what a front end makes of them."""

    def __init__(self, door: Door[A]) -> None:
        self.door = door
        self.called = False

    def function(self, name: str, given: Sequence[Given[A]]) -> Value:
        """Return the value of ``np.name(...)``.

        Raises
        ------
        NotUnderstood
            For a function, or an argument, outside the understood language.
        """
        if name in _OF_DATA:
            raise NotUnderstood(f"np.{name}, whose length only the data know")
        called, name = name, SAME_AS.get(name, name)
        self.called = True
        if name in ELEMENTWISE:
            return self._elementwise(ELEMENTWISE[name], given)
        if name == "einsum":
            return self._einsum(given)
        if name not in PARAMETERS:
            raise NotUnderstood(f"np.{called} is not understood")
        if name in FUNCTIONS:
            listed = matched(given, PARAMETERS[name], called)
            if name not in REDUCTIONS or ("q" in listed and self.door.items(listed["q"])):
                return _only(self._by_row(name, listed), called)
        first, *others = PARAMETERS[name]
        arguments = dict(matched(given, (first, *others), called))
        if first not in arguments:
            raise NotUnderstood(f"`{called}` without `{first}`")
        argument = arguments.pop(first)
        if name in _MADE_OF:
            return self._made(called, argument, arguments)
        return self._of(name, self.door.array(argument, called), arguments)

    def method(self, name: str, operand: Value, given: Sequence[Given[A]]) -> Value:
        """Return the value of a method of an array."""
        if name not in METHODS:
            raise NotUnderstood(f"`{name}` is not understood")
        if name == "transpose" and len(given) > 1:
            return self._transposed(operand, [one.value for one in given])
        parameters = _METHOD_PARAMETERS.get(name) or PARAMETERS.get(name, ())[1:]
        order = "C" if name == "copy" else "K"
        arguments = matched(given, parameters, name)
        if name in FUNCTIONS:
            return _only(self._by_row(name, arguments, operand), name)
        return self._of(name, operand, arguments, order)

    def of_python(self, name: str, operand: Value) -> Value:
        """Return what a function of Python's gives that goes through a vector's elements."""
        return self._by_row(f"builtins.{name}", {}, operand)[0]

    def several(self, name: str, given: Sequence[Given[A]]) -> tuple[Value, ...]:
        """Return the results of a function that has several."""
        row = FUNCTIONS.get(name)
        if row is None:
            raise NotUnderstood(f"the results of np.{name} are not understood")
        return self._by_row(name, matched(given, row.parameters, name))

    def drawn(self, name: str, given: Sequence[Given[A]]) -> Called:
        """Return the random numbers that a function or method of ``numpy.random`` draws."""
        door, stated = self.door, {one.keyword: one.value for one in given if one.keyword}
        placed = [one.value for one in given if not one.keyword]
        if any(one.star for one in given) or "out" in stated:
            raise NotUnderstood("starred arguments, or random numbers in an array that is there")
        if name in ("rand", "randn") and not stated:
            shape: Shape | None = tuple(door.size(one, "size") for one in placed)
            return Called(f"random.{name}", (), shape or (), "float64")
        if name == "permutation" and len(placed) == 1 and not stated:
            if not self._is_array(placed[0]):
                return Called("random.permutation", (), (door.size(placed[0], "x"),), "int64")
            given_array = door.array(placed[0], name)
            found = door.type_of(given_array)
            return Called("random.permutation", (given_array,), found.extents, found.dtype)
        if name == "choice" and placed and "axis" not in stated and len(placed) < 5:
            return self._chosen(placed[0], stated.get("size", placed[1] if placed[1:] else None))
        if name not in SIZE_AT:
            raise NotUnderstood(f"np.random.{name} is not understood")
        parameters, behind = placed[: SIZE_AT[name]], placed[SIZE_AT[name] :]
        size = stated.pop("size", behind[0] if behind else None)
        shape = () if self._is_none(size) or size is None else door.shape(size)
        of_arrays = any(
            self.door.items(one) is not None or self._is_array(one)
            for one in (*parameters, *stated.values())
        )
        if shape is None or (of_arrays and not shape):
            raise NotUnderstood(f"np.random.{name} of arrays, or of a shape that is not known")
        dtype = "int64" if name in INTEGERS else "float64"
        if name in TYPED and len(behind) > 1:
            dtype = door.dtype(behind[1])
        elif name in TYPED:
            dtype = self._dtype(stated, dtype)
        return Called(f"random.{name}", (), shape, dtype)

    def _chosen(self, among: A, size: A | None) -> Called:
        """Return what is drawn of a vector, or of the numbers below one."""
        door, given, dtype = self.door, tuple[Value, ...](), "int64"
        if self._is_array(among):
            given = (door.array(among, "choice"),)
            found = door.type_of(given[0])
            dtype = found.dtype
        elif door.items(among) is not None:
            raise NotUnderstood("np.random.choice of a list is not understood")
        if given and len(found.extents) != 1:
            raise NotUnderstood("np.random.choice of anything but a vector is not understood")
        shape = () if size is None or self._is_none(size) else door.shape(size)
        if shape is None:
            raise NotUnderstood("np.random.choice of a shape that is not known")
        return Called("random.choice", given, shape, dtype)

    def _by_row(
        self, name: str, arguments: Mapping[str, A], owner: Value | None = None
    ) -> tuple[Value, ...]:
        """Return what a function gives that has a line in the table, and nothing of its own."""
        row, door = FUNCTIONS[name], self.door
        if not self._is_none(arguments.get("out")):
            raise NotUnderstood(f"`out=` of `{name}` is not understood")
        self._refuse_sharing(name, arguments)
        most = 1 if row.rule else max(len(form.operands) for form in row.forms)
        names = [one for one in row.parameters[:most] if one in arguments]
        operands = tuple(door.value(arguments[one]) for one in names)
        operands = operands if owner is None else (owner, *operands)
        types = [door.type_of(one) for one in operands]
        rest = {one: value for one, value in arguments.items() if one not in names}
        for one, value in rest.items():
            if one not in ("axis", "q") and self._is_array(value):
                raise NotUnderstood(f"`{one}=` of `{name}` that is an array")
        shapes = self._row_shapes(name, types, rest)
        stated = tuple((one, door.written(value)) for one, value in sorted(rest.items()))
        found = []
        rules = row.dtypes if len(shapes) == len(row.dtypes) else row.dtypes[1:2]
        for number, (shape, rule) in enumerate(zip(shapes, rules, strict=True)):
            which = name if len(shapes) == 1 else f"{name}[{number}]"
            dtype = self._row_dtype(rule, [one.dtype for one in types], rest)
            found.append(door.made(Called(which, operands, shape, dtype, stated)))
        return tuple(found)

    def _is_array(self, argument: A) -> bool:
        try:
            return bool(self.door.type_of(self.door.value(argument)).extents)
        except NotUnderstood:
            return False

    def _row_shapes(
        self, name: str, types: Sequence[ArrayType], rest: Mapping[str, A]
    ) -> tuple[Shape, ...]:
        row, shapes, door = FUNCTIONS[name], [one.extents for one in types], self.door
        if row.rule:
            (shape,) = shapes
            if not shape:
                raise NotUnderstood(f"np.{name} of a number")
            if row.rule == "last":
                axis = rest.get("axis")
                if axis is not None and door.is_none(axis) and len(shape) > 1:
                    raise NotUnderstood(f"np.{name} of all axes in a row")
                return (shape,)
            axes = self._axes(rest.get("axis"), len(shape), name)
            kept = not self._is_false(rest.get("keepdims"))
            along = list(shape)
            for axis_of in reversed(range(len(along)) if axes is None else axes):
                along[axis_of : axis_of + 1] = [ONE] * kept
            several = door.items(rest["q"]) if "q" in rest else None
            if several is None and "q" in rest and self._is_array(rest["q"]):
                raise NotUnderstood(f"np.{name} at places that are not written out")
            ahead = () if several is None else (num(len(several)),)
            return ((*ahead, *along),)
        # whichever quotes a text has
        stated = {n: door.written(rest[n]).replace('"', "'") for n in row.shaping & rest.keys()}
        misfit: ShapeConflict | None = None
        for form in row.forms:
            wanted = {form.where[0]: form.where[1]} if form.where else {}
            if stated == wanted:
                try:
                    letters = _fitted(form, shapes)
                except ShapeConflict as conflict:
                    misfit = misfit or conflict
                    continue
                if letters is not None:
                    return tuple(self._extents(one, letters, rest) for one in form.results)
        if misfit is not None:
            raise door.misfit(misfit)
        raise NotUnderstood(f"np.{name} of arrays of these shapes")

    def _extents(
        self, formulas: tuple[str, ...], letters: Mapping[str, Expr | Shape], rest: Mapping[str, A]
    ) -> Shape:
        if formulas == ("...",):
            shape = letters["..."]
            assert isinstance(shape, tuple)
            return shape
        made = []
        for formula in formulas:
            expr = parse(formula)
            values: dict[str, Expr] = {}
            for symbol in free_symbols(expr):
                known = letters.get(symbol)
                if known is None and symbol in rest:
                    known = self.door.size(rest[symbol], symbol)
                known = _DEFAULTS.get(symbol) if known is None else known
                if not isinstance(known, Expr):
                    raise NotUnderstood(f"`{symbol}` is not stated")
                values[symbol] = known
            made.append(substitute(expr, values))
        return tuple(made)

    def _row_dtype(self, rule: str, dtypes: Sequence[str], rest: Mapping[str, A]) -> str:
        first = strong(dtypes[0]) if dtypes else "float64"
        match rule:
            case "same" | "promoted":
                return first if rule == "same" else strong(reduce(promote, dtypes))
            case "joined":
                return reduce(promote, map(strong, dtypes))
            case "double" | "wide":
                least = "float64" if rule == "double" else "int64"
                return strong(reduce(promote, dtypes, least))
            case "mean" if "q" in rest and self.door.items(rest["q"]) is not None:
                return promote(reduced_dtype(rule, first), "float64")
            case "sum" | "mean" | "spread":
                return self._dtype(rest, reduced_dtype(rule, first))
            case "float" | "real":
                together = strong(reduce(promote, dtypes, "bool" if dtypes else "float64"))
                kept = reduced_dtype("mean", together)
                return reduced_dtype("spread", kept) if rule == "real" else kept
        return rule

    def _elementwise(self, operation: str, given: Sequence[Given[A]]) -> Value:
        """Read a function that takes its operands by position, and nothing else."""
        if operation == "where" and len(given) == 1:
            raise NotUnderstood("the places where something holds: only the data know how many")
        if len(given) != ROWS[operation].operands or any(a.keyword or a.star for a in given):
            raise NotUnderstood(f"the arguments of `{operation}` are not understood")
        operands = tuple(self.door.value(one.value) for one in given)
        return self.door.made(Elementwise(operation, operands, called=True))

    def _applied(self, operation: str, *operands: Value) -> Value:
        return self.door.made(Elementwise(operation, operands))

    def _of(self, name: str, operand: Value, arguments: Mapping[str, A], order: str = "K") -> Value:
        """Return what a function makes of an array."""
        if not self._is_none(arguments.get("out")):
            raise NotUnderstood(f"`out=` of `{name}` is not understood")
        if name in COPIES:
            return self._copied(name, operand, arguments, order)
        if name in REDUCTIONS:
            return self._reduction(name, operand, arguments)
        door, found = self.door, self.door.type_of(operand)
        match name:
            case "conj" | "conjugate":
                # NumPy gives the array itself; floats may only be taken for real
                if kind_of_or_none(found.dtype) in (Kind.INTEGER, Kind.BOOLEAN):
                    return operand
                return self._applied("conjugate", operand)
            case "transpose":
                axes = arguments.get("axes")
                return self._transposed(operand, () if axes is None else [axes])
            case "swapaxes" | "moveaxis" | "rollaxis":
                rank, places = len(found.extents), [*arguments.values()]
                source = self._axis(places[0] if places else None, rank, name)
                target = self._axis(places[1], rank, name) if len(places) > 1 else 0
                return door.made(Transpose(operand, moved(name, source, target, rank)))
            case "dot" | "matmul" | "inner" | "vdot" | "outer":
                return self._multiplied(name, operand, self._array(arguments, "b", name))
            case _ if name in SCANS:
                return self._scan(name, operand, arguments)
            case "clip":
                return self._clipped(operand, arguments)
            case "round":
                return self._rounded(operand, arguments)
            case "diff":
                return self._difference(operand, arguments)
            case "lib.stride_tricks.sliding_window_view":
                return self._windows(operand, arguments)
            case "sort":
                return door.made(Sort(operand, self._last_axis(arguments, operand, name)))
            case "flip":
                flipped = self._axes(arguments.get("axis"), len(found.extents), name)
                for along in range(len(found.extents)) if flipped is None else flipped:
                    operand = door.made(Flip(operand, along))
                return operand
            case "take":
                return self._taken(operand, self._array(arguments, "indices", name))
            case "bincount":
                return self._tallied(operand, arguments)
            case "roll":
                return self._rolled(operand, arguments)
            case "pad":
                return self._padded(operand, arguments)
            case "zeros_like" | "ones_like" | "empty_like" | "full_like":
                kind = name.removesuffix("_like")
                value = _FILLED.get(kind) or self._constant(kind, arguments)[0]
                dtype = self._dtype(arguments, found.dtype)
                return door.fill(value, found.extents, dtype, "K", operand)
        return self._fourier(name.removeprefix("fft."), operand, arguments)

    def _copied(self, name: str, operand: Value, arguments: Mapping[str, A], order: str) -> Value:
        """Return an array in memory of its own, or the same one where that does as well."""
        self._refuse_sharing(name, arguments)
        stated = arguments.get("order")
        order = COPIES[name].order or order
        if stated is not None:
            order = self.door.text(stated) or "?"
        dtype = self._dtype(arguments, None if name == "astype" else "")
        return self.door.copy(operand, dtype, order, always=COPIES[name].always)

    def _refuse_sharing(self, name: str, arguments: Mapping[str, A]) -> None:
        copy = arguments.get("copy")
        if copy is not None and self.door.written(copy) != "True":
            raise NotUnderstood(f"np.{name} that may share the memory of its operand")

    def _made(self, name: str, first: A, arguments: Mapping[str, A]) -> Value:
        """Return what a function makes of numbers, or of several arrays."""
        door = self.door
        match SAME_AS.get(name, name):
            case "zeros" | "ones" | "empty" | "full" as kind:
                value, default = self._constant(kind, arguments)
                dtype, order = self._dtype(arguments, default), arguments.get("order")
                lies = "C" if order is None else door.text(order) or "?"
                return door.fill(value, door.shape(first), dtype, lies)
            case "eye":
                rows, columns = door.size(first, "N"), arguments.get("M")
                across = rows
                if columns is not None and not door.is_none(columns):
                    across = door.size(columns, "M")
                k = 0 if "k" not in arguments else door.integer(arguments["k"])
                if k is None:
                    raise NotUnderstood("np.eye of a diagonal that is not written out")
                filled = f"eye {k}" if k else "eye"
                return door.fill(filled, (rows, across), self._dtype(arguments, "float64"), "C")
            case "arange":
                return self._arange(first, arguments)
            case "linspace":
                for end in (first, self._required(arguments, "stop", name)):
                    if door.type_of(door.value(end)).extents:
                        raise NotUnderstood("np.linspace between arrays")
                count = arguments.get("num")
                extent = num(50) if count is None else door.size(count, "num")
                if not self._is_false(arguments.get("retstep")):
                    raise NotUnderstood("np.linspace that returns its step too")
                names = ("stop", "num", "endpoint")
                of = (first, *(arguments[one] for one in names if one in arguments))
                dtype = self._dtype(arguments, "float64")
                return door.vector(Fill(name, (), dtype, of=tuple(map(door.value, of))), extent)
        node = arguments.get("axis")
        axis = 0 if node is None else door.integer(node)
        if axis is None or not self._is_none(arguments.get("dtype")):
            raise NotUnderstood(f"np.{name} along an axis, or of a type, that is not known")
        return door.joined(SAME_AS.get(name, name), first, axis)

    def _arange(self, first: A, arguments: Mapping[str, A]) -> Value:
        door = self.door
        bounds = [first, *(arguments[one] for one in ("stop", "step") if one in arguments)]
        if "step" in arguments and len(bounds) < 3:
            raise NotUnderstood("np.arange of a step without an end")
        types = [door.type_of(door.value(bound)) for bound in bounds]
        if any(found.extents for found in types):
            raise NotUnderstood("np.arange between arrays")
        whole = all(_is_whole(found.dtype) for found in types)
        known = all(found.dtype != UNKNOWN_DTYPE for found in types)
        dtype = self._dtype(
            arguments, ("int64" if whole else "float64") if known else UNKNOWN_DTYPE
        )
        made = Fill("arange", (), dtype, of=tuple(map(door.value, bounds)))
        if not whole and None in map(door.integer, bounds):
            # what is rounded may come to one more, as it does in NumPy
            return door.vector(made, counted(made.of))
        ends = [door.size(bound, f"bound{k}") for k, bound in enumerate(bounds)]
        if len(ends) == 1:
            return door.vector(Fill("arange", (), dtype), ends[0])
        extent = ends[1] - ends[0]
        if len(ends) == 2 or ends[2] == ONE:
            return door.vector(Fill("arange", (), dtype, ends[0]), extent)
        count = None if ends[2] == ZERO else ceil(extent / ends[2])
        return door.vector(made, count)

    # arguments ---------------------------------------------------------------------------

    def _is_none(self, argument: A | None) -> bool:
        return argument is None or self.door.is_none(argument)

    def _is_false(self, argument: A | None) -> bool:
        if argument is None:
            return True
        found = self.door.written(argument)
        if found not in ("True", "False"):
            raise NotUnderstood("a truth value that is not written out")
        return found == "False"

    def _required(self, arguments: Mapping[str, A], parameter: str, name: str) -> A:
        if parameter not in arguments:
            raise NotUnderstood(f"`{name}` without `{parameter}`")
        return arguments[parameter]

    def _array(self, arguments: Mapping[str, A], parameter: str, name: str) -> Value:
        return self.door.array(self._required(arguments, parameter, name), name)

    def _dtype(self, arguments: Mapping[str, A], default: str | None) -> str:
        wanted = arguments.get("dtype")
        if wanted is not None and not self.door.is_none(wanted):
            return self.door.dtype(wanted)
        if default is None:
            raise NotUnderstood("an element type that is not stated")
        return default

    def _constant(self, name: str, arguments: Mapping[str, A]) -> tuple[str, str]:
        if name != "full":
            return _FILLED[name], "float64"
        return self.door.constant(self._required(arguments, "fill_value", name))

    def _axis(self, argument: A | None, dimensions: int, name: str) -> int:
        """Return an axis counted from the first; it may be left out for a vector."""
        if argument is None and dimensions == 1:
            return 0
        number = None if argument is None else self.door.integer(argument)
        if number is None or not -dimensions <= number < dimensions:
            raise NotUnderstood(f"the axis of `{name}` is not a literal of a {dimensions}-d array")
        return number % dimensions

    def _axes(self, argument: A | None, dimensions: int, name: str) -> tuple[int, ...] | None:
        """Return axes in order; None where none is stated."""
        if argument is None or self.door.is_none(argument):
            return None
        items = self.door.items(argument)
        axes = [
            self._axis(one, dimensions, name) for one in ([argument] if items is None else items)
        ]
        if len(set(axes)) != len(axes) or not axes:
            raise NotUnderstood("along no axis, or along one twice")
        return tuple(sorted(axes))

    def _last_axis(self, arguments: Mapping[str, A], operand: Value, name: str) -> int:
        dimensions, axis = self._dimensions(operand), arguments.get("axis")
        if not dimensions:
            raise NotUnderstood(f"np.{name} of a number")
        return dimensions - 1 if axis is None else self._axis(axis, dimensions, name)

    def _dimensions(self, value: Value) -> int:
        return len(self.door.type_of(value).extents)

    # reductions --------------------------------------------------------------------------

    def _reduction(self, name: str, operand: Value, arguments: Mapping[str, A]) -> Value:
        door, found, row = self.door, self.door.type_of(operand), REDUCTIONS[name]
        axes = self._axes(arguments.get("axis"), len(found.extents), name)
        kept = not self._is_false(arguments.get("keepdims"))
        usual = reduced_dtype(row.result, found.dtype)
        dtype = self._dtype(arguments, usual)

        def along(value: Value, operation: str) -> Value:
            return self._reduced(value, axes, kept, operation, dtype)

        if "method" in arguments or not self._is_false(arguments.get("overwrite_input")):
            raise NotUnderstood(f"np.{name} by a method of its own, or that changes its operand")
        if row.operation == "unpriced":
            options = (
                door.constant(self._required(arguments, "q", name))[0] if "q" in arguments else ""
            )
            if dtype != usual:
                raise NotUnderstood(f"np.{name} of an element type of its own")
            return self._along(name, operand, axes, kept, options, dtype)
        match name:
            case "linalg.norm":
                return self._norm(operand, arguments, axes, kept)
            case "ptp":
                ends = along(operand, "maximum"), along(operand, "minimum")
                return door.made(Elementwise("subtract", ends))
            case "var" | "std":
                mean = self._reduced(operand, axes, axes is not None, "mean", dtype)
                # over fewer than all of them, or of complex numbers, it is not their mean
                plain = not {"ddof", "correction"} & arguments.keys() and found.dtype == dtype
                squares = Elementwise("square", (Elementwise("subtract", (operand, mean)),))
                made = along(squares, "mean" if plain else "spread")
                made = Elementwise("sqrt", (made,)) if name == "std" else made
                less = next(
                    (arguments[one] for one in ("ddof", "correction") if one in arguments), None
                )
                freedom = 0 if less is None else door.integer(less)
                if freedom is None or "dtype" in arguments:
                    return door.made(made)
                options = f"ddof={freedom}" if freedom else ""
                return self._along(name, operand, axes, kept, options, dtype, made)
        if name in ("argmax", "argmin") and axes is not None and len(axes) > 1:
            raise NotUnderstood("a place along several axes")
        made = along(operand, row.operation)
        if self.called and isinstance(made, Reduction):
            # what only looks for a place is as quick by either
            made = replace(made, called=row.result != "place")
        made = door.made(made)
        if "initial" in arguments:
            if found.dtype == "bool":
                raise NotUnderstood("truth values compared with a number")
            return self._applied(row.operation, made, door.value(arguments["initial"]))
        return made

    def _reduced(
        self, operand: Value, axes: tuple[int, ...] | None, kept: bool, operation: str, dtype: str
    ) -> Value:
        """Return a reduction, however many axes, that is not made yet."""
        dimensions = self._dimensions(operand)
        if axes is None and kept:
            axes = tuple(range(dimensions))
        if axes is None or (len(axes) == dimensions > 1 and not kept):
            return Reduction(operand, None, operation, dtype)
        for axis in reversed(axes):
            operand = Reduction(operand, axis, operation, dtype)
        for axis in axes if kept else ():
            operand = Expand(operand, axis)
        return operand

    def _norm(
        self, operand: Value, arguments: Mapping[str, A], axes: tuple[int, ...] | None, kept: bool
    ) -> Value:
        door, found, order = self.door, self.door.type_of(operand), arguments.get("ord")
        dtype = reduced_dtype("spread", found.dtype)
        if dtype == UNKNOWN_DTYPE:
            raise NotUnderstood("elements of unknown type")
        if order is not None and not door.is_none(order):
            if door.integer(order) != 2:
                raise NotUnderstood("a norm other than the Euclidean one")
            if len(found.extents) != 1:
                raise NotUnderstood("the spectral norm of a matrix")
        real = found.dtype == dtype and not door.may_be_complex(operand)
        if axes is None and not kept and real:
            # all of them go through one product
            products = Elementwise("multiply", (operand, operand))
            total = Reduction(products, None, "add", dtype, fused=True)
            return door.made(Elementwise("sqrt", (total,)))
        squares = Elementwise("square", (operand,))
        # the squares of complex numbers are not what is summed
        operation = "add" if found.dtype == dtype else "spread"
        made = Elementwise("sqrt", (self._reduced(squares, axes, kept, operation, dtype),))
        return self._along("linalg.norm", operand, axes, kept, "", dtype, made)

    def _along(
        self,
        name: str,
        operand: Value,
        axes: tuple[int, ...] | None,
        kept: bool,
        options: str,
        dtype: str,
        computed: Value | None = None,
    ) -> Value:
        """Return a function along axes; what sorts or looks for NaN is priced as what does so."""
        every = tuple(range(self._dimensions(operand))) if axes is None else axes
        if computed is not None:
            return self.door.made(Along(name, operand, every, kept, options, computed))
        inner, by = operand, "add"
        if name.startswith("nan"):
            nan = Elementwise("isnan", (operand,))
            inner = Elementwise("where", (nan, Scalar("0", PYTHON_INTEGER), operand))
            by = REDUCTIONS[name.removeprefix("nan")].operation
        else:
            inner = Sort(operand, every[-1])
        for axis in reversed(every):
            inner = Reduction(inner, axis, by, dtype)
        for axis in every if kept else ():
            inner = Expand(inner, axis)
        return self.door.made(Along(name, operand, every, kept, options, inner, exact=False))

    def _scan(self, name: str, operand: Value, arguments: Mapping[str, A]) -> Value:
        door, found, row = self.door, self.door.type_of(operand), SCANS[name]
        dtype = self._dtype(arguments, reduced_dtype(row.result, found.dtype))
        if name.endswith(".accumulate") and "axis" not in arguments:
            return door.made(Scan(operand, 0, row.operation, dtype))
        if self._is_none(arguments.get("axis")) and len(found.extents) != 1:
            operand, axis = door.flat(operand), 0
        else:
            given = None if self._is_none(arguments.get("axis")) else arguments["axis"]
            axis = self._axis(given, len(found.extents), name)
        return door.made(Scan(operand, axis, row.operation, dtype))

    # products ----------------------------------------------------------------------------

    def _multiplied(self, name: str, left: Value, right: Value) -> Value:
        ranks = self._dimensions(left), self._dimensions(right)
        if name == "outer" and ranks == (1, 1):
            sides = Expand(left, 1), Expand(right, 0)
            return self._applied("multiply", *map(self.door.made, sides))
        if name == "outer":
            raise NotUnderstood("np.outer of something other than two vectors")
        if name == "vdot":
            left = self._applied("conjugate", left) if self.door.may_be_complex(left) else left
            return self._summed(left, right, None)
        if name == "inner" and ranks[1] == 2:
            right = self.door.made(Transpose(right, (1, 0)))
        return self.product(left, right)

    def product(self, left: Value, right: Value) -> Value:
        """Return the product of two matrices, of a matrix and a vector, or of two vectors.

        A product with a vector is a sum of products along one axis: where that axis is
        distributed, each rank sums its part.
        """
        match self._dimensions(left), self._dimensions(right):
            case 2, 1:
                return self._summed(left, Expand(right, 0), 1)
            case 1, 2:
                return self._summed(Expand(left, 1), right, 0)
            case 1, 1:
                return self._summed(left, right, None)
        return self.door.made(MatMul(left, right))

    def _summed(self, left: Value, right: Value, axis: int | None) -> Value:
        sides = (side.operand if isinstance(side, Expand) else side for side in (left, right))
        dtype = promote(*(self.door.type_of(side).dtype for side in sides))
        products = Elementwise("multiply", (left, right))
        return self.door.made(Reduction(products, axis, "add", dtype, fused=True))

    def _einsum(self, given: Sequence[Given[A]]) -> Value:
        """Return the value of ``np.einsum("ij,jk->ik", a, b)`` and its like.

        Raises
        ------
        NotUnderstood
            For one along a diagonal, or of one array, of which it may make a view.
        """
        door = self.door
        values = [one.value for one in given if not one.keyword]
        named = {one.keyword: one.value for one in given if one.keyword}
        if len(values) < 3 or any(one.star for one in given):
            raise NotUnderstood("np.einsum of something other than two arrays or more")
        text = door.text(values[0])
        if text is None or named.keys() - {"optimize"}:
            raise NotUnderstood("np.einsum with other arguments than subscripts and arrays")
        operands, arrow, result = text.replace(" ", "").partition("->")
        axes = operands.split(",")
        if not arrow:
            once = (one for one in {*operands} - {","} if operands.count(one) == 1)
            result = "".join(sorted(once))
        arrays = tuple(door.array(value, "einsum") for value in values[1:])
        types = [door.type_of(value) for value in arrays]
        if any(len({*one}) != len(one) for one in (*axes, result)):
            raise NotUnderstood("np.einsum along a diagonal")
        try:
            letters = _fitted(Form(tuple(axes), ()), [one.extents for one in types])
        except ShapeConflict as conflict:
            raise door.misfit(conflict) from conflict
        if letters is None:
            raise NotUnderstood("np.einsum whose subscripts do not fit its arrays")
        optimized = "optimize" in named and not self._is_false(named["optimize"])
        of_matrices = optimized or door.shares_out()
        known = self._product_of(axes, result, arrays, of_matrices) if len(arrays) == 2 else None
        if known is not None:
            return known
        stated = (("subscripts", f"{operands}->{result}"), ("optimize", str(optimized)))
        dtype = reduce(promote, (one.dtype for one in types))
        shape = self._extents(tuple(result), letters, {})
        return door.made(Called("einsum", arrays, shape, dtype, stated))

    def _product_of(
        self, axes: Sequence[str], result: str, arrays: tuple[Value, ...], of_matrices: bool
    ) -> Value | None:
        """Return a contraction of two arrays as another operation; None for any other.

        It does not multiply matrices as `matmul` does unless it is told to. Of what ranks share
        out that is what has a price.
        """
        door, (one, two), (left, right) = self.door, axes, arrays
        shared = set(one) & set(two)
        of_matrices &= max(len(one), len(two)) <= 2
        if of_matrices and len(shared) == 1 and not shared & set(result):
            kept = "".join(axis for axis in one + two if axis not in shared)
            if sorted(kept) == sorted(result):
                # the axis that both have is the last of the one and the first of the other
                if len(one) == 2 and one[1] not in shared:
                    left = door.made(Transpose(left, (1, 0)))
                if len(two) == 2 and two[0] not in shared:
                    right = door.made(Transpose(right, (1, 0)))
                made = self.product(left, right)
                return made if kept == result else door.made(Transpose(made, (1, 0)))
        if one == two and result == one:
            return self._applied("multiply", left, right)
        if one == two and not result:
            return self._summed(left, right, None)
        return None

    # others ------------------------------------------------------------------------------

    def _transposed(self, operand: Value, given: Sequence[A]) -> Value:
        dimensions = self._dimensions(operand)
        axes: Sequence[A] | None = given
        if len(given) == 1:
            axes = () if self.door.is_none(given[0]) else self.door.items(given[0])
        if axes is None:
            raise NotUnderstood("the axes of a transposition are no literal tuple")
        order = tuple(self._axis(axis, dimensions, "transpose") for axis in axes)
        if order and sorted(order) != list(range(dimensions)):
            raise NotUnderstood("the axes of a transposition are no permutation")
        return self.door.made(Transpose(operand, order or tuple(reversed(range(dimensions)))))

    def _clipped(self, operand: Value, arguments: Mapping[str, A]) -> Value:
        stated: dict[str, Value] = {}
        for name, end in (("maximum", "min"), ("minimum", "max")):
            bound = arguments.get(f"a_{end}", arguments.get(end))
            if bound is not None and not self.door.is_none(bound):
                stated[name] = self.door.value(bound)
        if not stated:
            raise NotUnderstood("a clip without bounds")
        name = "clip" if len(stated) == 2 else next(iter(stated))
        return self._applied(name, operand, *stated.values())

    def _rounded(self, operand: Value, arguments: Mapping[str, A]) -> Value:
        decimals, found = arguments.get("decimals"), self.door.type_of(operand)
        if found.dtype == "bool":
            raise NotUnderstood("rounding of booleans")
        real = kind_of_or_none(found.dtype) in (Kind.FLOATING, Kind.COMPLEX)
        if not real or (decimals is not None and self.door.integer(decimals) != 0):
            stated = tuple((one, self.door.written(arguments[one])) for one in sorted(arguments))
            return self.door.made(Called("round", (operand,), found.extents, found.dtype, stated))
        return self._applied("rint", operand)

    def _difference(self, operand: Value, arguments: Mapping[str, A]) -> Value:
        times = arguments.get("n")
        if times is not None and self.door.integer(times) != 1:
            raise NotUnderstood("np.diff of another order than the first")
        axis = self._last_axis(arguments, operand, "diff")
        found = self.door.type_of(operand)
        ends = self.door.between(operand, axis, 1, 0), self.door.between(operand, axis, 0, 1)
        return self._applied("not_equal" if found.dtype == "bool" else "subtract", *ends)

    def _taken(self, operand: Value, places: Value) -> Value:
        found = self.door.type_of(places)
        if self._dimensions(operand) != 1 or not found.extents:
            raise NotUnderstood("np.take from something other than a vector")
        if kind_of_or_none(found.dtype) is not Kind.INTEGER:
            raise NotUnderstood("np.take at places that are no whole numbers")
        return self.door.made(Gather(operand, places))

    def _windows(self, operand: Value, arguments: Mapping[str, A]) -> Value:
        name = "sliding_window_view"
        shape, rank = self._required(arguments, "window_shape", name), self._dimensions(operand)
        lengths = self.door.items(shape) or (shape,)
        axes = self._axes(arguments.get("axis"), rank, name)
        every = range(rank) if axes is None else axes
        if len(lengths) != len(every):
            raise NotUnderstood("windows of other axes than the array has")
        for axis, one in zip(every, lengths, strict=True):
            operand = self.door.made(Windows(operand, axis, self.door.size(one, "window_shape")))
        return operand

    def _tallied(self, places: Value, arguments: Mapping[str, A]) -> Value:
        found = self.door.type_of(places)
        if len(found.extents) != 1 or kind_of_or_none(found.dtype) is not Kind.INTEGER:
            raise NotUnderstood("np.bincount of something other than a vector of whole numbers")
        # with larger numbers than that the result would be longer, and fit nothing else
        least = self._required(arguments, "minlength", "bincount")
        extent, weights = self.door.size(least, "minlength"), arguments.get("weights")
        if weights is None or self.door.is_none(weights):
            return self.door.made(Tally(places, None, extent, "int64"))
        return self.door.made(
            Tally(places, self.door.array(weights, "bincount"), extent, "float64")
        )

    def _rolled(self, operand: Value, arguments: Mapping[str, A]) -> Value:
        shift, axis = self._required(arguments, "shift", "roll"), arguments.get("axis")
        dimensions, shifts = self._dimensions(operand), self.door.items(shift)
        if shifts is None:
            along = self._axis(axis, dimensions, "roll")
            return self.door.made(Roll(operand, along, self.door.size(shift, "shift")))
        axes = None if axis is None else self.door.items(axis)
        if axes is None or len(axes) != len(shifts) or not shifts:
            raise NotUnderstood("np.roll whose shifts and axes are not written out side by side")
        for one, along_one in zip(shifts, axes, strict=True):
            amount = self.door.size(one, "shift")
            operand = self.door.made(
                Roll(operand, self._axis(along_one, dimensions, "roll"), amount)
            )
        return operand

    def _padded(self, operand: Value, arguments: Mapping[str, A]) -> Value:
        given, door = operand, self.door
        if door.text(self._required(arguments, "mode", "pad")) != "wrap":
            raise NotUnderstood("np.pad other than mode='wrap'")
        widths = door.items(self._required(arguments, "pad_width", "pad")) or ()
        pairs = [door.items(width) or () for width in widths]
        if len(pairs) != self._dimensions(operand) or any(len(pair) != 2 for pair in pairs):
            raise NotUnderstood("np.pad whose widths are not written out by dimension")
        for axis, pair in enumerate(pairs):
            before, after = (door.size(part, "width") for part in pair)
            if before != ZERO or after != ZERO:
                operand = door.made(PeriodicPad(operand, axis, before, after))
        return door.copy(given, "", "C", always=True) if operand is given else operand

    def _fourier(self, name: str, operand: Value, arguments: Mapping[str, A]) -> Value:
        """Return Fourier transforms along one axis or several, the last one first."""
        door, found = self.door, self.door.type_of(operand)
        if not self._is_none(arguments.get("n")) or not self._is_none(arguments.get("s")):
            raise NotUnderstood("a Fourier transform of another length")
        if found.dtype in (UNKNOWN_DTYPE, "float16", "float32", "complex64"):
            # NumPy 2 keeps single precision, NumPy 1 does not
            raise NotUnderstood("a Fourier transform in single precision, or of unknown type")
        dimensions = len(found.extents)
        if name.endswith(("2", "n")):
            given = arguments.get("axes")
            axes = tuple(range(dimensions)[-2:] if name[-1] == "2" else range(dimensions))
            if given is not None and not door.is_none(given):
                items = door.items(given)
                if not items:
                    raise NotUnderstood(f"the axes of `{name}` are not written out")
                axes = tuple(self._axis(item, dimensions, name) for item in items)
            if name[-1] == "2" and len(axes) < 2:
                raise NotUnderstood(f"np.fft.{name} of a vector")
        else:
            axes = (self._last_axis(arguments, operand, name),)
        one = name.rstrip("2n")
        # the half that transforms of real numbers leave away is that of the last axis
        steps = [
            (one if k == 0 else one.replace("rfft", "fft"), axis)
            for k, axis in enumerate(reversed(axes))
        ]
        for kind, axis in reversed(steps) if one == "irfft" else steps:
            if "rfft" in kind:
                shape = transformed(kind, door.type_of(operand).extents, axis)
                dtype = "float64" if kind == "irfft" else "complex128"
                stated = (("axis", str(axis)),)
                operand = door.made(Called(f"fft.{kind}", (operand,), shape, dtype, stated))
            else:
                operand = door.made(Fourier(operand, axis, "complex128", kind == "ifft"))
        return operand


def counted(bounds: Sequence[Value]) -> Expr | None:
    """Return how many numbers np.arange makes, where all that it is given is written out."""
    try:
        ends = [float(one.text) if isinstance(one, Scalar) else math.nan for one in bounds]
        start, stop, step = [0.0, *ends, 1.0] if len(ends) == 1 else [*ends, 1.0][:3]
        return num(max(0, math.ceil((stop - start) / step)))
    except (ArithmeticError, ValueError):
        return None


MADE_OF_NUMBERS = frozenset({"zeros", "ones", "empty", "full", "eye", "arange", "linspace"})
VIEWS = frozenset({"transpose", "swapaxes", "moveaxis", "rollaxis", "flip"})
_MADE_OF = MADE_OF_NUMBERS | {"concatenate", "hstack", "vstack", "column_stack", "stack"}


_DEFAULTS = {"bins": num(10), "num": num(50)}


def _only(results: tuple[Value, ...], name: str) -> Value:
    if len(results) > 1:
        raise NotUnderstood(f"the results of np.{name} in one")
    return results[0]


def _fitted(form: Form, shapes: Sequence[Shape]) -> dict[str, Expr | Shape] | None:
    """Return what the letters of a form stand for; None where shapes do not fit it.

    Raises
    ------
    ShapeConflict
        They do if extents are equal.
    """
    if len(form.operands) != len(shapes):
        return None
    found: dict[str, Expr] = {}
    free: list[Shape] = []
    for letters, shape in zip(form.operands, shapes, strict=True):
        if letters == "any":
            continue
        if letters == "...":
            free.append(shape)
            continue
        letters = letters.strip(".")
        if len(letters) != len(shape):
            return None
        for letter, extent in zip(letters, shape, strict=True):
            if (known := found.setdefault(letter, extent)) != extent:
                text = f"axes of {to_text(known)} and {to_text(extent)} elements"
                raise ShapeConflict(text, known, extent)
    counted = {"count": count_of(shapes[0])} if shapes else {}
    return {**found, **counted, "...": broadcast(free)}


def _is_whole(dtype: str) -> bool:
    return dtype == PYTHON_INTEGER or (
        dtype != PYTHON_FLOAT and kind_of_or_none(dtype) in (Kind.INTEGER, Kind.BOOLEAN)
    )
