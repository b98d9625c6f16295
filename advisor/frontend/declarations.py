"""The kernels of a file, and what annotations declare: meshes, distributions, element types.

The annotation is rebuilt from its syntax; nothing of the scanned file is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias

import libcst as cst

from advisor.annotations import Block, Cyclic, Dist, Mesh
from advisor.distribution import ArraySpec, spec_of_dist
from advisor.frontend.bindings import (
    Function,
    Imports,
    NameScope,
    ScopeVisitor,
    dotted,
    names_in,
    resolve,
)
from advisor.frontend.directives import AnyDirective, KernelComment
from advisor.frontend.indices import constant_int
from advisor.frontend.scope import is_kept, is_of_literals
from advisor.frontend.trees import is_loop
from advisor.ir.kernel import DeclaredArray, Kernel, Places, SizeBinding
from advisor.ir.statements import Threads
from advisor.numpy_table import PYTHON_FLOAT, PYTHON_INTEGER, UnknownDtype, dtype_of, is_dtype
from advisor.observed import READ, Seen, by_kind, by_signature, square
from advisor.source import SourceProblem, Span
from costdb.expr import Expr, ExprError, parse
from costdb.records import dataclass, only

_KINDS: Mapping[str, Callable[..., Any]] = {
    f"{module}.{kind.__name__}": kind
    for module in ("advisor", "advisor.annotations")
    for kind in (Block, Cyclic, Dist, Mesh)
}
_PYTHON_TYPES = frozenset({"bool", "complex", "float", "int"})


@dataclass(frozen=True, slots=True)
class Made:
    """A mesh or a distribution, and where its parts stand.

    Attributes
    ----------
    value : Dist, Mesh, Block or Cyclic
    entries : tuple of Span
        Of its positional arguments.
    named : tuple of (str, Span)
        Of those that have names.
    on : Made or None
        The mesh of a distribution.
    """

    value: Any
    entries: tuple[Span, ...]
    named: tuple[tuple[str, Span], ...]
    on: Made | None


class Declarations:
    """Reads annotations of one file.

    Parameters
    ----------
    path : str
        For messages.
    span_of : callable
        Gives the place of a node.
    imports : mapping of str to str
        What imported names stand for at the declaration that is read.

    Attributes
    ----------
    hidden : frozenset of str
        Names that a function around the declaration has taken from the module level.
    """

    def __init__(
        self, path: str, span_of: Callable[[cst.CSTNode], Span], imports: Mapping[str, str]
    ) -> None:
        self.path = path
        self.span_of = span_of
        self.imports = imports
        self.hidden: frozenset[str] = frozenset()
        # module-level names of meshes, distributions, types of arrays and of elements
        self.known: dict[str, Made | cst.Subscript | str] = {}

    def problem(self, node: cst.CSTNode, message: str) -> SourceProblem:
        """Return a one-line error at a node."""
        span = self.span_of(node)
        return SourceProblem(self.path, span.start_line, span.start_column, message)

    def note(self, name: str, value: cst.BaseExpression) -> None:
        """Remember module-level names of a mesh, a distribution or a type of arrays."""
        found: Made | cst.Subscript | str | None = None
        if isinstance(value, cst.Subscript):
            found = value if self._is_annotated(value) else self._element_type(value)
        elif isinstance(value, cst.Call) and self._kind(value) in (Dist, Mesh):
            found = self._made(value)
        if found is not None:
            self.known[name] = found

    def keep(self, names: Collection[str]) -> None:
        """Forget what is known under other names."""
        self.known = {name: found for name, found in self.known.items() if name in names}

    def _known(self, node: cst.BaseExpression) -> Made | cst.Subscript | str | None:
        if not isinstance(node, cst.Name) or node.value in self.hidden:
            return None
        return self.known.get(node.value)

    def _kind(self, node: cst.Call) -> Callable[..., Any] | None:
        return _KINDS.get(resolve(node.func, self.imports) or "")

    def _made(self, node: cst.Call) -> Made:
        """Return the mesh or distribution that a call makes."""
        kind = self._kind(node)
        if kind is None:
            raise self.problem(node, "expected Block(...), Cyclic(...), Mesh(...) or a literal")
        plain: list[tuple[Any, Span]] = []
        named: dict[str, tuple[Any, Span]] = {}
        for argument in node.args:
            if argument.star or (kind is Mesh and argument.keyword is None):
                message = "a starred argument cannot be read"
                raise self.problem(
                    node, message if argument.star else "mesh axes are keywords: Mesh(row=4, col=4)"
                )
            found = self._value(argument.value), self.span_of(argument.value)
            if argument.keyword is None:
                plain.append(found)
            else:
                named[argument.keyword.value] = found
        on = named.get("on", (None,))[0]
        try:
            made = kind(
                *(_bare(value) for value, _ in plain),
                **{name: _bare(value) for name, (value, _) in named.items()},
            )
        except (ValueError, TypeError) as error:
            raise self.problem(node, str(error)) from error
        return Made(
            made,
            tuple(span for _, span in plain),
            tuple((name, span) for name, (_, span) in named.items()),
            on if isinstance(on, Made) else None,
        )

    def _value(self, node: cst.BaseExpression) -> Any:
        """Return a literal, a tuple of them, or what a call or a module-level name stands for."""
        known = self._known(node)
        if isinstance(known, Made):
            return known
        number = constant_int(node)
        if number is not None:
            return number
        match node:
            case cst.SimpleString():
                return node.evaluated_value
            case cst.Name(value="None"):
                return None
            case cst.Tuple():
                return tuple(self._value(element.value) for element in node.elements)
            case cst.Call():
                return self._made(node)
        message = "only literals can be read here, sizes by their names in quotes"
        raise self.problem(node, f"{message}; nothing is executed")

    def declared(self, name: str, annotation: cst.BaseExpression) -> DeclaredArray | None:
        """Return what ``name: Annotated[NDArray[T], Dist(...)]`` declares; None for others."""
        known = self._known(annotation)
        if isinstance(known, cst.Subscript):
            annotation = known
        if not isinstance(annotation, cst.Subscript) or not self._is_annotated(annotation):
            return None
        parts = [e.slice.value for e in annotation.slice if isinstance(e.slice, cst.Index)]
        for metadata in parts[1:]:
            found = self._known(metadata)
            if isinstance(metadata, cst.Call) and self._kind(metadata) is Dist:
                found = self._made(metadata)
            if isinstance(found, Made) and isinstance(found.value, Dist):
                spec = spec_of_dist(name, found.value, self._element_type(parts[0]))
                places = Places(
                    self.span_of(metadata),
                    found.entries[len(found.entries) // 2 :],
                    found.on.named if found.on else (),
                )
                return declaration(self.path, spec, places)
        return None

    def _is_annotated(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Subscript) and resolve(node.value, self.imports) in (
            "typing.Annotated",
            "typing_extensions.Annotated",
        )

    def _element_type(self, node: cst.BaseExpression) -> str | None:
        """Return the element type of ``NDArray[np.int32]`` or of a module-level name of it.

        ``np.ndarray[shape, np.dtype[np.int32]]`` is read too.
        """
        known = self._known(node)
        if isinstance(known, str):
            return known
        if not isinstance(node, cst.Subscript):
            return None
        kind = (dotted(node.value) or "").rsplit(".", 1)[-1]
        element = node.slice[-1].slice
        if not isinstance(element, cst.Index):
            return None
        if kind == "ndarray" and len(node.slice) == 2:
            return self._element_type(element.value)
        if kind not in ("NDArray", "dtype") or len(node.slice) != 1:
            return None
        return self._scalar_type(element.value)

    def _scalar_type(self, node: cst.BaseExpression) -> str | None:
        name = dotted(node) or ""
        full = resolve(node, self.imports)
        module, _, last = (full or name).rpartition(".")
        if full is not None and module != "numpy":
            return None
        if is_dtype(last) and module:
            return last
        # a bare name may be anything, even where it reads like one of NumPy's codes
        return name if name in _PYTHON_TYPES and full is None else None


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, Made) else value


def declaration(path: str, spec: ArraySpec, places: Places) -> DeclaredArray:
    """Return a declared array with its extents parsed and its element type named in full.

    Raises
    ------
    SourceProblem
        For an extent that does not parse or an element type that nothing states.
    """

    def problem(message: str) -> SourceProblem:
        span = places.whole
        return SourceProblem(path, span.start_line, span.start_column, message)

    if spec.dtype is None:
        raise problem(
            f"the element type of `{spec.name}` is not known:"
            " write NDArray[np.float64], or dtype= in Dist"
        )
    extents: list[Expr] = []
    for text in spec.shape:
        try:
            extents.append(parse(text))
        except ExprError as error:
            raise problem(f"extent {text!r} of `{spec.name}`: {error}") from error
    try:
        dtype = dtype_of(spec.dtype).name
    except UnknownDtype as error:
        raise problem(str(error)) from error
    return DeclaredArray(spec, dtype, tuple(extents), places)


# What the decorators of a function ask of numba.

_JIT = frozenset({"numba.njit", "numba.jit"})
# arguments that change how it is compiled, not what it computes
_HARMLESS = frozenset(
    {"boundscheck", "cache", "debug", "error_model", "nogil", "nopython", "parallel"}
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one decorator asks of numba.

    Attributes
    ----------
    keeps_bits : bool
        Whether numba may compute nothing in another way than the source: no ``fastmath``, no
        passes of somebody else, no signatures that convert arguments.
    parallel : bool or None
        Whether loops over ``prange`` are to be made parallel; None where that is not literal.
    """

    keeps_bits: bool
    parallel: bool | None


def asked_of_numba(full: str | None, call: cst.BaseExpression) -> Asked | None:
    """Return what a decorator asks of numba; None for any other decorator.

    Parameters
    ----------
    full : str or None
        The decorator's full name.
    call : libcst.BaseExpression
        The decorator.
    """
    if full not in _JIT:
        return None
    if not isinstance(call, cst.Call):
        return Asked(True, False)
    keeps_bits, parallel = True, False
    for argument in call.args:
        name = None if argument.keyword is None else argument.keyword.value
        stated = _truth(argument.value)
        if name is None and argument.star:
            return Asked(False, None)
        if name == "parallel":
            if stated is None:
                return Asked(False, None)
            parallel = stated
        elif name not in _HARMLESS and not (name == "fastmath" and stated is False):
            keeps_bits = False
    return Asked(keeps_bits, parallel)


def _truth(node: cst.BaseExpression) -> bool | None:
    if isinstance(node, cst.Name) and node.value in ("True", "False"):
        return node.value == "True"
    return None


def threads_by_line(
    asked: Asked | None, seen: Seen | None, first_line: int
) -> Callable[[int], Threads]:
    """Return what tells of a ``prange`` in a line whether threads share its iterations.

    Parameters
    ----------
    asked : Asked or None
    seen : Seen or None
        Its lines are those of the file when it ran.
    first_line : int
        Of the function now, its decorators included.
    """
    if seen is not None and seen.source == "numba" and seen.loops:
        shared = {loop.line - seen.line + first_line for loop in seen.loops}
        return lambda line: Threads.SHARED if line in shared else Threads.REFUSED
    # a function from numba's cache comes without loops, so that none is no sign
    if asked is not None and asked.parallel is False:
        return lambda line: Threads.REFUSED
    return lambda line: Threads.ASKED


# The kernels of a file, and what its module level says that they may rely on.


KERNEL_DECORATORS = frozenset({"advisor.kernel", "advisor.annotations.kernel"})
# these leave the text of a function alone, and call it as it stands
_HARMLESS_DECORATORS = frozenset(
    [
        *("functools.cache", "functools.lru_cache", "functools.wraps", "typing.final"),
        *("typing.no_type_check", "typing.override", "typing_extensions.override"),
    ]
)


@dataclass(slots=True)
class FoundKernel:
    """A function that is a kernel.

    Attributes
    ----------
    node : libcst.FunctionDef
    sizes : dict of str to SizeBinding
        Usual values from its decorator and comments.
    first_line : int
        Of the comments and decorators above it.
    scopes : tuple of NameScope
        The module's, those of what it is nested in, and its own.
    decorators : tuple of str
        Those that may do anything with it.
    marked : bool
        Whether the source calls it a kernel; otherwise it is one because it was seen to run.
    seen : Seen or None
        What a run showed of it, or the calls in its file.
    line : int
        Where its definition begins, with its decorators.
    asked : Asked or None
        What its only decorator asks of numba.
    numbers : frozenset of str
        Parameters that are said to be numbers, and no sizes.
    kinds : tuple of Seen
        Every kind of call that was seen of it.
    square : frozenset of (str, int, int)
        Arguments and two of their axes that are alike in all of these, and not always 1.
    """

    node: cst.FunctionDef
    sizes: dict[str, SizeBinding]
    first_line: int
    scopes: tuple[NameScope, ...]
    decorators: tuple[str, ...]
    marked: bool = True
    seen: Seen | None = None
    line: int = 0
    asked: Asked | None = None
    numbers: frozenset[str] = frozenset()
    kinds: tuple[Seen, ...] = ()
    square: frozenset[tuple[str, int, int]] = frozenset()


LoopAlone: TypeAlias = tuple[cst.CSTNode, list[cst.CSTNode], tuple[NameScope, ...], Seen]
"""A loop that is read by itself, the function around it, should there be one, and the scopes."""


_ARITHMETIC = cst.Add | cst.Subtract | cst.Multiply | cst.Divide | cst.FloorDivide | cst.Modulo


class FileReader(ScopeVisitor):
    """Collects names, module-level constants and declarations, and kernels.

    A function that was seen to run with several signatures is as many kernels.
    """

    def __init__(
        self,
        path: str,
        span_of: Callable[[cst.CSTNode], Span],
        directives: tuple[AnyDirective, ...],
        observed: Iterable[Seen] = (),
    ) -> None:
        super().__init__()
        self.path = path
        self.directives = directives
        self._observed: dict[str, list[Seen]] = {}
        self._loops: dict[int, Seen] = {}
        self._within: list[cst.CSTNode] = []
        # each with the function around it, and the scopes
        self.loops: list[LoopAlone] = []
        for seen in observed:
            if seen.alone:
                self._loops[seen.line] = seen
            else:
                self._observed.setdefault(seen.function, []).append(seen)
        self._qualified: list[str] = []
        self.span_of = span_of
        self.kernels: list[FoundKernel] = []
        # what functions are in calls of each kind, once somebody asks
        self.kinds: dict[tuple[int, Seen | None], Kernel] = {}
        self.functions: dict[str, list[Function]] = {}
        self.integers: dict[str, SizeBinding] = {}
        self.numbers: dict[str, str] = {}
        self.floats: dict[str, str] = {}
        self.tables: dict[str, cst.BaseExpression] = {}
        self.declarations = Declarations(path, span_of, Imports(self.scopes))
        self._alone = {d.line for d in directives if d.own_line}
        self._kernel_comments = {d.line: d for d in only(KernelComment, directives) if d.own_line}

    def constants(self, module: cst.Module) -> None:
        """Keep of module-level names only those that are bound once, and never changed."""
        once = {name for name, targets in self.module.bound.items() if len(targets) == 1}
        self.integers = {n: value for n, value in self.integers.items() if n in once}
        self.numbers = {n: kind for n, kind in self.numbers.items() if n in once}
        self.floats = {n: text for n, text in self.floats.items() if n in once}
        self.tables = {
            name: table
            for name, table in self.tables.items()
            if once.issuperset({name, *names_in(table)})
            and (
                isinstance(table, cst.Tuple)
                or is_kept(name, module, keyed=isinstance(table, cst.Dict))
            )
        }
        self.declarations.keep(once)

    def seen(self, node: cst.CSTNode) -> None:
        """Note module-level values besides names."""
        match node:
            case cst.Assign(targets=[target], value=value):
                self._note(target.target, value)
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                self._note(target, value)
            case cst.TypeAlias(name=name, value=value):
                self._note(name, value)
            case _ if self._loops and is_loop(node):
                seen = self._loops.get(self.span_of(node).start_line)
                if seen is not None:
                    self.loops.append((node, self._within[-1:], tuple(self.scopes), seen))
        super().seen(node)

    def _note(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        if len(self.scopes) > 1:
            return
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            for part, one in zip(target.elements, value.elements, strict=False):
                if isinstance(part, cst.StarredElement) or isinstance(one, cst.StarredElement):
                    break
                self._note(part.value, one.value)
        if not isinstance(target, cst.Name):
            return
        name = target.value
        self.declarations.note(name, value)
        number = constant_int(value)
        if number is not None and number >= 1:
            self.integers[name] = SizeBinding(number, self.span_of(value))
        elif kind := PYTHON_INTEGER if number is not None else self._kind_of(value):
            self.numbers[name] = kind
            if isinstance(value, cst.Float):
                self.floats[name] = value.value
        elif is_of_literals(value, self.integers.keys() | self.numbers.keys()):
            self.tables[name] = value

    def _kind_of(self, node: cst.BaseExpression) -> str | None:
        """Return the type of a number that is made of others; None where it is not known."""
        match node:
            case cst.Integer():
                return PYTHON_INTEGER
            case cst.Float() | cst.Attribute(attr=cst.Name("pi" | "inf" | "nan")):
                return PYTHON_FLOAT
            case cst.Name(value=name):
                return PYTHON_INTEGER if name in self.integers else self.numbers.get(name)
            case cst.UnaryOperation(cst.Minus(), inner):
                return self._kind_of(inner)
            case cst.BinaryOperation(left, operator, right) if isinstance(operator, _ARITHMETIC):
                kinds = {self._kind_of(left), self._kind_of(right)}
                if None in kinds:
                    return None
                whole = kinds == {PYTHON_INTEGER} and not isinstance(operator, cst.Divide)
                return PYTHON_INTEGER if whole else PYTHON_FLOAT
        return None

    def entered(self, node: cst.CSTNode) -> None:
        """Note a function that is a kernel."""
        if isinstance(node, cst.ClassDef):
            self._qualified.append(node.name.value)
        if not isinstance(node, cst.FunctionDef):
            return
        self._within.append(node)
        qualified = ".".join((*self._qualified, node.name.value))
        self.functions.setdefault(node.name.value, []).append((node, tuple(self.scopes)))
        self._qualified += (node.name.value, "<locals>")
        sizes: dict[str, SizeBinding] = {}
        numbers: set[str] = set()
        is_kernel = False
        others: list[str] = []
        asked: Asked | None = None
        lines = [self.span_of(node.name).start_line]
        # decorators belong to the scope around the function
        imports = Imports(self.scopes[:-1])
        for decorator in node.decorators:
            lines.append(self.span_of(decorator.decorator).start_line)
            call = decorator.decorator
            function = call.func if isinstance(call, cst.Call) else call
            full = resolve(function, imports)
            if full in KERNEL_DECORATORS:
                is_kernel = True
                if isinstance(call, cst.Call):
                    sizes.update(self._sizes(call, numbers))
            elif not self._is_harmless(function, full):
                others.append(dotted(function) or "an expression")
                asked = asked_of_numba(full, call)
        above = min(lines) - 1
        while above in self._alone:
            comment = self._kernel_comments.get(above)
            if comment is not None:
                is_kernel = True
                for name, value in comment.sizes:
                    sizes[name] = SizeBinding(value, comment.span)
                numbers.update(comment.numbers)
            above -= 1
        shown = self._observed.get(qualified, [])
        if is_kernel:
            # what the author states goes over what the calls in the file suggest
            shown = [seen for seen in shown if seen.source not in READ]
        runs: tuple[Seen | None, ...] = by_signature(seen for seen in shown if seen.has_arrays)
        kinds = by_kind(shown)
        if is_kernel and not runs:
            runs = (None,)
        self.kernels += (
            FoundKernel(
                node,
                sizes,
                above + 1,
                tuple(self.scopes),
                tuple(others),
                is_kernel,
                seen,
                min(lines),
                asked if len(others) == 1 else None,
                frozenset(numbers),
                kinds,
                square(kinds),
            )
            for seen in runs
        )

    def left(self, node: cst.CSTNode) -> None:
        """Leave the name of a class or function."""
        super().left(node)
        if isinstance(node, cst.ClassDef):
            self._qualified.pop()
        elif isinstance(node, cst.FunctionDef):
            del self._qualified[-2:]
            self._within.pop()

    def _is_harmless(self, function: cst.BaseExpression, full: str | None) -> bool:
        if full is not None:
            return full in _HARMLESS_DECORATORS
        return (
            isinstance(function, cst.Name)
            and function.value in ("staticmethod", "classmethod", "property")
            and not any(function.value in scope.bound for scope in self.scopes)
        )

    def _sizes(self, call: cst.Call, numbers: set[str]) -> dict[str, SizeBinding]:
        found: dict[str, SizeBinding] = {}
        for argument in call.args:
            span = self.span_of(argument)
            if argument.keyword is None:
                raise self.declarations.problem(argument, "sizes are keywords: @kernel(N=1000)")
            value = constant_int(argument.value)
            name = argument.keyword.value
            if isinstance(argument.value, cst.Float):
                numbers.add(name)
                continue
            if value is None:
                raise self.declarations.problem(argument, f"size {name} must be a whole number")
            if value < 1:
                raise self.declarations.problem(
                    argument, f"size {name} must be at least 1, not {value}"
                )
            found[name] = SizeBinding(value, span)
        return found
