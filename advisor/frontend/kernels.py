"""From the text of a file to its kernels: one parse, one visitor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from advisor.frontend.body import Body, Pragmas
from advisor.frontend.comments import read_comments
from advisor.frontend.declarations import Declarations, declaration
from advisor.frontend.directives import (
    AnyDirective,
    ArrayComment,
    CommentError,
    KernelComment,
    Probability,
    StatedCost,
    Trip,
)
from advisor.frontend.names import array_module_name, imported_names, resolve
from advisor.frontend.prefilter import needs_reading
from advisor.frontend.scalars import literal_int
from advisor.frontend.scope import Scope
from advisor.ir.kernel import DeclaredArray, Kernel, Places, SizeBinding, SourceContext
from advisor.ir.shapes import PYTHON_FLOAT
from advisor.source import ParseProblem, SourceProblem, Span
from costdb.expr import Expr, ExprError, free_symbols, parse, sym

KERNEL_DECORATORS = frozenset({"advisor.kernel", "advisor.annotations.kernel"})
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def read_kernels(path: str, source: str) -> tuple[Kernel, ...]:
    """Return the kernels of a file, in the order in which they are defined.

    Raises
    ------
    SourceProblem
        When the file does not parse, or an annotation cannot be right.
    """
    if not needs_reading(source):
        return ()
    module = _parse(path, source)
    try:
        directives = read_comments(source)
    except CommentError as error:
        raise error.in_file(path) from error
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)

    def span_of(node: cst.CSTNode) -> Span:
        found = positions[node]
        return Span(found.start.line, found.start.column, found.end.line, found.end.column)

    visitor = _Functions(path, span_of, directives)
    module.visit(visitor)
    context = SourceContext(
        source=source,
        array_module=array_module_name(visitor.imports),
        scalar_texts={},
        identifiers=frozenset(_IDENTIFIER.findall(source)),
        indent=module.default_indent,
    )
    return _knowing_shared(
        tuple(
            _kernel(path, function, visitor, span_of, directives, context)
            for function in visitor.kernels
        )
    )


def _knowing_shared(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Tell every kernel which parts of its declarations other kernels use as well."""
    users: Counter[Span] = Counter()
    for kernel in kernels:
        users.update(
            {
                span
                for array in kernel.arrays.values()
                for span in (
                    *array.places.dimensions,
                    *(place for _, place in array.places.mesh),
                )
            }
        )
    shared = frozenset(span for span, count in users.items() if count > 1)
    return tuple(
        replace(kernel, context=replace(kernel.context, shared=shared)) for kernel in kernels
    )


def _parse(path: str, source: str) -> cst.Module:
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        # raw_line counts from 1, raw_column from 0
        message = f"does not parse: {error.message.splitlines()[0]}"
        raise ParseProblem(path, error.raw_line, error.raw_column, message) from error
    except RecursionError as error:
        raise ParseProblem(path, 1, 0, "is nested too deeply to be read") from error


@dataclass(slots=True)
class _FoundKernel:
    node: cst.FunctionDef
    sizes: dict[str, SizeBinding]
    first_line: int


@dataclass
class _Functions(cst.CSTVisitor):
    """Collects imports, module-level constants and kernels."""

    path: str
    span_of: Callable[[cst.CSTNode], Span]
    directives: tuple[AnyDirective, ...]
    imports: dict[str, str] = field(default_factory=dict)
    integers: dict[str, SizeBinding] = field(default_factory=dict)
    floats: set[str] = field(default_factory=set)
    kernels: list[_FoundKernel] = field(default_factory=list)
    depth: int = 0

    def __post_init__(self) -> None:
        self.declarations = Declarations(self.path, self.imports, self.span_of)
        self.comments = {d.line: d for d in self.directives if isinstance(d, KernelComment)}

    def visit_Import(self, node: cst.Import) -> None:  # noqa: N802
        self.imports.update(imported_names([node]))

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:  # noqa: N802
        self.imports.update(imported_names([node]))

    def visit_Assign(self, node: cst.Assign) -> None:  # noqa: N802
        if self.depth:
            return
        self.declarations.note_assignment(node)
        for target in node.targets:
            if not isinstance(target.target, cst.Name):
                continue
            name = target.target.value
            # a second assignment makes it no constant
            known = name in self.integers or name in self.floats
            value = literal_int(node.value)
            self.integers.pop(name, None)
            self.floats.discard(name)
            if known:
                continue
            if value is not None and value >= 1:
                self.integers[name] = SizeBinding(value, self.span_of(node))
            elif isinstance(node.value, cst.Float):
                self.floats.add(name)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:  # noqa: N802
        self.depth += 1

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:  # noqa: N802
        self.depth -= 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:  # noqa: N802
        self.depth -= 1

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802
        self.depth += 1
        sizes: dict[str, SizeBinding] = {}
        is_kernel = False
        lines = [self.span_of(node.name).start_line]
        for decorator in node.decorators:
            lines.append(self.span_of(decorator.decorator).start_line)
            call = decorator.decorator
            function = call.func if isinstance(call, cst.Call) else call
            if resolve(function, self.imports) not in KERNEL_DECORATORS:
                continue
            is_kernel = True
            if isinstance(call, cst.Call):
                sizes.update(self._sizes(call))
        first = min(lines)
        above = first - 1
        while above >= 1 and any(d.line == above and d.own_line for d in self.directives):
            comment = self.comments.get(above)
            if comment is not None:
                is_kernel = True
                for name, value in comment.sizes:
                    sizes[name] = SizeBinding(value, comment.span)
            above -= 1
        if is_kernel:
            self.kernels.append(_FoundKernel(node, sizes, above + 1))

    def _sizes(self, call: cst.Call) -> dict[str, SizeBinding]:
        found: dict[str, SizeBinding] = {}
        for argument in call.args:
            span = self.span_of(argument)
            if argument.keyword is None:
                raise self.declarations.problem(argument, "sizes are keywords: @kernel(N=1000)")
            value = literal_int(argument.value)
            name = argument.keyword.value
            if value is None:
                raise self.declarations.problem(argument, f"size {name} must be a whole number")
            if value < 1:
                raise self.declarations.problem(
                    argument, f"size {name} must be at least 1, not {value}"
                )
            found[name] = SizeBinding(value, span)
        return found


def _kernel(
    path: str,
    function: _FoundKernel,
    visitor: _Functions,
    span_of: Callable[[cst.CSTNode], Span],
    directives: Sequence[AnyDirective],
    context: SourceContext,
) -> Kernel:
    node = function.node
    last_line = span_of(node.body).end_line
    own = [d for d in directives if function.first_line <= d.line <= last_line]
    scope = Scope(imports=visitor.imports, span=span_of)
    texts: dict[str, str] = {}
    _module_constants(visitor, scope, texts)
    commented = _commented_arrays(path, own)
    for parameter in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params):
        _parameter(parameter, visitor, scope, commented, function.sizes, texts)
    for name, array in commented.items():
        scope.declared.setdefault(name, array)
    body = Body(scope, visitor.declarations, _pragmas(path, own)).block(node.body)
    return Kernel(
        name=node.name.value,
        span=span_of(node.name),
        arrays=dict(scope.declared),
        locals=dict(scope.locals),
        aliases=frozenset(scope.renamed),
        sizes={**visitor.integers, **function.sizes},
        body=body,
        context=SourceContext(
            source=context.source,
            array_module=context.array_module,
            scalar_texts={n: t for n, t in texts.items() if n not in scope.assigned_sizes},
            identifiers=context.identifiers,
            indent=context.indent,
        ),
    )


def _module_constants(visitor: _Functions, scope: Scope, texts: dict[str, str]) -> None:
    for name in visitor.integers:
        scope.scalars[name] = sym(name)
        texts[name] = name
    for name in visitor.floats:
        scope.numbers[name] = PYTHON_FLOAT


def _parameter(
    parameter: cst.Param,
    visitor: _Functions,
    scope: Scope,
    commented: dict[str, DeclaredArray],
    sizes: dict[str, SizeBinding],
    texts: dict[str, str],
) -> None:
    name = parameter.name.value
    scope.forget(name)
    texts.pop(name, None)
    annotation = None if parameter.annotation is None else parameter.annotation.annotation
    array = None if annotation is None else visitor.declarations.declared(name, annotation)
    if array is not None and name in commented:
        raise visitor.declarations.problem(
            parameter, f"`{name}` is declared both by its annotation and by a comment"
        )
    array = array or commented.get(name)
    if array is not None:
        scope.declared[name] = array
        for axis, extent in enumerate(array.extents):
            for symbol in free_symbols(extent):
                if extent == sym(symbol):
                    texts.setdefault(symbol, f"{name}.shape[{axis}]")
    elif name in sizes or _is_named(annotation, "int"):
        scope.scalars[name] = sym(name)
        texts[name] = name
    elif _is_named(annotation, "float"):
        scope.numbers[name] = PYTHON_FLOAT


def _is_named(annotation: cst.BaseExpression | None, name: str) -> bool:
    return isinstance(annotation, cst.Name) and annotation.value == name


def _commented_arrays(path: str, directives: Iterable[AnyDirective]) -> dict[str, DeclaredArray]:
    found: dict[str, DeclaredArray] = {}
    for directive in directives:
        if not isinstance(directive, ArrayComment):
            continue
        spec = directive.spec
        if spec.name in found:
            raise SourceProblem(
                path,
                directive.span.start_line,
                directive.span.start_column,
                f"`{spec.name}` is declared twice",
            )
        places = Places(directive.span, directive.dim_spans, directive.mesh_spans)
        found[spec.name] = declaration(path, spec, places)
    return found


def _pragmas(path: str, directives: Sequence[AnyDirective]) -> Pragmas:
    alone = {directive.line for directive in directives if directive.own_line}
    trips: dict[int, Expr] = {}
    probabilities: dict[int, Expr] = {}
    costs: dict[int, Expr] = {}
    for directive in directives:
        line = directive.line
        if directive.own_line:
            # several directives may stand above one statement
            while line in alone:
                line += 1
        match directive:
            case Trip():
                trips[line] = _expression(path, directive.count, directive)
            case Probability():
                probabilities[line] = _expression(path, directive.probability, directive)
            case StatedCost():
                costs[line] = _expression(path, directive.microseconds, directive)
            case _:
                pass
    return Pragmas(trips, probabilities, costs)


def _expression(path: str, text: str, directive: AnyDirective) -> Expr:
    try:
        return parse(text)
    except ExprError as error:
        raise SourceProblem(path, directive.line, directive.column, str(error)) from error
