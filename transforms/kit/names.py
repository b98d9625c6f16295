"""Names in the text of a program: where they stand, what binds them, what an argument says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from advisor.finding import MODULE
from advisor.ir.kernel import lines_of
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.program import RANKS, Program, SpmdFunction
from advisor.ir.spmd.steps import Branch, Communicate, Communicator, Loop
from advisor.source import Span, every
from costdb.expr import Expr, free_symbols, python_text
from costdb.records import IDENTIFIER, NAME_PART, dataclass, field, only
from transforms.kit.ranks import root_arms
from transforms.kit.rewrite import span_of, stands_alone, statement_at, tree_of

_WORD = re.compile(rf"(?<!{NAME_PART})(?<!\.){IDENTIFIER}")
_LIKE = re.compile(r"\b(?:(?:empty|zeros|ones|full)_like|len)\(\s*$")
_MEASURE = re.compile(r"\.(?:shape|size|dtype|ndim|nbytes|itemsize)\b(?!\s*=(?!=))")
_KEYWORD = re.compile(r"\A\s*\w+\s*=(?!=)\s*")
_NAME = re.compile(IDENTIFIER)
_PARSED = re.compile(r"(\w+) *= *[\w.]+\.parse_args\(")
BASE = re.compile(r"([\w.]+)\s*\[.*\]", re.DOTALL)
"""A subscript of a name."""


# --- what an argument or a statement says


def argument(step: Communicate, name: str, program: Program) -> str | None:
    """Return the text of an argument's value; None where it is left out."""
    place = step.places.get(name)
    if place is None:
        return None
    return _KEYWORD.sub("", program.context.text(place), count=1)


def keywords(step: Communicate, names: Iterable[str], program: Program) -> list[str]:
    """Return arguments as keywords, those that are given."""
    found = ((name, argument(step, name, program)) for name in names)
    return [f"{name}={text}" for name, text in found if text is not None]


def is_simple(step: Communicate, program: Program) -> bool:
    """Return whether a statement is nothing but a call, whose value may get a name.

    It stands alone on its lines, and holds no comment, so that it can be replaced as a whole.
    """
    context = program.context
    statement = context.text(step.statement)
    if "#" in statement or not stands_alone(context, step.statement):
        return False
    call = context.text(step.span)
    if step.result is None:
        return statement == call
    return is_name(step.result) and _without_blanks(statement) == _without_blanks(
        f"{step.result}={call}"
    )


def is_name(text: str) -> bool:
    """Return whether a text is a name."""
    return _NAME.fullmatch(text) is not None


def _without_blanks(text: str) -> str:
    return re.sub(r"\s+", "", text)


def is_uniform(program: Program, sizes: Iterable[Expr]) -> bool:
    """Return whether sizes are known, and the same on every rank."""
    return all(
        name == RANKS or (name in program.sizes and program.sizes[name].value is not None)
        for size in sizes
        for name in free_symbols(size)
    )


def shape_text(view: View, function: SpmdFunction, program: Program, place: Span) -> str | None:
    """Return the shape of a view as Python that means it at a place; None where nothing does."""
    if view.shape is None:
        return None
    symbols = {name for size in view.shape for name in free_symbols(size)}
    found = {name: _text_at(name, function, program, place) for name in symbols}
    texts = {name: text for name, text in found.items() if text is not None}
    parts = [python_text(size, texts) for size in view.shape]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return known[0] if len(known) == 1 else f"({', '.join(known)})"


def _text_at(name: str, function: SpmdFunction, program: Program, place: Span) -> str | None:
    """Return what surely has a symbol's value at a place, on every rank that gets there.

    That is a name that is bound once, before and in a block around the place, to just this value,
    or an option of what is.
    """
    fact, context = program.sizes.get(name), program.context
    if fact is None or fact.span is None:
        return None
    owner, text, source = name, name, context.source
    if ".add_argument(" in context.text(fact.span):
        parsed = _PARSED.findall(source)
        owner = parsed[0] if len(parsed) == source.count(".parse_args(") == 1 else "?"
        text = f"{owner}.{name}"
        if re.search(rf"\b{re.escape(text)}\b", source) is None:
            return None
    bound = [(_definition(line, source), line) for line, n in _index(source).bound if n == owner]
    here = _definition(place.start_line, source)
    lines = [line for d, line in bound if d is here] or [line for d, line in bound if d is None]
    if len(lines) != 1 or lines[0] >= place.start_line or f"global {owner}" in source:
        return None
    between = [one for one in context.lines[lines[0] - 1 : place.start_line] if one.strip()]
    column = _indent(between[0])
    match statement_at(Span(lines[0], column, lines[0], column), context):
        case ast.Assign(targets=[ast.Name()], value=value) as node:
            spans = [span_of(one, context.lines) for one in (node, value)]
            sure = text != name or fact.span in spans
            sure &= all(_indent(one) >= column for one in between)
        case _:
            default = function.whole.contains(fact.span)
            sure = text in function.parameters and (default or not function.calls)
    return text if sure else None


def _definition(line: int, source: str) -> ast.stmt | None:
    """Return the outermost definition around a line."""
    nodes = (n for n in tree_of(source).body if isinstance(n, ast.FunctionDef | ast.ClassDef))
    return next((n for n in nodes if n.lineno <= line <= (n.end_lineno or 0)), None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# --- where names stand, and what binds them


@dataclass(frozen=True, slots=True)
class _Index:
    """The names of a source.

    Attributes
    ----------
    places : dict of str to list of Span
        Where each stands, strings included, which may be evaluated.
    given : set of Span
        Those at which an assignment gives a name its value.
    bound : list of (int, str)
        By line, every name that a statement may bind or change.
    """

    places: dict[str, list[Span]] = field(default_factory=dict)
    given: set[Span] = field(default_factory=set)
    bound: list[tuple[int, str]] = field(default_factory=list)


@lru_cache(maxsize=4)
def _index(source: str) -> _Index:
    found, lines = _Index(), lines_of(source)
    try:
        tree = ast.parse(source)
    except SyntaxError:
        # newer than the Python that runs this: any word may be a use, and may be bound
        for number, line in enumerate(lines, 1):
            for word in _NAME.finditer(line):
                place = Span(number, word.start(), number, word.end())
                found.places.setdefault(word[0], []).append(place)
                found.bound.append((number, word[0]))
        return found
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                _add(found, [name], node, lines)
            case ast.Constant(value=str(text)):
                _add(found, words(text), node, lines)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                _add(found, names, node, lines)
            case ast.Assign(targets=targets):
                found.given.update(span_of(part, lines) for t in targets for part in _names(t))
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr()):
                found.given.add(span_of(target, lines))
        found.bound.extend((getattr(node, "lineno", 1), name) for name in _bound(node))
    return found


def _add(
    found: _Index, names: Iterable[str], node: ast.expr | ast.stmt | ast.arg, lines: list[str]
) -> None:
    for name in names:
        found.places.setdefault(name, []).append(span_of(node, lines))


def _names(target: ast.expr) -> Iterator[ast.Name]:
    """Yield the names that an assignment to a target binds."""
    for part in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
        if isinstance(part, ast.Name):
            yield part


def _bound(node: ast.AST) -> Iterable[str]:
    """Return the names that a part of a program binds, or to whose elements it assigns."""
    match node:
        case ast.Name(ctx=ast.Load()) | ast.keyword():
            return ()
        case (
            ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del())
        ):
            while isinstance(node, ast.Attribute | ast.Subscript):
                node = node.value
            return words(ast.unparse(node))
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
    # of definitions, imports, parameters, handlers and patterns
    given = (getattr(node, part, None) for part in ("id", "name", "asname", "arg", "rest"))
    return [name for text in given if isinstance(text, str) for name in words(text)]


def loaded_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names whose values some code uses, those that it adds to included."""
    found: set[str] = set()
    for part in (part for node in nodes for part in ast.walk(node)):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, ast.AugAssign):
            found |= words(ast.unparse(part.target))
    return frozenset(found)


def bound_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that some code binds, or whose objects it changes or may change.

    What is called for nothing but its effect changes its object or any of its arguments, `out`
    where it has one.
    """
    found: set[str] = set()
    for part in (part for node in nodes for part in ast.walk(node)):
        found |= set(_bound(part))
        match part:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=changed, attr="append"))):
                found |= words(ast.unparse(changed))
            case ast.keyword(arg="out", value=changed):
                found |= words(ast.unparse(changed))
            case ast.Expr(value=ast.Call(keywords=given) as changed):
                if all(one.arg != "out" for one in given):
                    found |= words(ast.unparse(changed))
    return frozenset(found)


def occurrences(name: str, function: SpmdFunction, program: Program) -> list[Span]:
    """Return every place of a name in a function, strings included, which may be evaluated."""
    places = _index(program.context.source).places.get(name, ())
    whole = function.whole
    return sorted(p for p in places if whole.start_line <= p.start_line <= whole.end_line)


def is_binding(place: Span, program: Program) -> bool:
    """Return whether a name at a place is what a statement gives a value to."""
    return place in _index(program.context.source).given


def uses_of(name: str, function: SpmdFunction, program: Program, *but: Span) -> list[Span]:
    """Return where a function asks for what a name means, outside of some places."""
    return [
        place
        for place in occurrences(name, function, program)
        if not within(place, but) and not is_binding(place, program)
    ]


def _is_used_outside(name: str, place: Span, function: SpmdFunction, program: Program) -> bool:
    """Return whether what a place binds a name to may be asked for elsewhere in a function.

    A loop that binds the name itself means its own.
    """
    lines, loops = program.context.lines, list[tuple[Span, Span]]()
    for node in ast.walk(tree_of(program.context.source)):
        if isinstance(node, ast.For) and name in bound_names([node.target]):
            loops.append((span_of(node, lines), span_of(node.iter, lines)))
        elif isinstance(node, ast.ListComp | ast.GeneratorExp):
            first = node.generators[0]
            if name in bound_names([first.target]):
                loops.append((span_of(node, lines), span_of(first.iter, lines)))
    return any(
        not place.contains(one)
        and not is_binding(one, program)
        and not any(
            loop.contains(one) and not (loop.contains(place) or over.contains(one))
            for loop, over in loops
        )
        for one in occurrences(name, function, program)
    )


def used_outside(
    names: Iterable[str], place: Span, function: SpmdFunction, program: Program
) -> str | None:
    """Return the first of what a place binds that may be asked for elsewhere in a function."""
    return next((n for n in sorted(names) if _is_used_outside(n, place, function, program)), None)


def is_measured(place: Span, program: Program) -> bool:
    """Return whether only the shape or the type of what a name denotes is asked for at a place."""
    line = program.context.lines[place.start_line - 1]
    before, behind = line[: place.start_column], line[place.end_column :]
    return _LIKE.search(before) is not None or _MEASURE.match(behind) is not None


def within(place: Span, spans: Iterable[Span]) -> bool:
    """Return whether a place is in one of several spans."""
    return any(span.contains(place) for span in spans)


def root_lines(
    function: SpmdFunction, communicator: Communicator, root: Expr, program: Program
) -> list[Span]:
    """Return the stretches of source that only the root gets to: whole suites of branches."""
    found: list[Span] = []
    for visit in function.visits():
        branch = visit.step
        if not isinstance(branch, Branch):
            continue
        arms = root_arms(branch, communicator, root)
        if arms is None or arms[0] != branch.then or branch.then == branch.orelse:
            continue
        found.append(suite_of(branch.span, program))
    return found


def suite_of(header: Span, program: Program) -> Span:
    """Return the lines from a header to the end of its suite."""
    node, lines = statement_at(header, program.context), program.context.lines
    body = getattr(node, "body", None)
    end = span_of(body[-1], lines) if body else header
    return Span(header.start_line, header.start_column, end.end_line, len(lines[end.end_line - 1]))


def words(text: str) -> frozenset[str]:
    """Return the names in a piece of source, without attributes."""
    return frozenset(_WORD.findall(text))


def bound_in(program: Program, loop: Loop) -> frozenset[str]:
    """Return every name that a loop may bind, or to whose elements it may assign."""
    suite = suite_of(loop.span, program)
    return bound_in_lines(program, suite.start_line, suite.end_line)


def bound_in_lines(program: Program, first: int, last: int) -> frozenset[str]:
    """Return every name that whole lines may bind, or to whose elements they may assign."""
    bound = _index(program.context.source).bound
    return frozenset(name for line, name in bound if first <= line <= last)


_MEETING = frozenset(
    {
        "ANY_SOURCE", "File", "Iprobe", "Irsend", "Probe", "Rsend", "Win", "dump", "exists",
        "fromfile", "h5py", "iprobe", "load", "loadtxt", "memmap", "mkdir", "makedirs", "open",
        "probe", "remove", "rename", "save", "savetxt", "savez", "shared_memory", "sleep",
        "subprocess", "system", "tofile", "unlink", "write",
    }
)  # fmt: skip


def meet_otherwise(program: Program) -> bool:
    """Return whether a file names what ranks may meet by besides messages, as a barrier shows."""
    return not _MEETING.isdisjoint(named_in([tree_of(program.context.source)]))


CLOCKS = frozenset(
    {"Wtime", "monotonic", "perf_counter", "perf_counter_ns", "process_time", "time", "timeit"}
)


def timed(program: Program) -> frozenset[str]:
    """Return the names of functions that read a clock, and of the module if that does.

    And other names that the file has for clocks.
    """
    tree, named = tree_of(program.context.source), set[str]()
    for one in ast.walk(tree):
        match one:
            case ast.alias(name, str(other)) if name in CLOCKS - {"time"}:
                named.add(other)
            case ast.Assign([ast.Name(other)], ast.Attribute(attr=name)) if name in CLOCKS:
                named.add(other)
    made = [*every(ast.FunctionDef, tree)]
    own = [one for one in tree.body if not isinstance(one, ast.FunctionDef | ast.ClassDef)]
    asked = CLOCKS | named
    found = named | {one.name for one in made if asked & _asked_in([one])}
    return frozenset(found | ({MODULE} if asked & _asked_in(own) else set()))


def reads_clock(node: ast.AST, program: Program) -> bool:
    """Return whether some code reads a clock, or calls what does: it may measure what it does."""
    return not _asked_in([node]).isdisjoint(CLOCKS | timed(program))


def _asked_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Return what some code calls, and all attributes; a variable may be called as a clock is."""
    parts = [part for node in nodes for part in ast.walk(node)]
    called = {one.func.id for one in only(ast.Call, parts) if isinstance(one.func, ast.Name)}
    return called | {one.attr for one in parts if isinstance(one, ast.Attribute)}


def named_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Return all names in some code, but of its own functions, and those of attributes."""
    parts = [part for node in nodes for part in ast.walk(node)]
    own = {part.name for part in parts if isinstance(part, ast.FunctionDef)}
    named = {part.id for part in parts if isinstance(part, ast.Name)} - own
    return named | {part.attr for part in parts if isinstance(part, ast.Attribute)}
