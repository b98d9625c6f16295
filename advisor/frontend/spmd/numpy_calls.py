"""NumPy's functions and members of arrays: those that hang on memory, and who reads others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from advisor.frontend.calls import MADE_OF_NUMBERS, METHODS, VIEWS, Calls
from advisor.frontend.scope import Given
from advisor.frontend.spmd.door import ProgramDoor, of_numbers
from advisor.frontend.spmd.numpy_created import BY_KEYWORD, dtype_name, stated_dtype
from advisor.frontend.spmd.subscripts import subscript
from advisor.frontend.spmd.values import (
    Argument,
    Arguments,
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Slice,
    Text,
    Value,
)
from advisor.frontend.trees import NotUnderstood
from advisor.ir.spmd.memory import Order, Origin, View
from advisor.ir.spmd.program import RANK
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.ir.values import Scalar
from advisor.numpy_functions import FUNCTIONS, SIZE_AT
from advisor.numpy_table import (
    COPIES,
    ELEMENTWISE,
    PARAMETERS,
    PYTHON_FLOAT,
    REDUCTIONS,
    ROWS,
    SAME_AS,
    UNKNOWN_DTYPE,
    dtype_of,
    is_dtype,
    reduced_dtype,
    result_dtype,
)
from costdb.expr import ceil_div, num, sym
from costdb.records import dataclass, replace

CONSTANTS = frozenset({"numpy.pi", "numpy.e", "numpy.inf", "numpy.nan"})
_OF_FILES = frozenset({"save", "savetxt", "savez", "set_printoptions", "seterr"})
_OF_ARRAYS = frozenset({"real", "imag", "shape", "size", "reshape", "ravel"})
"""Functions that are attributes or methods of their first argument."""
_OF_LISTS = frozenset({"asanyarray", *COPIES} - {"astype"})


@dataclass(frozen=True, slots=True)
class NumPy(ProgramDoor):
    """Reads what NumPy's functions, and attributes and methods of arrays, denote and do."""

    def attribute(self, view: View, name: str) -> Value | None:
        """Return what an attribute of an array that is no method denotes."""
        shape, count = view.shape, view.count
        match name:
            case "T":
                return self.permuted(view, tuple(range(len(shape or ())))[::-1])
            case "shape" if shape is not None:
                return Sequence(tuple(Number(extent) for extent in shape), is_list=False)
            case "shape":
                why = f"the shape of `{view.text}` is not known"
                return Opaque(why, text=f"{view.buffer.name}.shape")
            case "size" if count is None:
                why = f"the size of `{view.text}` is not known"
                return Number(self.run.symbols.unknown(f"{view.buffer.name}.size", why, None))
            case "size":
                return Number(count)
            case "ndim":
                return Opaque("its dimensions") if shape is None else Number(num(len(shape)))
            case "itemsize":
                return Number(num(_itemsize(view)))
            case "nbytes":
                return Number(None if count is None else count * _itemsize(view))
            case "dtype":
                known = view.dtype
                return External(f"numpy.{known}") if known else Opaque("its element type")
            case "imag" if view.dtype is not None and not view.dtype.startswith("complex"):
                return self.allocated(view.dtype, shape)
            case "real" | "imag":
                known = None if view.dtype is None else result_dtype("absolute", (view.dtype,))
                return self._as_type(view, known)
            case "flat" | "flags" | "data" | "base" | "strides" | "ctypes":
                return Opaque(f"`.{name}` of an array", foreign=True)
        return None

    def _as_type(self, view: View, dtype: str | None) -> Value:
        """Return an array's memory as elements of another type, or as parts of each element."""
        buffer = view.buffer
        if dtype != view.dtype:
            made = replace(buffer.allocation, within=buffer)
            buffer = replace(buffer, dtype=dtype, extents=None, allocation=made)
        return Array(View(buffer, None, self.source, self.span))

    def member(self, view: View, name: str, arguments: Arguments) -> Value:
        """Return what a method of an array gives."""
        match name:
            case "flatten" | "ravel":
                order = arguments.at(0, "order")
                return self.flattened(view, copies=name == "flatten", order=order)
            case "reshape":
                shape = arguments.keyword("shape") or arguments.keyword("newshape")
                extents, order = arguments.values(), arguments.keyword("order")
                if extents and isinstance(extents[-1], Text):
                    order = extents.pop()
                return self.reshaped(view, extents if shape is None else [shape], order)
            case "tolist":
                self.run.emit(Compute(None, (view,), None, self.span, "tolist"))
                return Sequence(None, Number(None, _python_number(view.dtype)), view.count)
            case "fill":
                self.run.emit(Compute(view, (), Scalar("?", PYTHON_FLOAT), self.span))
                return Nothing()
            case "sort":
                place, text = self.span, view.text
                given = [Argument(Array(view), to, place, place, text) for to in (None, "out")]
                self.called("sort", None, Arguments((given[0], *arguments.all, given[1])))
                return Nothing()
            case "resize":
                self.run.reshaped(view)
                return Nothing()
            case "item":
                return Number(None, _python_number(view.dtype), varies=True)
            case "squeeze":
                return self.seen(view, transposed=False, flat=True, shown=None)
            case "view":
                return self._as_type(view, dtype_name(arguments.at(0, "dtype")))
        if name in METHODS:
            return self.called(name, Array(view), arguments)
        self.run.emit(Compute(None, (view,), None, self.span, "call"))
        if name in ("tobytes", "tostring"):
            return Text(None)
        return Opaque(f"the result of `.{name}()` is not known")

    def call(self, name: str, arguments: Arguments) -> Value:
        """Return what a function of NumPy gives, by its name below ``numpy``."""
        first = arguments.at(0)
        match first:
            case Array(view) if name in _OF_ARRAYS:
                found = self.attribute(view, name)
                return found or self.member(view, name, arguments.behind(1))
            case Number() if name in _OF_ARRAYS:
                return of_numbers(name, [first], self.run)
        if name in _OF_ARRAYS:
            return Opaque(f"numpy.{name} of no array")
        if name in _HANDLERS and not (name == "append" and isinstance(first, Array)):
            return _HANDLERS[name](self, arguments)
        if name in _OF_LISTS and not isinstance(first, Array):
            return self.listed(arguments.at(0, "object", "a"), arguments)
        if name.startswith("random."):
            return self.random(name.removeprefix("random."), arguments)
        if is_dtype(name):
            return self._converted(name, first)
        if name in _OF_FILES:
            self.run.unknown(f"the time of numpy.{name} is not known", self.span)
            return Nothing()
        if name.startswith("testing."):
            return Nothing()
        return self.called(name, None, arguments)

    def _converted(self, name: str, first: Value | None) -> Value:
        """Return a value converted to an element type."""
        dtype = dtype_name(Text(name)) or "float"
        match first:
            case Array(view):
                return self.copied(view, view.order, dtype=dtype)
            case Number():
                return replace(first, dtype=dtype)
            case Opaque():
                return Number(first.expr, dtype, varies=first.varies)
        return Number(None, dtype)

    def copyto(self, arguments: Arguments) -> Value:
        """Note that elements of an array are stored in another."""
        target, source = arguments.at(0), arguments.at(1)
        if isinstance(target, Array) and isinstance(source, Array):
            self.run.emit(Copy(target.view, source.view, self.span))
        return Nothing()

    def split(self, arguments: Arguments, unlike: int = 0) -> Value:
        """Return the parts of an array that is split along its first axis.

        ``split`` makes all of one length; of ``array_split`` the first ones may be longer by one.
        """
        source, sections, run = arguments.at(0), arguments.at(1), self.run
        if not isinstance(source, Array):
            return Opaque("the parts of something that is not known to be an array")
        count = run.number(sections, "parts")
        shape = source.view.shape
        if count is None or shape is None or arguments.keyword("axis") is not None:
            part = View(source.view.buffer, None, source.view.text, self.span)
            return Sequence(None, Array(part), count)
        longest = ceil_div(shape[0] - unlike * sym(RANK), count)
        first = Slice(Nothing(), Number(longest), Nothing())
        return Sequence(None, subscript(source, first, run, self.span, self.source), count)

    def unique(self, arguments: Arguments) -> Value:
        """Return the values of an array, each once."""
        given = arguments.at(0)
        if len(arguments.all) > 1 or not isinstance(given, Array):
            return Opaque("the result of numpy.unique is not known")
        return self.allocated(given.view.dtype, (self.unknown_length(varies=True),))

    def nonzero(self, arguments: Arguments) -> Value:
        """Return the places along each axis where something holds."""
        given = arguments.at(0)
        shape = given.view.shape if isinstance(given, Array) else None
        if len(arguments.all) > 1:
            return self.called("where", None, arguments)
        if shape is None:
            return Opaque("the places of something whose shape is not known")
        length = self.unknown_length(varies=True)
        return Sequence(tuple(self.allocated("int64", (length,)) for _ in shape), is_list=False)

    def called(self, name: str, owner: Array | None, arguments: Arguments) -> Value:
        """Return what a function gives, or a method of an owner, and note the steps that it takes.

        Where the table does not tell that, as much is told as is known.
        """
        steps = self.run.steps[-1]
        noted, out, given = len(steps), arguments.keyword("out"), arguments.all
        if name in ELEMENTWISE and len(arguments.positional) > ROWS[ELEMENTWISE[name]].operands:
            out, given = arguments.positional[-1].value, given[:-1]
        given_ = given_to(a for a in given if a.keyword != "out")
        calls = Calls(self)
        try:
            if owner is not None:
                made = calls.method(name, self.value(owner), given_)
            elif len(getattr(FUNCTIONS.get(name), "dtypes", ())) > 1:
                results = calls.several(name, given_)
                if len(results) > 1:
                    return Sequence(tuple(map(self.behind, results)), is_list=False)
                made = results[0]
            else:
                made = calls.function(name, given_)
            found = self.behind(made)
            if not isinstance(out, Array):
                return found
            if isinstance(found, Array):
                return self._stored(found.view, out.view)
        except NotUnderstood:
            pass
        del steps[noted:]
        return self._of_unknown_shape(SAME_AS.get(name, name), owner, arguments)

    def gone_through(self, name: str, values: list[Value]) -> Value | None:
        """Return what a function of Python's makes of a vector's elements; None if nobody knows."""
        if len(values) != 1 or f"builtins.{name}" not in FUNCTIONS:
            return None
        try:
            made = self.behind(Calls(self).of_python(name, self.value(values[0])))
        except NotUnderstood:
            return None
        if isinstance(made, Array):
            # a list
            return Sequence(None, Number(None, "float"), made.view.count)
        return made

    def _of_unknown_shape(self, name: str, owner: Array | None, arguments: Arguments) -> Value:
        first, run = owner or arguments.at(0), self.run
        row, dtype = REDUCTIONS.get(name), stated_dtype(arguments, BY_KEYWORD, None)
        arrays = any(isinstance(value, Array) for value in arguments.values())
        if name in ELEMENTWISE and not any(isinstance(one.value, Array) for one in arguments.all):
            return Opaque(f"numpy.{name} of something that is not followed")
        if name.endswith("_like") or (name in MADE_OF_NUMBERS and not arrays):
            view = self.fresh(dtype, None, order=Order.UNKNOWN)
            run.emit(Allocate(view.buffer, self.span))
            return Array(view)
        of_all = not {"axis", "keepdims", "where", "out"} & arguments.keywords.keys()
        of_all = of_all and row is not None and len(arguments.positional) <= (owner is None)
        if of_all and isinstance(first, Opaque):
            run.emit(Compute(None, (), None, self.span, "call"))
            return Number(None, dtype or UNKNOWN_DTYPE, varies=True)
        if not isinstance(first, Array) or name not in PARAMETERS:
            return self.unknown_function(name, arguments)
        view = first.view
        if of_all and row is not None:
            found = dtype or reduced_dtype(row.result, view.dtype or UNKNOWN_DTYPE)
            run.emit(Compute(None, (view,), None, self.span))
            return Number(None, "float" if found == UNKNOWN_DTYPE else found, varies=True)
        if name in VIEWS:
            return Array(View(view.buffer, None, self.source, self.span))
        made = self.fresh(None, None, Origin.COMPUTED, sources=(view,))
        run.emit(Compute(made, (view,), None, self.span, "call", allocates=True))
        return Array(made)

    def _stored(self, made: View, out: View) -> Array:
        """Return an array that is stored in ``out=``, as the last step that makes it is."""
        if len({shape for shape in (out.shape, made.shape) if shape is not None}) > 1:
            raise NotUnderstood("`out=` of another shape")
        run = self.run
        last = run.steps[-1][-1] if run.steps[-1] else None
        if isinstance(last, Compute) and last.target == made:
            run.frame.buffers.pop((made.buffer.name, made.buffer.number), None)
            run.steps[-1][-1] = replace(last, target=out, allocates=False)
        else:
            run.emit(Copy(out, made, made.span))
        return Array(out)

    def random(self, name: str, arguments: Arguments) -> Value:
        """Return what a function of ``numpy.random`` gives, or a method of its generators."""
        match name:
            case "default_rng" | "RandomState":
                return External("numpy.random")
            case "seed" | "shuffle":
                return Nothing()
        try:
            drawn = Calls(self).drawn(name, given_to(arguments.all))
        except NotUnderstood:
            unknown = self.unknown_function(name, arguments)
            return self.allocated(None, None) if name in SIZE_AT else unknown
        dtype = None if drawn.dtype == UNKNOWN_DTYPE else drawn.dtype
        if drawn.shape or "size" in arguments.keywords:
            return self.allocated(dtype, drawn.shape)
        return Number(None, "int" if dtype == "int64" else dtype or "float", varies=True)


def _itemsize(view: View) -> int:
    return dtype_of(view.dtype).itemsize_bytes if view.dtype else 8


def _python_number(dtype: str | None) -> str:
    kind = dtype_of(dtype or "float64").kind.value
    return {"boolean": "bool", "integer": "int", "floating": "float"}.get(kind, "complex")


def _dtype(numpy: NumPy, arguments: Arguments) -> Value:
    name = dtype_name(arguments.at(0, "dtype"))
    unknown = Opaque("an element type that is not known")
    return unknown if name is None else External(f"numpy.{name}")


def given_to(arguments: Iterable[Argument]) -> list[Given[Value]]:
    """Return arguments as the table of functions is asked."""
    return [Given(one.value, one.keyword, bool(one.star)) for one in arguments]


_HANDLERS: dict[str, Callable[[NumPy, Arguments], Value]] = {
    "ndarray": NumPy.over_memory,
    "append": lambda numpy, _: numpy.allocated(None, (numpy.unknown_length(),)),
    "flatnonzero": lambda numpy, _: numpy.allocated("int64", (numpy.unknown_length(),)),
    "unique": NumPy.unique,
    **dict.fromkeys(("nonzero", "where"), NumPy.nonzero),
    "array_split": lambda numpy, given: numpy.split(given, unlike=1),
    "split": NumPy.split,
    "dtype": _dtype,
    "copyto": NumPy.copyto,
    "frombuffer": NumPy.frombuffer,
    "fromstring": NumPy.frombuffer,
    "loadtxt": NumPy.from_file,
    "load": lambda numpy, given: numpy.from_file(given, None),
    "genfromtxt": NumPy.from_file,
    "fromfile": NumPy.from_file,
}
