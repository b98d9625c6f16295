"""Annotations of the source, as specifications: meshes, distributions, element types.

The annotation is rebuilt from its syntax; nothing of the scanned file is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import libcst as cst

from advisor.annotations import Block, Cyclic, Dist, Mesh
from advisor.distribution import ArraySpec, spec_of_dist
from advisor.dtypes import UnknownDtype, dtype_of, is_dtype
from advisor.frontend.naming.literals import constant_int
from advisor.frontend.naming.names import dotted, resolve
from advisor.ir.kernel import DeclaredArray, Places
from advisor.ir.statements import Threads
from advisor.observed import Seen
from advisor.source import SourceProblem, Span
from costdb.expr import Expr, ExprError, parse

Entry = TypeVar("Entry")

_PYTHON_TYPES = frozenset({"bool", "complex", "float", "int"})


@dataclass(frozen=True, slots=True)
class ReadMesh:
    """A mesh, and where each of its extents stands."""

    mesh: Mesh
    extent_spans: tuple[tuple[str, Span], ...]


@dataclass(frozen=True, slots=True)
class ReadDist:
    """A distribution, and where its entries and the extents of its mesh stand."""

    dist: Dist
    dimension_spans: tuple[Span, ...]
    mesh_spans: tuple[tuple[str, Span], ...]


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
        self.meshes: dict[str, ReadMesh] = {}
        self.dists: dict[str, ReadDist] = {}
        self.types: dict[str, cst.Subscript] = {}
        self.elements: dict[str, str] = {}

    def problem(self, node: cst.CSTNode, message: str) -> SourceProblem:
        """Return a one-line error at a node."""
        span = self.span_of(node)
        return SourceProblem(self.path, span.start_line, span.start_column, message)

    def note(self, name: str, value: cst.BaseExpression) -> None:
        """Remember module-level names of a mesh, a distribution or a type of arrays."""
        if isinstance(value, cst.Subscript):
            element = self._element_type(value)
            if self._is_annotated(value):
                self.types[name] = value
            elif element is not None:
                self.elements[name] = element
        elif isinstance(value, cst.Call):
            function = resolve(value.func, self.imports)
            if function in ("advisor.Mesh", "advisor.annotations.Mesh"):
                self.meshes[name] = self.mesh(value)
            elif function in ("advisor.Dist", "advisor.annotations.Dist"):
                self.dists[name] = self.dist(value)

    def keep(self, names: Collection[str]) -> None:
        """Forget what is known under other names."""
        self.meshes = {n: mesh for n, mesh in self.meshes.items() if n in names}
        self.dists = {n: dist for n, dist in self.dists.items() if n in names}
        self.types = {n: node for n, node in self.types.items() if n in names}
        self.elements = {n: element for n, element in self.elements.items() if n in names}

    def _known(self, node: cst.BaseExpression, table: Mapping[str, Entry]) -> Entry | None:
        if not isinstance(node, cst.Name) or node.value in self.hidden:
            return None
        return table.get(node.value)

    def mesh(self, node: cst.BaseExpression) -> ReadMesh:
        """Return the mesh an expression denotes."""
        known = self._known(node, self.meshes)
        if known is not None:
            return known
        if not isinstance(node, cst.Call):
            raise self.problem(node, "a mesh must be a `Mesh(...)` or a module-level name of one")
        axes: dict[str, int | str] = {}
        spans: list[tuple[str, Span]] = []
        for argument in node.args:
            if argument.keyword is None:
                raise self.problem(node, "mesh axes are keywords: Mesh(row=4, col=4)")
            axes[argument.keyword.value] = self._extent(argument.value)
            spans.append((argument.keyword.value, self.span_of(argument.value)))
        try:
            return ReadMesh(Mesh(**axes), tuple(spans))
        except (ValueError, TypeError) as error:
            raise self.problem(node, str(error)) from error

    def _extent(self, node: cst.BaseExpression) -> int | str:
        number = constant_int(node)
        if number is not None:
            return number
        if isinstance(node, cst.SimpleString):
            return str(node.evaluated_value)
        raise self.problem(node, "a mesh extent is a number or the name of a size in quotes")

    def dist(self, node: cst.BaseExpression) -> ReadDist:
        """Return the distribution an expression denotes."""
        known = self._known(node, self.dists)
        if known is not None:
            return known
        if not isinstance(node, cst.Call):
            raise self.problem(node, "a distribution must be a `Dist(...)` or a name of one")
        entries: list[str | int | Block | Cyclic | None] = []
        keywords: dict[str, Any] = {}
        nodes: list[cst.BaseExpression] = []
        mesh_spans: tuple[tuple[str, Span], ...] = ()
        for argument in node.args:
            if argument.star:
                raise self.problem(node, "a starred argument of Dist cannot be read")
            if argument.keyword is None:
                entries.append(self._entry(argument.value))
                nodes.append(argument.value)
            elif argument.keyword.value == "on":
                found = self.mesh(argument.value)
                keywords["on"] = found.mesh
                mesh_spans = found.extent_spans
            else:
                keywords[argument.keyword.value] = self._plain(argument.value)
        try:
            made = Dist(*entries, **keywords)
        except (ValueError, TypeError) as error:
            raise self.problem(node, str(error)) from error
        half = nodes[len(nodes) // 2 :]
        return ReadDist(made, tuple(self.span_of(entry) for entry in half), mesh_spans)

    def _entry(self, node: cst.BaseExpression) -> str | int | Block | Cyclic | None:
        if isinstance(node, cst.Call):
            function = resolve(node.func, self.imports) or ""
            kind = function.rsplit(".", 1)[-1]
            if not function.startswith("advisor.") or kind not in ("Block", "Cyclic"):
                raise self.problem(node, "expected Block(...), Cyclic(...), a mesh axis or None")
            plain = [self._plain(a.value) for a in node.args if a.keyword is None]
            named = {a.keyword.value: self._plain(a.value) for a in node.args if a.keyword}
            maker = Block if kind == "Block" else Cyclic
            try:
                return maker(*plain, **named)
            except (ValueError, TypeError) as error:
                raise self.problem(node, str(error)) from error
        value = self._plain(node)
        if value is None or isinstance(value, str | int):
            return value
        raise self.problem(node, "expected an extent, a mesh axis, Block, Cyclic or None")

    def _plain(self, node: cst.BaseExpression) -> Any:
        """Return a literal: None, a number, a string, or a tuple of them."""
        number = constant_int(node)
        if number is not None:
            return number
        match node:
            case cst.SimpleString():
                return node.evaluated_value
            case cst.Name(value="None"):
                return None
            case cst.Tuple():
                return tuple(self._plain(element.value) for element in node.elements)
        raise self.problem(node, "only literals can be read here; nothing is executed")

    def declared(self, name: str, annotation: cst.BaseExpression) -> DeclaredArray | None:
        """Return what ``name: Annotated[NDArray[T], Dist(...)]`` declares; None for others."""
        if isinstance(annotation, cst.Name):
            annotation = self._known(annotation, self.types) or annotation
        if not isinstance(annotation, cst.Subscript) or not self._is_annotated(annotation):
            return None
        parts = [e.slice.value for e in annotation.slice if isinstance(e.slice, cst.Index)]
        for metadata in parts[1:]:
            if self._is_dist(metadata):
                found = self.dist(metadata)
                spec = spec_of_dist(name, found.dist, self._element_type(parts[0]))
                places = Places(self.span_of(metadata), found.dimension_spans, found.mesh_spans)
                return declaration(self.path, spec, places)
        return None

    def _is_annotated(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Subscript) and resolve(node.value, self.imports) in (
            "typing.Annotated",
            "typing_extensions.Annotated",
        )

    def _is_dist(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Name):
            return self._known(node, self.dists) is not None
        if not isinstance(node, cst.Call):
            return False
        return resolve(node.func, self.imports) in ("advisor.Dist", "advisor.annotations.Dist")

    def _element_type(self, node: cst.BaseExpression) -> str | None:
        """Return the element type of ``NDArray[np.int32]`` or of a module-level name of it.

        ``np.ndarray[shape, np.dtype[np.int32]]`` is read too.
        """
        known = self._known(node, self.elements)
        if known is not None:
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
