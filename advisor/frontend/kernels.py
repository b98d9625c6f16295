"""From the text of a file to its kernels: one parse, one visitor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType

import libcst as cst

from advisor.finding import MODULE, Failure, sparing_others
from advisor.frontend.bindings import (
    Imports,
    NameScope,
    array_module_name,
    as_names,
    assigned_names,
    bound_anywhere,
    escaping_indices,
    names_around,
    names_in,
    star_imports,
)
from advisor.frontend.comments import read_comments
from advisor.frontend.declarations import (
    Declarations,
    FileReader,
    FoundKernel,
    declaration,
    threads_by_line,
)
from advisor.frontend.directives import (
    AnyDirective,
    ArrayComment,
    CommentError,
    NumberComment,
    read_pragmas,
)
from advisor.frontend.effects import Reading
from advisor.frontend.prefilter import may_hold_kernels
from advisor.frontend.scope import Scope
from advisor.frontend.seen import (
    agreeing,
    as_function,
    as_seen,
    compilers,
    fitted,
    hints,
    loop_alone,
    seen_sizes,
    untold,
    unusable,
)
from advisor.frontend.statements import Body
from advisor.frontend.trees import tree_of
from advisor.ir.kernel import (
    SOME,
    DeclaredArray,
    Kernel,
    Places,
    SizeBinding,
    SourceContext,
    lines_of,
)
from advisor.ir.values import Scalar
from advisor.numpy_table import PYTHON_FLOAT, PYTHON_INTEGER
from advisor.observed import READ, Seen
from advisor.source import SourceProblem, Span
from costdb.expr import Expr, free_symbols, sym
from costdb.expr.functions import is_name
from costdb.records import IDENTIFIER, only

_BUILTINS = frozenset({"len", "max", "min", "range"})
# functions that can see every local variable of the function that calls them
_SEES_ALL = frozenset({"locals", "vars", "eval", "exec", "dir"})
_IDENTIFIER = re.compile(IDENTIFIER)


def read_kernels(
    path: str,
    source: str,
    observed: Sequence[Seen] = (),
    failures: list[Failure] | None = None,
) -> tuple[Kernel, ...]:
    """Return the kernels of a file, in the order in which they are defined.

    Parameters
    ----------
    path, source : str
    observed : sequence of Seen
        Functions of the file that were seen to run: kernels too, once for each signature, with
        the sizes, element types and storage orders of their arguments. What a run showed goes
        over what annotations say; what the calls in the file tell does not.
    failures : list of Failure, optional
        Where a function is left out that a bug of ours comes up with, so that others are read.

    Raises
    ------
    SourceProblem
        When the file does not parse, or an annotation cannot be right.
    """
    if not observed and not may_hold_kernels(source):
        return ()
    tree = tree_of(path, source)
    try:
        directives = read_comments(source)
    except CommentError as error:
        raise error.in_file(path) from error
    reader = FileReader(path, tree.span_of, directives, observed)
    reader.visit(tree.module)
    reader.constants(tree.module)
    outside = [seen for seen in observed if seen.function == MODULE and not seen.alone]
    if outside:
        reader.kernels.append(_outside(tree.module, reader, outside[0]))
    for loop in reader.loops:
        found, reader.span_of = loop_alone(loop, tree.module, reader.span_of)
        reader.kernels.append(found)
    context = SourceContext(
        source=source,
        array_module=None,
        scalar_texts={},
        identifiers=frozenset(_IDENTIFIER.findall(source)),
        indent=tree.module.default_indent,
    )
    comments = tree.comments() if reader.kernels else ()
    context, kernels = replace(context, comments=comments), []
    for function in reader.kernels:
        line = function.line or function.first_line
        with sparing_others(function.node.name.value, line, failures):
            kernels.append(_kernel(function, reader, context))
    return _knowing_shared(tuple(kernels))


def _kind(function: FoundKernel, reader: FileReader, context: SourceContext) -> Kernel:
    """Return a function as it is in calls of one kind, read once for all others."""
    key = id(function.node), function.seen
    if key not in reader.kinds:
        reader.kinds[key] = _kernel(function, reader, context)
    return reader.kinds[key]


def _outside(module: cst.Module, reader: FileReader, seen: Seen) -> FoundKernel:
    """Return the statements outside of functions as a function that is called once.

    What a module binds others may import: the indices of loops alone are not kept for them.
    """
    body = [one for one in module.body if not isinstance(one, cst.FunctionDef | cst.ClassDef)]
    node, reader.span_of = as_function(MODULE, body, reader.span_of, Span(1, 0, 1, 0))
    return FoundKernel(node, {}, 1, (reader.module,), (), marked=False, seen=seen, line=1)


def _knowing_shared(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Tell every kernel which parts of its declarations other kernels use as well."""
    users: Counter[Span] = Counter()
    for kernel in kernels:
        places = [array.places for array in kernel.arrays.values()]
        spans = [span for one in places for span in (*one.dimensions, *dict(one.mesh).values())]
        users.update(set(spans))
    shared = frozenset(span for span, count in users.items() if count > 1)
    return tuple(
        replace(kernel, context=replace(kernel.context, shared=shared)) for kernel in kernels
    )


def _kernel(
    function: FoundKernel,
    reader: FileReader,
    context: SourceContext,
    general: bool = False,
    dtype: str | None = None,
    alike: Mapping[Expr, Expr] = MappingProxyType({}),
) -> Kernel:
    own_scope, seen, found = function.scopes[-1], function.seen, function
    path, span_of = reader.path, reader.span_of
    parameters = _parameters(function.node)
    places = {parameter.name.value: span_of(parameter.name) for parameter in parameters}
    others = frozenset[str]()
    if seen is not None:
        # nothing changes what the module binds once to a number, or writes out
        fixed = {name for name, kind in reader.numbers.items() if kind == PYTHON_FLOAT}
        fixed |= reader.integers.keys() | reader.tables.keys()
        others = names_around(seen, function.scopes, places) - fixed
        places |= dict.fromkeys(sorted(others), span_of(function.node.name))
    made, span_of = as_names(function.node, others, own_scope, context.source, span_of)
    function, parameters = replace(function, node=made), _parameters(made)
    node = function.node
    last_line = span_of(node.body).end_line
    own = [d for d in reader.directives if function.first_line <= d.line <= last_line]
    imports = Imports(function.scopes)
    bound = bound_anywhere(function.scopes)
    unsure = star_imports(function.scopes)
    around = function.scopes[1:-1]
    reader.declarations.imports = imports
    reader.declarations.hidden = bound_anywhere(around)
    scope = Scope(
        imports=imports,
        span=span_of,
        not_builtin=lambda name: unsure or name in bound,
        times_bound=lambda name: len(own_scope.bound.get(name, ())),
    )
    sizes = _module_constants(reader, scope, bound_anywhere((*around, own_scope)) | others)
    commented = _commented_arrays(path, own, own_scope)
    for parameter in parameters:
        _parameter(parameter, reader.declarations, scope, commented, function.sizes)
    scope.numbers.update(_said_numbers(path, function, own, scope.declared))
    for name, array in commented.items():
        scope.declared.setdefault(name, array)
    decorators, lines = function.decorators, lines_of(context.source)
    stated = frozenset(scope.declared)
    sizes |= function.sizes
    if seen is not None:
        as_seen(seen, function, scope, places, lines)
        decorators = compilers(function, seen)
        if alike:
            for name, one in scope.declared.items():
                scope.declared[name] = one if name in stated else fitted(one, alike)
            arrays = {name: fitted(one, alike) for name, one in scope.seen.arrays.items()}
            scope.seen = replace(scope.seen, arrays=arrays)
            scope.scalars |= {n: alike.get(value, value) for n, value in scope.scalars.items()}
    typed = scope.declared.keys() - commented.keys() if seen is None else frozenset[str]()
    declared = dict(scope.declared)
    numbers = _numbers(scope, places)
    if general:
        kept = scope.declared.keys() if dtype is None else typed

        def of_any_shape(arrays: Mapping[str, DeclaredArray]) -> dict[str, DeclaredArray]:
            return {
                name: _of_any_shape(array, None if name in kept else dtype)
                for name, array in arrays.items()
            }

        scope.declared = of_any_shape(scope.declared)
        scope.seen = replace(scope.seen, arrays=of_any_shape(scope.seen.arrays))
    scope.hints, entered = _hints(function, parameters, scope), frozenset(scope.scalars)
    texts = _scalar_texts(scope, own_scope, assigned_names(node.body))
    threads = threads_by_line(function.asked, seen, function.line)
    scope.kept |= own_scope.later | own_scope.elsewhere.keys()
    line = 0 if node.name.value == MODULE else span_of(node.name).start_line
    reading = Reading(context.source, line, scope)
    # what a loop alone binds is the same in the function that it stands in
    alone = seen is not None and seen.alone
    scopes = function.scopes[:-1] if alone else function.scopes
    pragmas, functions = read_pragmas(path, own), (scopes, reader.functions)
    scope.kind_of = reading.kind_of
    body = Body(scope, reader.declarations, pragmas, threads, reading, *functions).block(node.body)
    if seen is not None:
        body = (*untold(seen, own_scope, scope, span_of(node.name)), *body)
        counted = scope.scalars.keys() | scope.later_texts.keys()
        sizes |= seen_sizes(seen, declared | scope.declared, counted, span_of(node.name))
        shown = [one for name, one in declared.items() if name not in stated]
        more = (
            {}
            if general
            else agreeing(
                scope.misfits, scope.rebound, shown, scope.seen.arrays.values(), entered, sizes
            )
        )
        # each at most once: what runs showed may contradict itself
        more = {one: now for one, now in more.items() if one not in alike}
        if more:
            alike = {one: more.get(now, now) for one, now in alike.items()} | more
            return _kernel(found, reader, context, alike=alike)
    texts = {**scope.later_texts, **texts}
    items = [name for name in scope.numbers if "[" in name]
    # what other functions call theirs is no matter
    own_lines = "\n".join(lines[function.first_line - 1 : last_line])
    within = alone or node.name.value == MODULE
    taken = context.identifiers if within else frozenset(_IDENTIFIER.findall(own_lines))
    taken = taken.union(*map(names_in, reader.tables.values()))
    seen_by_others = _observed(function, scope)
    indices = {s: name for s, name in scope.loop_texts.items() if name not in own_scope.later}
    return Kernel(
        name=node.name.value,
        span=span_of(node.name),
        arrays=dict(scope.declared),
        locals={**scope.totals, **scope.locals},
        aliases=scope.related.union(scope.renamed),
        linked=frozenset(scope.linked),
        observed=seen_by_others | scope.implied,
        implied=frozenset(scope.implied) - seen_by_others,
        sizes=sizes,
        body=body,
        context=replace(
            context,
            identifiers=taken.union(scope.seen.around, items),
            array_module=array_module_name(imports, frozenset(own_scope.used)),
            scalar_texts={**texts, **indices},
            not_builtins=bound | _BUILTINS if unsure else bound,
            comments=tuple(s for s in context.comments if span_of(node).contains(s)),
            decorators=decorators,
            keeps_bits=function.asked is not None and function.asked.keeps_bits,
            whole=(function.first_line, last_line),
            written=tuple(scope.written.items()),
            computed=(
                *(
                    (name, value)
                    for name, value in scope.scalars.items()
                    if len(own_scope.bound.get(name, ())) == 1
                ),
                *(one for one in scope.counted_down if one[0] not in own_scope.later),
            ),
        ),
        asked=seen is None or (seen.source not in READ and bool(seen.arrays)),
        assumed=seen is not None
        and seen.source in READ
        and bool(
            (seen.source == "assumed" and (seen.arrays or seen.numbers))
            or scope.given & {one.name for one in seen.bindings}
        ),
        calls=SOME if seen is None else seen.calls,
        alone=alone,
        general=cache(partial(_kernel, found, reader, context, True)),
        kinds=cache(
            lambda: tuple(
                _kind(replace(found, seen=other, kinds=()), reader, context)
                for other in (*function.kinds, *(() if seen is None else seen.wider()))
                if other != seen
            )
        ),
        types_are_usual=bool(scope.declared.keys() - typed),
        shown=frozenset((scope.declared.keys() - stated) | scope.given),
        numbers={} if seen is None else _numbers(scope, scope.given) | numbers,
        overlaps=frozenset(
            frozenset(pair)
            for pair in (() if seen is None else seen.overlaps)
            if all(map(scope.has_array, pair))
        ),
        given_as_lists=frozenset() if seen is None else seen.lists,
        lists={n: one for n, one in scope.lists.items() if n in scope.locals or n in scope.totals},
    )


def _numbers(scope: Scope, names: Collection[str]) -> dict[str, str]:
    """Return the types of those of some names that denote numbers."""
    known = {**dict.fromkeys(scope.scalars, PYTHON_INTEGER), **scope.numbers}
    return {name: dtype for name, dtype in known.items() if name in names}


def _parameters(node: cst.FunctionDef) -> tuple[cst.Param, ...]:
    return (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)


def _of_any_shape(array: DeclaredArray, dtype: str | None) -> DeclaredArray:
    """Return a declaration with an extent of its own for every dimension."""
    shape = tuple(f"{array.spec.name}_extent_{axis}" for axis in range(len(array.extents)))
    return replace(
        array,
        spec=replace(array.spec, shape=shape),
        dtype=dtype or array.dtype,
        extents=tuple(sym(name) for name in shape),
    )


def _module_constants(
    reader: FileReader, scope: Scope, hidden: Collection[str]
) -> dict[str, SizeBinding]:
    """Let module-level numbers be known, but for names that mean something else in the kernel."""
    sizes = {
        name: size for name, size in reader.integers.items() if name not in hidden and is_name(name)
    }
    scope.scalars.update({name: sym(name) for name in sizes})
    scope.numbers.update({n: kind for n, kind in reader.numbers.items() if n not in hidden})
    floats = {n: Scalar(text, PYTHON_FLOAT) for n, text in reader.floats.items()}
    scope.started.update({n: value for n, value in floats.items() if n not in hidden})
    scope.written_out.update(
        (name, node)
        for name, node in reader.tables.items()
        if name not in hidden and names_in(node).isdisjoint(hidden)
    )
    return sizes


def _parameter(
    parameter: cst.Param,
    declarations: Declarations,
    scope: Scope,
    commented: dict[str, DeclaredArray],
    sizes: dict[str, SizeBinding],
) -> None:
    name = parameter.name.value
    annotation = None if parameter.annotation is None else parameter.annotation.annotation
    array = None if annotation is None else declarations.declared(name, annotation)
    if array is not None and name in commented:
        raise declarations.problem(
            parameter, f"`{name}` is declared both by its annotation and by a comment"
        )
    array = array or commented.get(name)
    if array is not None:
        scope.declared[name] = array
    elif (name in sizes or _is_named(annotation, "int")) and is_name(name):
        scope.scalars[name] = sym(name)
    elif _is_named(annotation, "float"):
        scope.numbers[name] = PYTHON_FLOAT


def _said_numbers(
    path: str,
    function: FoundKernel,
    directives: Iterable[AnyDirective],
    arrays: Mapping[str, DeclaredArray],
) -> dict[str, str]:
    """Return the types of parameters that comments and decorators say are numbers."""
    found = dict.fromkeys(function.numbers, PYTHON_FLOAT)
    extents = {
        symbol for array in arrays.values() for e in array.extents for symbol in free_symbols(e)
    }
    for name in extents & found.keys():
        problem = f"`{name}` is an extent of an array: it needs a whole number"
        raise SourceProblem(path, function.first_line, 1, problem)
    for directive in only(NumberComment, directives):
        name, bound = directive.name, function.scopes[-1].bound
        if name in arrays or name not in bound:
            problem = "is declared twice" if name in arrays else "is no name of the kernel"
            raise SourceProblem(path, directive.line, directive.column, f"`{name}` {problem}")
        found[name] = directive.dtype
    return found


def _hints(function: FoundKernel, parameters: Iterable[cst.Param], scope: Scope) -> dict[str, str]:
    known = scope.declared.keys() | scope.scalars.keys() | scope.numbers.keys()
    # one that formulas call something else is no size, whatever is written
    unknown = [p for p in parameters if p.name.value not in known and is_name(p.name.value)]
    if not unknown:
        return {}
    if function.seen is None:
        return hints(unknown, in_types=function.first_line == function.line)
    told = unusable(function.seen)
    if function.seen.source == "assumed":
        names = (one.name.value for one in unknown)
        return {name: f"nothing tells what `{name}` is" for name in names} | told
    return told


def _scalar_texts(scope: Scope, own: NameScope, assigned: Collection[str]) -> dict[str, str]:
    """Return source that has the value of a size anywhere in the kernel.

    Parameters
    ----------
    scope : Scope
        At the start of the kernel.
    own : NameScope
        Every binding of the kernel; a parameter that is bound again is of no use.
    assigned : collection of str
        What its body binds.
    """
    fixed = {*own.bound} - {name for name, found in own.bound.items() if len(found) > 1}
    fixed |= scope.seen.around - scope.seen.unsettled - set(assigned)
    texts = {
        name: name
        for name, value in scope.scalars.items()
        if value == sym(name) and (name in fixed or name not in {*own.bound, *scope.seen.around})
    }
    for name, array in scope.declared.items():
        if name not in fixed:
            continue
        for axis, extent in enumerate(array.extents):
            for symbol in free_symbols(extent):
                if extent == sym(symbol):
                    texts.setdefault(symbol, f"{name}.shape[{axis}]")
    return texts


def _observed(function: FoundKernel, scope: Scope) -> frozenset[str]:
    """Return the names that something sees which the statements do not show."""
    own = function.scopes[-1]
    if (own.used | own.later) & _SEES_ALL:
        return frozenset(own.bound)
    return frozenset(
        own.later | own.elsewhere.keys() | scope.seen.around | escaping_indices(function.node.body)
    )


def _is_named(annotation: cst.BaseExpression | None, name: str) -> bool:
    return isinstance(annotation, cst.Name) and annotation.value == name


def _commented_arrays(
    path: str, directives: Iterable[AnyDirective], own: NameScope
) -> dict[str, DeclaredArray]:
    found: dict[str, DeclaredArray] = {}
    for directive in only(ArrayComment, directives):
        spec = directive.spec
        problem = None
        if spec.name in found:
            problem = f"`{spec.name}` is declared twice"
        elif spec.name not in own.bound and spec.name not in own.used:
            problem = f"nothing in the kernel is called `{spec.name}`"
        if problem is not None:
            raise SourceProblem(path, directive.line, directive.column, problem)
        places = Places(directive.span, directive.dim_spans, directive.mesh_spans)
        found[spec.name] = declaration(path, spec, places)
    return found
