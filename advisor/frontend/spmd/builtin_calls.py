"""Calls of builtins and the standard library, its parsers of options too, and their methods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from advisor.frontend.bindings import dotted
from advisor.frontend.spmd import operations
from advisor.frontend.spmd.communicators import derive
from advisor.frontend.spmd.door import of_numbers, operation
from advisor.frontend.spmd.joining import as_value, entry, join_all, key_of, keys, replaced
from advisor.frontend.spmd.numpy_calls import NumPy
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.subscripts import range_value
from advisor.frontend.spmd.values import (
    COMMAND_LINE,
    Arguments,
    Array,
    Class,
    Datatype,
    External,
    Nothing,
    Number,
    Opaque,
    Range,
    Record,
    Request,
    Sequence,
    Slice,
    Text,
    Value,
    Window,
    Zipped,
)
from advisor.ir.spmd.steps import Leave
from advisor.source import Span
from costdb.expr import ExprError, ceil_div, floor, floor_div, maximum, minimum, num
from costdb.expr.nodes import Sym

# Sizes that a program is given from outside: options, comments.


PARSER = "argparse.ArgumentParser"
_MPIRUN = re.compile(
    r"\b(?:mpirun|mpiexec|srun|aprun|jsrun)\b[^\n]*?\s(?:-n|-np|--np|--ntasks|-N)[ =](\d{1,6})\b"
)


def mpirun_ranks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield line numbers and numbers of ranks that comments and texts of a file start it with."""
    for number, line in enumerate(lines, 1):
        if "mpi" in line or "srun" in line or "prun" in line:
            found = _MPIRUN.search(line[:500])
            if found is not None:
                yield number, int(found[1])


def parser_method(parser: Record, name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a method of an argument parser gives."""
    match name:
        case "add_argument":
            found = _named_option(arguments, run, span, short=True)
            if found is not None:
                run.keep(parser.number, *found)
            return Nothing()
        case (
            "add_argument_group"
            | "add_mutually_exclusive_group"
            | "parse_args"
            | "parse_known_args"
        ):
            return parser
        case "set_defaults":
            for key, value in arguments.by_keyword().items():
                run.keep(parser.number, key, value)
            return Nothing()
    return Opaque(f"the result of `.{name}` of a parser", foreign=True)


def _named_option(
    arguments: Arguments, run: Run, span: Span, *, short: bool
) -> tuple[str, Value] | None:
    """Return an option and its name, by the flags that declare it; None where these are unknown."""
    flags = [value.value for value in arguments.values() if isinstance(value, Text) and value.value]
    long = [flag for flag in flags if flag.startswith("--")]
    bare = [flag for flag in flags if not flag.startswith("-")]
    # argparse names an option after its first long flag, click after a name without dashes
    names = [*long, *flags] if short else bare or long
    keywords = arguments.by_keyword()
    stated = keywords.get("dest")
    if isinstance(stated, Text) and stated.value:
        name = stated.value
    elif names:
        name = names[0].lstrip("-").partition("/")[0].replace("-", "_")
    else:
        return None
    shown = (names or [name])[0 if short else -1]
    return name, option(name, shown, keywords, run, span)


def option(name: str, shown: str, keywords: dict[str, Value], run: Run, span: Span) -> Value:
    """Return the value of an option of the command line, by its default."""
    default = keywords.get("default")
    kind = keywords.get("type")
    if isinstance(keywords.get("action"), Text):
        return Number(None, "bool")
    if "nargs" in keywords:
        return default or Opaque(COMMAND_LINE)
    if isinstance(default, Text) and default.value is not None and default.value.isdigit():
        default = Number(run.symbols.known(name, int(default.value), "", span))
    if isinstance(default, Number):
        value = run.integer(default)
        if value is None or default.dtype not in ("int", "float"):
            return Number(default.expr, default.dtype)
        origin = f"default of {shown}, line {span.start_line}"
        return Number(run.symbols.known(name, value, origin, span), default.dtype)
    if isinstance(default, Text) or kind == External("builtins.str"):
        # whoever runs it may say otherwise
        return Text(None)
    symbol = run.symbols.unknown(name, COMMAND_LINE, span)
    if kind is None:
        return Opaque(COMMAND_LINE, symbol)
    return Number(symbol, "float" if kind == External("builtins.float") else "int")


def click_options(node: cst.FunctionDef, decorators: list[Arguments], run: Run) -> dict[str, Value]:
    """Return the parameters that click gives a function, from its decorators' arguments."""
    span = run.span(node.name)
    return dict(filter(None, (_named_option(one, run, span, short=False) for one in decorators)))


_QUIET_NAMES = """
print isinstance hasattr setattr id repr format callable input open iter next vars
globals locals type issubclass delattr hash chr ord hex bin getattr
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
    "functools.partial",
    "docopt.",
)


def call(path: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function of the standard library, or of an unknown one, gives."""
    values, first = arguments.values(), arguments.at(0)
    module, _, name = path.rpartition(".")
    if module == "builtins":
        return _builtin(name, arguments, run, span)
    if path in _CLOCKS:
        run.clocks += 1
        return Number(None, "float", varies=True)
    if module == "math":
        return _math(name, first, run)
    if path.startswith(_HARMLESS):
        return Opaque(f"the result of {path}", foreign=True)
    match path:
        case "numba.prange" | "numba.misc.special.prange":
            return range_value(values, run, span, threads=True)
        case "sys.exit" | "os._exit" | "os.abort":
            run.emit(Leave("exit", span))
            return Nothing()
        case "argparse.ArgumentParser":
            return run.record(Class(PARSER))
        case "copy.deepcopy" | "copy.copy" if isinstance(first, Array):
            return NumPy(run, span).member(first.view, "copy", Arguments())
        case "copy.deepcopy" | "copy.copy":
            return first or Nothing()
        case "random.randint" | "random.randrange":
            return Number(None, varies=True)
        case "os.getenv" | "os.environ.get":
            return Text(None)
    if module == "random" or path == "time.sleep":
        return Number(None, "float", varies=True)
    run.unknown(f"the call of `{path}` is not followed", span)
    for value in values:
        forget(value, run)
    return Opaque(f"the result of `{path}` is not known", foreign=True, varies=True)


def forget(value: Value, run: Run) -> None:
    """Note that something unknown may have changed an object's content."""
    if isinstance(value, Record):
        for key, found in run.entries(value.number):
            if isinstance(found, Number):
                forgotten = Number(None, found.dtype, varies=found.varies)
                run.keep(value.number, key, forgotten)


def _builtin(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    values, first = arguments.values(), arguments.at(0)
    if name in _GOES_THROUGH and any(isinstance(value, Array) for value in values):
        found = NumPy(run, span).gone_through(name, values)
        if found is not None:
            return found
        run.unknown(f"the time of `{name}` of an array is not known", span)
    match name:
        case "len" if first is not None:
            return _length(first, run)
        case "range" | "xrange":
            return range_value(values, run, span)
        case "enumerate":
            return Zipped(tuple(values[:1]), numbered=True)
        case "zip":
            return Zipped(tuple(values))
        case "reversed" | "sorted" | "list" | "tuple" | "set" | "iter":
            return _container(name, first)
        case "int" | "round" | "float" | "complex" | "bool" | "abs":
            return _number(name, first, run, span)
        case "min" | "max" | "sum" | "pow" | "divmod":
            return _folded(name, values, run)
        case "str" | "repr" | "format" | "input" | "bytearray" | "bytes" | "memoryview":
            return Text(None)
        case "dict":
            made = run.record()
            for key, value in arguments.by_keyword().items():
                run.keep(made.number, key, value)
            return made
        case "exit" | "quit":
            run.emit(Leave("exit", span))
            return Nothing()
        case "getattr" if isinstance(first, Record) and isinstance(arguments.at(1), Text):
            named = key_of(values[1], run)
            return run.entry(first.number, named) or Opaque("an attribute by its name")
        case "super":
            return _bases(run)
        case "any" | "all":
            return Number(None, "bool", varies=True)
        case "map" if first == External("builtins.int"):
            return Sequence(None, Number(None), getattr(arguments.at(1), "length", None))
        case "map":
            return Opaque("what map gives")
        case "slice":
            bounds = (Nothing(), *values) if len(values) == 1 else (*values, Nothing(), Nothing())
            return Slice(*(*bounds, Nothing())[:3])
    if name in _QUIET or name.endswith(("Error", "Exception", "Exit", "Interrupt", "Warning")):
        return Opaque(f"the result of {name}")
    run.unknown(f"the call of `{name}` is not followed", span)
    return Opaque(f"the result of {name}")


def _bases(run: Run) -> Value:
    """Return the bases of the class that a method stands in, with the object that it is of."""
    defined, given = run.file.defined.get(run.frame.function), list(run.frame.names.values())
    cls = None if defined is None else defined.owner
    if cls is None or not given or not isinstance(given[0], Record):
        return Opaque("the result of super")
    methods = tuple((name, replace(one, owner=given[0])) for name, one in cls.inherited)
    return Class(cls.name, methods, (), cls.module)


def _length(value: Value, run: Run) -> Value:
    match value:
        case Array(view):
            return Number(view.shape[0]) if view.shape else Number(None, varies=True)
        case Range(low, high):
            return Number(high - low)
        case Sequence(items=tuple() as items):
            return Number(num(len(items)))
        case Sequence(length=length):
            return Number(length)
        case Opaque(text=text) if text:
            why = f"the length of `{text}` is not known"
            return Number(run.symbols.unknown(f"{text}.n0", why, None))
    return Number(None)


def _container(name: str, first: Value | None) -> Value:
    is_list = name != "tuple"
    match first:
        case None:
            return Sequence((), is_list=is_list)
        case Range(low, high, step):
            if name in ("list", "tuple"):
                return Sequence(None, Number(None), ceil_div(high - low, step), is_list)
            return first
        case Sequence(items, element, length):
            return Sequence(items, element, length, is_list)
        case Array(view):
            return Sequence(None, Number(None, "float"), view.shape[0] if view.shape else None)
        case Zipped():
            return first
    return Sequence(None, None, None)


def _number(name: str, first: Value | None, run: Run, span: Span) -> Value:
    if first is None:
        return Number(num(0), name)
    if isinstance(first, Array) and name == "abs":
        return operation("absolute", (first,), run, span)
    dtype = {"round": "int", "abs": getattr(first, "dtype", "float")}.get(name, name)
    value, varies = run.number(first), getattr(first, "varies", isinstance(first, Array))
    nobody = isinstance(first, Number) and first.nobody
    if isinstance(first, Text):
        if first.value is not None and first.value.strip().isdigit():
            return Number(num(int(first.value)), dtype)
        return Number(run.symbols.unknown(run.target or "number", "read from a text", span), dtype)
    if value is None:
        return Number(None, dtype, varies=varies)
    if not _is_whole(first):
        if name in ("round", "abs", "bool", "complex"):
            return Number(None, dtype, varies=varies)
        if name == "int" and not isinstance(value, Sym):
            try:
                value = floor(value)
            except ExprError:
                return Number(None, dtype, varies=varies)
    return Number(value, dtype, nobody, varies)


def _is_whole(value: Value) -> bool:
    return isinstance(value, Number) and value.dtype == "int"


def _folded(name: str, values: list[Value], run: Run) -> Value:
    first = values[0] if values else None
    if name == "sum" and isinstance(first, Sequence):
        element = first.element or (first.items or (None,))[0]
        if isinstance(element, Array):
            return element
        return Number(None, getattr(element, "dtype", "float"), varies=True)
    known = [expr for expr in (run.number(value) for value in values) if expr is not None]
    dtype = "int" if all(_is_whole(v) for v in values) else "float"
    varies = any(getattr(v, "varies", False) for v in values)
    if name in ("min", "max") and len(known) == len(values) > 1:
        return Number(minimum(*known) if name == "min" else maximum(*known), dtype)
    if name == "divmod" and any(isinstance(value, Array) for value in values):
        return Opaque("quotients and remainders of an array")
    if name == "divmod":
        parts = (floor_div(*known), known[0] % known[1]) if len(known) == 2 else (None, None)
        found = tuple(Number(part, varies=varies and part is None) for part in parts)
        return Sequence(found, is_list=False)
    return Number(None, dtype, varies=varies or not known)


def _math(name: str, first: Value | None, run: Run) -> Value:
    found = of_numbers(name, (first or Number(None),), run)
    return replace(found, dtype="int") if name in ("floor", "ceil", "isqrt") else found


def method(
    owner: Value, name: str, arguments: Arguments, run: Run, span: Span, target: cst.BaseExpression
) -> Value:
    """Return what a method of a value gives that is neither array nor communicator."""
    match owner:
        case Request():
            return operations.request_method(owner, name, run, span)
        case Window():
            return operations.window_method(owner, name, arguments, run, span)
        case Datatype():
            return derive(owner, name, arguments.values(), run, span)
        case Text():
            return _text(name)
        case Record() if owner.cls is not None and owner.cls.name == PARSER:
            return parser_method(owner, name, arguments, run, span)
        case Record():
            return _dictionary(owner, name, arguments, run)
        case Sequence():
            return _list(owner, name, arguments.at(0), run, target)
    return Opaque(f"the result of `.{name}`")


def _text(name: str) -> Value:
    if name in ("split", "splitlines", "rsplit"):
        return Sequence(None, Text(None), None)
    if name in ("isdigit", "startswith", "endswith"):
        return Number(None, "bool")
    return Number(None) if name in ("find", "count", "index") else Text(None)


def _dictionary(owner: Record, name: str, arguments: Arguments, run: Run) -> Value:
    held, key = run.entries(owner.number), arguments.at(0)
    match name:
        case "get" | "pop" | "setdefault" if key is not None:
            return entry(owner, key, run) or arguments.at(1) or Nothing()
        case "values":
            return Sequence(tuple(value for _, value in held))
        case "keys":
            return keys(owner, run)
        case "items":
            pairs = (Sequence((as_value(key), value), is_list=False) for key, value in held)
            return Sequence(tuple(pairs))
        case "copy":
            made = run.record()
            run.kept[made.number] = dict(held)
            return made
    return Opaque(f"the result of `.{name}`")


def _list(
    owner: Sequence, name: str, first: Value | None, run: Run, target: cst.BaseExpression
) -> Value:
    match name:
        case "append" | "add" if first is not None:
            _rebind(target, _appended(owner, first, run, target), run)
        case "extend" if isinstance(first, Sequence):
            several = [*(owner.items or ()), *(first.items or ())]
            known = owner.items is not None and first.items is not None and not run.frame.depth
            element = owner.element or first.element
            if not known and element is None and several:
                element = several[0]
            _rebind(target, Sequence(tuple(several) if known else None, element, None), run)
        case "pop":
            return owner.items[-1] if owner.items else owner.element or Opaque("an element")
        case "index" | "count":
            return Number(None)
        case "copy":
            return owner
    return Nothing()


def _rebind(target: cst.BaseExpression, value: Sequence, run: Run) -> None:
    """Let a name denote a list, or an entry of a list of lists, whichever it may be."""
    if not isinstance(target, cst.Subscript):
        run.rebind(target, value)
    elif isinstance(lists := run.plain(target.value), Sequence):
        match target.slice:
            case [cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=text)))]:
                index = Number(num(int(text, 0)))
            case _:
                index = Number(None)
        run.rebind(target.value, replaced(lists, index, value, run))


def _appended(owner: Sequence, value: Value, run: Run, target: cst.BaseExpression) -> Sequence:
    if owner.items is not None and not run.frame.depth and len(owner.items) < 64:
        return Sequence((*owner.items, value))
    element = join_all((value, *(owner.items or (owner.element,))), "element", run)
    length = owner.length
    if owner.items is not None or length is None:
        text = dotted(target) or "list"
        length = run.symbols.unknown(f"{text}.len", "the length of a list", None)
    return Sequence(None, element, length)
