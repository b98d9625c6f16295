"""What the calls in a file tell of the arguments of its functions, and its statements of loops.

The file is followed as SPMD programs are: arrays have the shape, element type and storage order
of the place that makes them. What all calls of a function agree on is a fact of its parameters,
as if a run had shown it; what they differ in stays unknown. Calls from other files may pass other
things: facts are what findings are priced with, and never why an edit is allowed.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from types import MappingProxyType

import libcst as cst

from advisor.finding import MODULE, ONE_EACH_CORE
from advisor.frontend import prefilter
from advisor.frontend.assumed import assumed, assumed_of
from advisor.frontend.bindings import assigned_names, dotted
from advisor.frontend.spmd.builtin_calls import PARSER
from advisor.frontend.spmd.functions import has_decorator, is_kernel_as_called
from advisor.frontend.spmd.reader import Followed
from advisor.frontend.spmd.run import Defined, Run
from advisor.frontend.spmd.values import Array, Number, Opaque, Range, Record, Sequence, Text, Value
from advisor.frontend.trees import nodes_in, parts_of
from advisor.ir.functions import attributes_read
from advisor.ir.kernel import SOME
from advisor.ir.spmd.memory import Contiguity, Order, View
from advisor.ir.spmd.program import RANK, RANKS, SizeFact
from advisor.ir.spmd.steps import Call, Step, walk
from advisor.numpy_table import UNKNOWN_DTYPE, dtype_of
from advisor.observed import (
    FEW_ITEMS,
    SEQUENCE,
    Layout,
    Seen,
    SeenArray,
    SeenBinding,
    SeenNumber,
    Source,
)
from advisor.source import KEY, tree_of, walked
from costdb.expr import Expr, ceil_div, free_symbols, num, to_text
from costdb.records import only, replace

_TEXT_LENGTH = 60
_NO_ARRAY = Sequence | Record | Text | Range


def called(
    path: str,
    source: str,
    given: Mapping[str, int | float] = MappingProxyType({}),
    given_by: Mapping[str, str] = MappingProxyType({}),
    file: Followed | None = None,
    cores: int | None = None,
) -> tuple[Seen, ...]:
    """Return what a file's own calls tell of its functions, in the order of the source.

    Functions that it does not call are left out, and so are those of which calls differ in the
    element type or the storage order of an array; compiled ones also where arguments share memory,
    as what is said of their loops holds where arrays do not overlap. Sizes that differ from rank to
    rank are those of the first one.

    Parameters
    ----------
    path, source : str
    given : mapping of str to number
        Sizes of the file, over what its source says of them.
    given_by : mapping of str to str
        What gave them, where it was not ``-D``.
    file : Followed, optional
        The same file, where somebody else may follow it too.
    cores : int, optional
        How many ranks there are where nothing else says: one for each.

    Raises
    ------
    SourceProblem
        When the file does not parse, or a comment to the tool cannot be right.
    """
    reading = (file or Followed(path, source)).alone
    if reading.is_cut_short:
        return ()
    run, functions = reading.run, reading.run.home.defined
    facts = run.symbols.facts
    stated = dict(facts)
    for name in (facts.keys() | {RANKS}) & given.keys():
        facts[name] = SizeFact(given[name], given_by.get(name, "-D"))
    facts.setdefault(RANK, SizeFact(0, "the first rank"))
    facts.setdefault(RANKS, SizeFact(cores, ONE_EACH_CORE))
    # one name for several functions: a call may be of any
    several = {name.partition(":")[0] for name in functions if ":" in name}
    times = _times(() if reading.top is None else reading.top.steps, facts)
    made = [
        replace(seen, calls=max(times[name], len(defined.sites)))
        for name, defined in functions.items()
        if name.partition(":")[0] not in several
        and defined.sites
        and is_kernel_as_called(defined.function.node, run)
        and (seen := _seen(name, defined, run, attributes_read(source))) is not None
    ]
    if prefilter.imports_mpi(source):
        # whose number may be a size
        facts[RANK] = SizeFact(1, "the second rank")
        around = {seen.function: seen for seen in assumed(source)}
        loops = (_loop(name, node, run, around.get(name)) for name, node in _loops_alone(run))
        made += (replace(one, calls=max(times[one.line], 1)) for one in loops)
    # the program that the file may be is read with what its source says
    facts.clear()
    facts.update(stated)
    return tuple(sorted(made, key=lambda seen: seen.line))


def constants(file: Followed) -> dict[str, SeenArray | SeenNumber]:
    """Return the arrays and numbers that a file binds at its module level, to names that nothing
    else binds, and what such names hold: options, say."""
    reading = file.alone
    if reading.is_cut_short:
        return {}
    run, found = reading.run, dict[str, SeenArray | SeenNumber]()
    bound = Counter(
        one.arg if isinstance(one, ast.arg) else one.id
        for one in walked(tree_of(file.source))
        if isinstance(one, ast.arg)
        or (isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load))
    )
    names, facts = run.home.frame.names, run.symbols.facts
    held = _attributes(run.home.tree.module, names, run, ())
    for name, value in _typed({**names, **held}).items():
        if bound[name.partition(".")[0]] != 1:
            continue
        if isinstance(value, Array):
            array = _array(name, value.view, run)
            if array is not None and array.shape is not None:
                found[name] = array
        elif isinstance(value, Number):
            told = () if value.expr is None else sorted(free_symbols(value.expr) & facts.keys())
            number = _number(name, value, "; ".join(facts[one].origin for one in told), run)
            if number.value is not None or name in held:
                found[name] = number
    return found


def _loops_alone(run: Run) -> Iterator[tuple[str, cst.CSTNode]]:
    """Yield loops that send, and the outermost that do not, each with the function around it.

    Those of decorated functions are left out.
    """
    waiting: list[tuple[str, cst.CSTNode]] = [("", run.home.tree.module)]
    while waiting:
        function, node = waiting.pop()
        match node:
            case cst.FunctionDef(name=name, decorators=decorators):
                qualified = f"{function}{name.value}"
                plain = has_decorator(node, "property", "staticmethod", "classmethod")
                if len(decorators) > plain:
                    continue
                function = f"{qualified}.<locals>."
            case cst.ClassDef(name=name):
                function = f"{function}{name.value}."
            case _ if node in run.loops:
                yield function.removesuffix(".").removesuffix(".<locals>") or MODULE, node
                if node not in run.sending:
                    continue
        waiting += [(function, part) for part in parts_of(node)]


def _times(steps: tuple[Step, ...], facts: Mapping[str, SizeFact]) -> Counter[str | int]:
    """Return how often functions are called, by name, and loops are come to, by line."""
    sizes = {name: fact.value for name, fact in facts.items() if fact.value is not None}
    found = Counter[str | int]()
    for visit in walk(steps, into_calls=True):
        if isinstance(visit.step, Call) or visit.begins(visit.step.span.start_line):
            line = visit.step.span.start_line
            called = visit.step.function if isinstance(visit.step, Call) else line
            found[called] += int(visit.times(sizes, SOME) or 0)
    return found


def _seen(name: str, defined: Defined, run: Run, read: Mapping[int, frozenset[str]]) -> Seen | None:
    node = defined.function.node
    line = run.span(node.name).start_line
    # the first way is what holds in all of them
    names = _typed(defined.entered[0].names)
    call = f"call in line {defined.sites[0].span.start_line}"
    arrays: list[SeenArray] = []
    numbers: list[SeenNumber] = []
    others: list[tuple[str, str]] = []
    for parameter in _parameters(node):
        value = names.get(parameter)
        if isinstance(value, Array):
            array = _array(parameter, value.view, run, _shapes(parameter, defined))
            if array is None:
                return None
            arrays.append(array)
        elif isinstance(value, Number):
            numbers.append(_number(parameter, value, call, run))
        elif any(isinstance(way.names.get(parameter), Array) for way in defined.entered):
            return None
        elif held := _held(parameter, value, call, run):
            numbers += held
        elif isinstance(value, _NO_ARRAY) and getattr(value, "cls", None) is None:
            others.append((parameter, type(value).__name__.lower()))
    for path, value in _typed(_attributes(node, names, run, read.get(line, ()))).items():
        if isinstance(value, Number):
            numbers.append(_number(path, value, call, run))
        elif isinstance(value, Array) and (array := _array(path, value.view, run)) is not None:
            arrays.append(array)
        elif held := _held(path, value, call, run):
            numbers += held
        elif isinstance(value, Sequence | Text | Range):
            others.append((path, type(value).__name__.lower()))
    if not (arrays or others or numbers):
        return None
    ways = [_in_one_memory(way.names, _parameters(node)) for way in defined.entered]
    overlaps = tuple(dict.fromkeys(pair for way in ways for pair in way))
    if overlaps and node.decorators and not has_decorator(node, "staticmethod"):
        return None
    return Seen(
        name,
        line,
        "text",
        tuple(arrays),
        tuple(numbers),
        overlaps=overlaps,
        others=tuple(others),
    )


def _held(name: str, value: Value | None, call: str, run: Run) -> list[SeenNumber]:
    """Return the numbers of a short tuple; of others that hold numbers, how many of which type."""
    items: tuple[Value | None, ...] = ()
    length: Expr | None = None
    match value:
        case Sequence(items=tuple() as items):
            length = num(len(items))
        case Sequence(element=element, length=length):
            items = (element,)
        case Range(low, high, step):
            items, length = (Number(None),), ceil_div(high - low, step)
    numbers = [one for one in items if isinstance(one, Number) and one.dtype != UNKNOWN_DTYPE]
    if not items or len(numbers) < len(items):
        return []
    if isinstance(value, Sequence) and not value.is_list and len(items) <= FEW_ITEMS:
        return [_number(f"{name}[{k}]", one, call, run) for k, one in enumerate(numbers)]
    dtypes = {dtype_of(one.dtype).name for one in numbers}
    many = _number(f"len({name})", Number(length), call, run)
    return [many, SeenNumber(f"{name}[:]", dtypes.pop())] if len(dtypes) == 1 else []


def _attributes(
    node: cst.FunctionDef | cst.Module,
    names: Mapping[str, Value | None],
    run: Run,
    read: Iterable[str],
) -> dict[str, Value | None]:
    """Return what attributes denote of the objects that a function is given, and of its options.

    Those that are `read` are parts of these, too.
    """
    parts = list(nodes_in(node))
    options = (value for part in parts for value in run.bound.get(part, {}).items())
    known = {**names, **{name: one for name, one in options if _is_options(one)}}
    found: dict[str, Value | None] = {}
    members = (one for one in parts if isinstance(one, cst.Attribute | cst.Subscript))
    for path in (*filter(None, map(dotted, members)), *sorted(read)):
        root, *inner, attribute = path.split(".")
        owner = known.get(root)
        for one in inner:
            number = owner.number if isinstance(owner, Record) else None
            owner = None if number is None else run.entry(number, one.removeprefix(KEY))
        # what an object of a class gives for a key is not its attribute
        of_code = attribute.startswith(KEY) and getattr(owner, "cls", None) is not None
        if isinstance(owner, Record) and not of_code:
            found[path] = run.entry(owner.number, attribute.removeprefix(KEY))
    return found


def _is_options(value: Value | None) -> bool:
    return isinstance(value, Record) and value.cls is not None and value.cls.name == PARSER


def _loop(function: str, node: cst.CSTNode, run: Run, around: Seen | None) -> Seen:
    """Return a loop as a function of the names in it; its text, and that of the function around it,
    may tell what else tells not."""
    span, values = run.span(node), _typed(run.loops[node])
    told = assumed_of(values, "\n".join(run.home.lines[span.start_line - 1 : span.end_line]))
    bindings = tuple(
        SeenBinding(run.home.lines[run.span(part).start_line - 1].strip(), name, what)
        for part in nodes_in(node)
        for name, value in _typed(run.bound.get(part, {})).items()
        if (what := _bound(name, value, run)) is not None
    )
    arrays: dict[str, SeenArray] = {}
    for name, value in values.items():
        if isinstance(value, Array) and (array := _array(name, value.view, run)) is not None:
            arrays[name] = array
    guesses: dict[str, SeenArray | SeenNumber] = {}
    texts = [*filter(None, (told, around))]
    for text in texts:
        # what the loop binds itself it is not given
        others = (one.what for one in text.bindings if one.name not in assigned_names(node))
        found = (*text.arrays, *text.numbers, *others)
        named = {one.name: one for one in found if not isinstance(one, str)}
        # the least ranks of some are not those of others
        if all(getattr(named.get(n, a), "ndim", 0) == a.ndim for n, a in arrays.items()):
            guesses |= named
    unknown = {n for n, value in values.items() if isinstance(value, Array | Opaque | None)}
    unknown -= {one.name for one in bindings} | arrays.keys()
    likely = [one for name, one in guesses.items() if name in unknown]
    numbers = {
        one.name: replace(one, dtype=dtype_of(one.dtype).name) for one in only(SeenNumber, likely)
    }
    for name, value in values.items():
        if isinstance(value, Number):
            numbers[name] = _number(name, value, f"line {span.start_line}", run)
    guessed = [o for o in likely if isinstance(o, SeenArray)]
    # one of the texts may show that it is no list, or bind it to an array
    shown = {a.name for text in texts for a in text.arrays if a.name not in text.lists}
    shown |= {one.name for text in texts for one in text.bindings}
    lists = tuple((one.name, SEQUENCE) for one in guessed if one.name not in shown)
    overlaps = tuple(_in_one_memory(values, values))
    source: Source = "assumed" if guessed else "text"
    return Seen(
        function,
        span.start_line,
        source,
        (*arrays.values(), *guessed),
        tuple(numbers.values()),
        others=lists,
        overlaps=overlaps,
        bindings=bindings,
        alone=True,
    )


def _typed(values: Mapping[str, Value | None]) -> dict[str, Value | None]:
    """Return what names denote; of a number of unknown type nothing is known.

    A whole number that is received stands in an array without axes, and counts as one.
    """

    def told(value: Value | None) -> Value | None:
        match value:
            case Number(dtype=dtype) if dtype == UNKNOWN_DTYPE:
                return Opaque("a number of unknown type", varies=True)
            case Array(View(shape=(), dtype="int32" | "int64" as dtype)):
                return Number(None, dtype, varies=True)
        return value

    return {name: told(value) for name, value in values.items()}


def _bound(name: str, value: Value | None, run: Run) -> SeenArray | SeenNumber | None:
    """Return what a statement binds a name to."""
    if isinstance(value, Number):
        return SeenNumber(name, value.dtype)
    return _array(name, value.view, run) if isinstance(value, Array) else None


def _parameters(node: cst.FunctionDef) -> tuple[str, ...]:
    params = node.params
    found = (*params.posonly_params, *params.params, *params.kwonly_params)
    return tuple(parameter.name.value for parameter in found)


def _in_one_memory(
    names: Mapping[str, Value | None], parameters: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of arguments that are parts of one array."""
    given = [
        (name, value.view) for name in parameters if isinstance(value := names.get(name), Array)
    ]
    for (one, view), (other, same) in combinations(given, 2):
        if view.buffer.memory == same.buffer.memory:
            yield one, other


def _shapes(parameter: str, defined: Defined) -> tuple[str, ...]:
    """Return the extents that an argument has in all calls, in their terms."""
    first, *others = defined.entered
    # where ways differ, the first one is what they have in common
    ways = others if any(way.names != first.names for way in others) else [first]
    found = [way.names.get(parameter) for way in ways]
    shapes = [value.view.shape for value in found if isinstance(value, Array)]
    told = [tuple(map(to_text, shape)) for shape in shapes if shape is not None]
    if len(told) < len(ways) or len({*map(len, told)}) > 1:
        return ()
    return tuple("; ".join(texts) for texts in zip(*told, strict=True))


def _array(
    name: str, view: View, run: Run, like: tuple[str, ...] | None = None
) -> SeenArray | None:
    """Return an array, with extents in the program's terms: its own, or those of all calls.

    None where its element type or how it lies in memory is not known.
    """
    layout, shape = _layout(view), view.shape
    if layout is None or shape is None or view.dtype is None:
        return None
    values = [run.symbols.value(extent) for extent in shape]
    extents = tuple(value for value in values if value is not None and value >= 0)
    known = extents if len(extents) == len(shape) else None
    dtype, made = dtype_of(view.dtype).name, _made(view, shape, run)
    told = tuple(map(to_text, shape)) if like is None else like
    return SeenArray(name, dtype, len(shape), layout, known, None, made, told)


def _layout(view: View) -> Layout | None:
    contiguity = view.contiguity
    if contiguity is Contiguity.NO:
        return "A"
    several = view.shape is None or len(view.shape) > 1
    if contiguity is Contiguity.UNKNOWN or (several and view.order is Order.UNKNOWN):
        return None
    return "F" if several and view.order is Order.F else "C"


def _made(view: View, shape: tuple[Expr, ...], run: Run) -> str:
    """Return which line makes an array, and what binds the sizes that it is made of."""
    allocation = view.buffer.allocation
    text = " ".join(allocation.text.split())
    if len(text) > _TEXT_LENGTH:
        text = f"{text[: _TEXT_LENGTH - 4]} ..."
    facts = run.symbols.facts
    names = sorted(frozenset().union(*map(free_symbols, shape)) & facts.keys())
    sizes = "".join(f"; {name}: {facts[name].origin}" for name in names)
    return f"line {allocation.span.start_line}: {text}{sizes}"


def _number(name: str, value: Value, call: str, run: Run) -> SeenNumber:
    assert isinstance(value, Number)
    whole = value.dtype == "int" and not value.varies
    known = run.symbols.value(value.expr) if whole else None
    like = to_text(value.expr) if whole and value.expr is not None else ""
    return SeenNumber(name, dtype_of(value.dtype).name, known, call, like)
