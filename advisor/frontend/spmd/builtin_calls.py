"""Calls of builtins, of the standard library, and of methods of lists, dictionaries and strings."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.spmd import numpy_calls, windows
from advisor.frontend.spmd.elementwise import number_function
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.iteration import range_value
from advisor.frontend.spmd.joining import as_value, contents, entry, join, keys
from advisor.frontend.spmd.options import PARSER, documented, new_parser, parser_method, sidecar
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    Datatype,
    External,
    Nothing,
    Number,
    Opaque,
    Record,
    Request,
    Sequence,
    Text,
    Value,
    Window,
)
from advisor.ir.spmd.steps import Compute, Leave
from advisor.source import Span
from costdb.expr import Expr, ExprError, ceil_div, floor, floor_div, maximum, minimum, num
from costdb.expr.nodes import Sym

_QUIET_NAMES = """
print isinstance hasattr setattr id repr format callable input open iter next super vars
globals locals type issubclass delattr hash chr ord hex bin
"""
_QUIET = frozenset(_QUIET_NAMES.split())
_GOES_THROUGH = frozenset({"sorted", "list", "tuple", "set", "sum", "min", "max", "any", "all"})
_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.process_time", "timeit.default_timer"})
# nothing of these takes time that matters, or returns anything that does
_HARMLESS = (
    "logging.",
    "sys.stdout.",
    "sys.stderr.",
    "warnings.",
    "gc.",
    "os.path.",
    "pathlib.",
    "datetime.",
    "string.",
)


def call(path: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a function of the standard library, or of an unknown one, gives."""
    values = [a.value for a in given if a.keyword is None and not a.star]
    if path.startswith("builtins."):
        return _builtin(path.removeprefix("builtins."), values, given, run, span)
    if path in ("numba.prange", "numba.misc.special.prange"):
        return range_value(values, run, "prange", span)
    if path in _CLOCKS:
        run.clocks += 1
        return Number(None, "float", varies=True)
    if path in ("sys.exit", "os._exit", "os.abort"):
        run.emit(Leave("exit", span))
        return Nothing()
    if path.startswith("math."):
        return _math(path.removeprefix("math."), values, run)
    if path == PARSER:
        return new_parser(run)
    if path == "docopt.docopt":
        doc = values[0] if values else None
        return (
            documented(doc.value, run, span)
            if isinstance(doc, Text) and doc.value
            else (Opaque("the options of a usage text that is not known"))
        )
    if path in ("json.load", "json.loads") and values and isinstance(values[0], Record):
        return values[0]
    if path == "copy.deepcopy" or path == "copy.copy":
        if values and isinstance(values[0], Array):
            return numpy_calls.method(values[0].view, "copy", [], run, span)
        return values[0] if values else Nothing()
    if path == "functools.partial" or path.startswith(_HARMLESS):
        return Opaque(f"the result of {path}", foreign=True)
    if path.startswith(("time.sleep", "random.")):
        if path == "random.randint" or path == "random.randrange":
            return Number(None, "int", varies=True)
        return Number(None, "float", varies=True)
    if path.startswith("os.environ") or path == "os.getenv":
        return Text(None)
    run.unknown(f"the call of `{path}` is not followed", span)
    for value in values:
        forget(value, run)
    return Opaque(f"the result of `{path}` is not known", foreign=True, varies=True)


def forget(value: Value, run: Run) -> None:
    """Note that something unknown may have changed an object's content."""
    if isinstance(value, Record):
        for key, found in run.entries(value.number):
            if isinstance(found, Number):
                run.kept[value.number, key] = Number(None, found.dtype, varies=found.varies)


def _builtin(name: str, values: list[Value], given: list[Argument], run: Run, span: Span) -> Value:
    first = values[0] if values else None
    if name in _GOES_THROUGH and any(isinstance(value, Array) for value in values):
        run.unknown(f"the time of `{name}` of an array is not known", span)
    match name:
        case "len" if first is not None:
            return _length(first, run)
        case "range" | "xrange":
            return range_value(values, run, "range", span)
        case "enumerate" | "zip" | "reversed" | "sorted" | "list" | "tuple" | "set" | "iter":
            return _container(name, values)
        case "int" | "round" | "float" | "complex" | "bool" | "abs":
            return _number(name, first, run, span)
        case "min" | "max" | "sum" | "pow" | "divmod":
            return _folded(name, values, run, span)
        case "str" | "repr" | "format" | "input":
            return Text(None)
        case "dict":
            made = run.record()
            for argument in given:
                if argument.keyword is not None:
                    run.kept[made.number, argument.keyword] = argument.value
            return made
        case "bytearray" | "bytes" | "memoryview":
            return Text(None)
        case "exit" | "quit":
            run.emit(Leave("exit", span))
            return Nothing()
        case "getattr" if len(values) > 1 and isinstance(values[0], Record):
            key = values[1].value if isinstance(values[1], Text) else None
            return run.entry(values[0].number, key) or Opaque("an attribute by its name")
        case "any" | "all":
            return Number(None, "bool", varies=True)
        case "open" if isinstance(first, Text) and first.value and first.value.endswith(".json"):
            return sidecar(run.file.path, first.value, run, span)
        case "map" if len(values) == 2:
            return _mapped(values[0], values[1])
        case "slice":
            parts = (Nothing(), *values) if len(values) == 1 else tuple(values)
            padded = (*parts, Nothing(), Nothing(), Nothing())[:3]
            return Sequence((External("slice"), *padded), is_list=False)
    if name in _QUIET or name.endswith(("Error", "Exception", "Exit", "Interrupt", "Warning")):
        return Opaque(f"the result of {name}")
    run.unknown(f"the call of `{name}` is not followed", span)
    return Opaque(f"the result of {name}")


def _mapped(function: Value, over: Value) -> Value:
    if isinstance(function, External) and function.path == "builtins.int":
        length = over.length if isinstance(over, Sequence) else None
        return Sequence(None, Number(None), length)
    return Opaque("what map gives")


def _length(value: Value, run: Run) -> Value:
    match value:
        case Array(view):
            shape = view.shape
            if shape:
                return Number(shape[0])
            return Opaque(f"the length of `{view.text}`")
        case Sequence(
            items=(External(path="range" | "prange"), Number() as low, Number() as high, _)
        ):
            if low.expr is not None and high.expr is not None:
                return Number(high.expr - low.expr)
        case Sequence(items=tuple() as items) if not any(isinstance(i, External) for i in items):
            return Number(num(len(items)))
        case Sequence(length=length) if length is not None:
            return Number(length)
        case External(path="sys.argv"):
            return Number(None)
        case Opaque(text=text) if text:
            why = f"the length of `{text}` is not known"
            return Number(run.symbols.unknown(f"{text}.n0", why, None))
    return Number(None)


def _container(name: str, values: list[Value]) -> Value:
    if name in ("enumerate", "zip"):
        return Sequence((External(name), *values), is_list=False)
    first = values[0] if values else Sequence(())
    if isinstance(first, Sequence) and first.items and name in ("list", "tuple"):
        match first.items:
            case (External(path="range"), Number() as low, Number() as high, Number() as step):
                trips = _steps(low, high, step)
                return Sequence(None, Number(None), trips, name != "tuple")
    if isinstance(first, Sequence):
        return Sequence(first.items, first.element, first.length, name != "tuple")
    if isinstance(first, Array):
        shape = first.view.shape
        return Sequence(None, Number(None, "float"), shape[0] if shape else None)
    return Sequence(None, None, None)


def _steps(low: Number, high: Number, step: Number) -> Expr | None:
    if low.expr is None or high.expr is None or step.expr is None:
        return None
    return ceil_div(high.expr - low.expr, step.expr)


def _number(name: str, first: Value | None, run: Run, span: Span) -> Value:
    if first is None:
        return Number(num(0), name)
    if isinstance(first, Array):
        if name == "abs":
            return numpy_calls.call("abs", [_argument(first, span)], run, span)
        return Number(None, name, varies=True)
    dtype = {"round": "int", "abs": getattr(first, "dtype", "float")}.get(name, name)
    value = run.number(first) if isinstance(first, Number | Opaque) else None
    varies = getattr(first, "varies", False)
    if isinstance(first, Text) and first.value is not None and first.value.strip().isdigit():
        value = num(int(first.value))
    if value is None:
        if isinstance(first, Text):
            target = run.targets[0] if run.targets else "number"
            return Number(run.symbols.unknown(target, "read from a text", span), dtype)
        return Number(None, dtype, varies=varies)
    if name == "int" and not _is_whole(first) and not isinstance(value, Sym):
        try:
            value = floor(value)
        except ExprError:
            return Number(None, dtype, varies=varies)
    if name in ("round", "abs", "bool", "complex") and not _is_whole(first):
        return Number(None, dtype, varies=varies)
    nobody = isinstance(first, Number) and first.nobody
    return Number(value, dtype, nobody, varies)


def _is_whole(value: Value) -> bool:
    return isinstance(value, Number) and value.dtype == "int"


def _argument(value: Value, span: Span) -> Argument:
    return Argument(value, None, span, span, "")


def _folded(name: str, values: list[Value], run: Run, span: Span) -> Value:
    if name == "sum" and values and isinstance(values[0], Array):
        view = values[0].view
        run.emit(Compute(None, (view,), view.count, "element", span))
        return Number(None, view.dtype or "float", varies=True)
    if name == "sum" and values and isinstance(values[0], Sequence):
        element = values[0].element or (values[0].items or (None,))[0]
        if isinstance(element, Array):
            return Array(element.view)
        return Number(None, getattr(element, "dtype", "float"), varies=True)
    exprs = [run.number(v) if isinstance(v, Number | Opaque) else None for v in values]
    known = [e for e in exprs if e is not None]
    dtype = "int" if all(_is_whole(v) for v in values) else "float"
    varies = any(getattr(v, "varies", False) for v in values)
    if name in ("min", "max") and len(known) == len(values) > 1:
        return Number(minimum(*known) if name == "min" else maximum(*known), dtype)
    if name == "divmod" and len(known) == 2:
        parts = (Number(floor_div(known[0], known[1])), Number(known[0] % known[1]))
        return Sequence(parts, is_list=False)
    if name == "divmod" and any(isinstance(value, Array) for value in values):
        return Opaque("quotients and remainders of an array")
    if name == "divmod":
        return Sequence((Number(None, varies=varies), Number(None, varies=varies)), is_list=False)
    return Number(None, dtype, varies=varies or not known)


def _math(name: str, values: list[Value], run: Run) -> Value:
    first = values[0] if values else None
    value = run.number(first) if isinstance(first, Number | Opaque) else None
    if value is not None and name in ("floor", "ceil", "sqrt", "log2"):
        made = number_function(name, value)
        return Number(made.expr, "int") if name in ("floor", "ceil") else made
    if name in ("isqrt",) and value is not None:
        root = number_function("sqrt", value).expr
        return Number(None if root is None else floor(root))
    return Number(None, "float", varies=getattr(first, "varies", False))


def method(
    owner: Value,
    name: str,
    given: list[Argument],
    run: Run,
    span: Span,
    target: cst.BaseExpression,
) -> Value:
    """Return what a method of a value gives that is neither array nor communicator."""
    values = [a.value for a in given if a.keyword is None and not a.star]
    match owner:
        case Request():
            return windows.request_method(owner, name, run, span)
        case Window():
            return windows.window_method(owner, name, given, run, span)
        case Datatype():
            return windows.derive(owner, name, values, run, span)
        case Text():
            return _text(owner, name, values)
        case Record() if owner.cls is not None and owner.cls.name == PARSER:
            return parser_method(owner, name, given, run, span)
        case Record():
            return _dictionary(owner, name, values, run)
        case Sequence():
            return _list(owner, name, values, run, target)
    return Opaque(f"the result of `.{name}`")


def _text(owner: Text, name: str, values: list[Value]) -> Value:
    if name in ("split", "splitlines", "rsplit"):
        return Sequence(None, Text(None), None)
    if name in ("isdigit", "startswith", "endswith"):
        return Number(None, "bool")
    if name in ("find", "count", "index"):
        return Number(None)
    return Text(None)


def _dictionary(owner: Record, name: str, values: list[Value], run: Run) -> Value:
    match name:
        case "get" | "pop" | "setdefault" if values:
            default = values[1] if len(values) > 1 else Nothing()
            return entry(owner, values[0], run) or default
        case "values":
            return Sequence(tuple(value for _, value in contents(owner, run)))
        case "keys":
            return keys(owner, run)
        case "items":
            pairs = (
                Sequence((as_value(key), value), is_list=False)
                for key, value in contents(owner, run)
            )
            return Sequence(tuple(pairs))
        case "copy":
            made = run.record()
            for key, value in contents(owner, run):
                run.kept[made.number, key] = value
            return made
    return Opaque(f"the result of `.{name}`")


def _list(
    owner: Sequence, name: str, values: list[Value], run: Run, target: cst.BaseExpression
) -> Value:
    match name:
        case "append" | "add" if values:
            run.rebind(target, _appended(owner, values[0], run, target))
            return Nothing()
        case "extend" if values and isinstance(values[0], Sequence):
            other = values[0]
            known = owner.items is not None and other.items is not None and not run.frame.depth
            items = (*(owner.items or ()), *(other.items or ())) if known else None
            element = owner.element or other.element
            if items is None and element is None:
                element = next(iter((*(owner.items or ()), *(other.items or ()))), None)
            run.rebind(target, Sequence(items, element, None))
            return Nothing()
        case "pop":
            return owner.items[-1] if owner.items else owner.element or Opaque("an element")
        case "index" | "count":
            return Number(None)
        case "copy":
            return owner
    return Nothing()


def _appended(owner: Sequence, value: Value, run: Run, target: cst.BaseExpression) -> Sequence:
    if owner.items is not None and not run.frame.depth and len(owner.items) < 64:
        return Sequence((*owner.items, value))
    known = owner.items or ((owner.element,) if owner.element is not None else ())
    element: Value = value
    for item in known:
        if item is not None:
            element = join(element, item, "element", run)
    length = owner.length
    if owner.items is not None or length is None:
        text = run.spelled(target) or "list"
        length = run.symbols.unknown(f"{text}.len", "the length of a list", None)
    return Sequence(None, element, length)
