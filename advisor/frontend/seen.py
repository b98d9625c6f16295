"""Declarations from what a run showed, in the place of annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import libcst as cst

from advisor.distribution import ArraySpec, MeshSpec, NotDistributed, StorageOrder
from advisor.frontend.bindings import (
    Imports,
    NameScope,
    ScopeKind,
    ScopeVisitor,
    SeenNames,
    array_bindings,
    assigned_names,
    counted_names,
    held_in,
    name_node,
    names_in,
    names_of_its_own,
    settled,
    target_names,
)
from advisor.frontend.declarations import FoundKernel, LoopAlone
from advisor.frontend.indices import Known, known, pairs
from advisor.frontend.scope import KINDS, Scope, is_kept
from advisor.frontend.trees import NotUnderstood, nodes_in, parts_of
from advisor.ir.kernel import COMPILERS, DeclaredArray, Places, SizeBinding
from advisor.ir.shapes import ArrayType
from advisor.ir.statements import Unknown
from advisor.numpy_table import Kind, UnknownDtype, dtype_of, kind_of
from advisor.observed import READ, Seen, SeenArray, SeenBinding, SeenNumber
from advisor.source import Span
from costdb.expr import ONE, Expr, ExprError, evaluate, free_symbols, sym, to_text
from costdb.expr.functions import is_name
from costdb.expr.nodes import Sym

_Axis = tuple[str, int]
_FEW = 8
"""Numbers up to here are often equal to an extent without having to do with it."""


def as_seen(
    seen: Seen,
    function: FoundKernel,
    scope: Scope,
    parameters: Mapping[str, Span],
    lines: Sequence[str] = (),
) -> None:
    """Let parameters be what a run showed; distributions stay as annotations say.

    Parameters
    ----------
    seen : Seen
    function : FoundKernel
    scope : Scope
        At the start of the kernel, with what annotations declare.
    parameters : mapping of str to Span
        Where each stands, and for what the function only reads, where the function does.
    lines : sequence of str
        Of the file.
    """
    for name, array in list(scope.declared.items()):
        scope.declared[name] = _restated(array, seen)
    bound = function.scopes[-1].bound
    # what a module binds once to a number nothing changes
    read, types = seen.source in READ, {one.name: one.dtype for one in seen.numbers}
    attributes = [name for name in types if "." in name]
    stay = settled("\n".join(lines)) if attributes else frozenset[str]()
    # what it binds first it is not given
    first = _made_first(function.node.body) if read else {}
    made = [
        SeenBinding(lines[scope.span(first[one.name]).start_line - 1].strip(), one.name, one)
        for one in seen.arrays
        if one.name in first
    ]
    scope.seen = SeenNames(
        (*seen.bindings, *made),
        tuple(lines),
        frozenset(
            name
            for name in parameters
            if "." in name or name not in bound.keys() | (types if read else {}).keys()
        ),
        assumed={name: dtype for name, dtype in types.items() if read and "." in name},
        fixed=frozenset(name for name in attributes if {*name.split(".")[1:]} <= stay),
        likely=seen.source == "assumed",
    )
    once = {name for name, targets in bound.items() if len(targets) == 1} - parameters.keys()
    changed = scope.seen.unsettled | assigned_names(function.node.body)
    held = held_in(seen, parameters.keys() - scope.declared.keys() - changed)
    items = {item.name for name in held for item in held[name]}
    sizes = sorted(
        n for n in _sizes(seen) & {*parameters, *items} if is_name(size_of(n).replace(".", "_"))
    )
    known = [one for one in seen.numbers if one.name in sizes]
    arrays = array_bindings(seen)
    inner = Span(function.line, 0, function.line, 0)
    places = {**dict.fromkeys(arrays, inner), **parameters}
    given = [array for array in seen.arrays if array.name in parameters.keys() - first]
    own = {array.name for array in given}
    later = [array for name, array in arrays.items() if name not in own]
    found = _declared((*given, *later), function, places, once, known)
    # how elements lie in memory is a matter of their price, but for who changes them
    strided = {one.name for one in (*given, *later) if one.layout == "A"}
    scope.strided |= strided - scope.declared.keys()
    for name, array in found.items():
        if name in own:
            scope.declared.setdefault(name, array)
    shown = {name: array for name, array in found.items() if name in arrays}
    scope.seen = replace(scope.seen, arrays=shown)
    for name, kind in seen.others:
        if name in parameters and "." not in name and name in bound and kind in KINDS:
            scope.things[name] = kind
    for name in sizes:
        if name in items:
            scope.later_texts[size_of(name)] = name
        elif is_name(name):
            scope.scalars.setdefault(name, sym(name))
    for name, dtype in _other_numbers(seen).items():
        if name in {*parameters, *items} and name not in scope.scalars.keys() | sizes:
            scope.numbers.setdefault(name, dtype)
    for name, numbers in held.items():
        if all(one.name == f"{name}[{k}]" for k, one in enumerate(numbers)):
            scope.written_out[name] = tuple(
                sym(size_of(one.name)) if one.name in sizes else name_node(one.name)
                for one in numbers
            )
        elif is_kept(name, function.node):
            scope.listed[name] = sym(size_of(f"len({name})")), numbers[-1].dtype


def _made_first(body: cst.BaseSuite) -> dict[str, cst.CSTNode]:
    """Return the attributes that statements bind before they read them, and where."""
    found, named = dict[str, cst.CSTNode](), set[str]()
    for part in body.body:
        match part:
            case cst.SimpleStatementLine([cst.Assign(value=value) as made]):
                new = assigned_names(made) - named - names_in(value)
                found |= dict.fromkeys((name for name in new if "." in name), part)
        named |= names_in(part)
    return found


def size_of(name: str) -> str:
    """Return what a number is called in expressions over sizes: an item of a tuple, say."""
    if name.startswith("len("):
        return f"{name[4:-1]}.len"
    return name.replace("[", ".item").rstrip("]")


def compilers(function: FoundKernel, seen: Seen) -> tuple[str, ...]:
    """Return what may do anything with a function, also where a call elsewhere does it."""
    named = function.decorators
    told = any(part in COMPILERS for name in named for part in name.split("."))
    if not told and (seen.source == "numba" or (seen.source == "text" and named)):
        return (*named, "numba")
    # of an undecorated function whose calls a run saw, or the file shows, the text itself runs
    known = named or function.marked or seen.source in ("call", *READ)
    return named if known else ("its caller",)


def untold(seen: Seen, own: NameScope, scope: Scope, span: Span) -> tuple[Unknown, ...]:
    """Return an unknown for an array of which nothing says how a compiled loop walks through it.

    Parameters
    ----------
    seen : Seen
    own : NameScope
        Names of the function.
    scope : Scope
        With what is declared.
    span : Span
        The place to name.
    """
    for array in seen.arrays if seen.source == "numba" else ():
        if array.name in own.used and array.name in scope.strided:
            reason = f"`{array.name}` came with strides that its type does not tell (layout A)"
            return (Unknown(reason, frozenset((array.name,)), span, of_all=True),)
    return ()


def unusable(seen: Seen) -> dict[str, str]:
    """Return for arguments that no model knows what they were."""
    types = {
        array.name: f"`{array.name}` came with elements of type {array.dtype}, which no model knows"
        for array in seen.arrays
        if _kind(array.dtype) is None
    }
    others = {name: f"`{name}` came as {type_}" for name, type_ in seen.others}
    # of a list the text may tell what an array of the same items would be
    return {**types, **{name: why for name, why in others.items() if name not in seen.lists}}


def _declared(
    given: Iterable[SeenArray],
    function: FoundKernel,
    places: Mapping[str, Span],
    once: Collection[str],
    sizes: Iterable[SeenNumber],
) -> dict[str, DeclaredArray]:
    """Return arrays that were seen as declarations of arrays that are not distributed.

    Those of element types that no model knows are left out: the statements that use them become
    unknown, and say so.

    Parameters
    ----------
    given : iterable of SeenArray
        Arguments first.
    function : FoundKernel
        Names that it gives to extents name the sizes.
    places : mapping of str to Span
        Where each parameter stands.
    once : collection of str
        Names that the function binds once.
    sizes : iterable of SeenNumber
        Its parameters that count something.
    """
    arrays = {array.name: array for array in given if array.name in places and _is_usable(array)}
    names = _names_of_extents(function.node, arrays, once, Imports(function.scopes))
    for name, first, then in function.square:
        # where it is 1, too
        if (name, first) in names and then < arrays[name].ndim:
            names.setdefault((name, then), names[name, first])
    # equal extents are one size, or a @ b could not be read: whether an edit holds for others is
    # asked of the kernel with an extent of its own for every dimension
    equal: dict[int | str, str] = {}
    for size in sizes:
        if size.value is not None and size.value > _FEW:
            equal.setdefault(size.like or size.value, size_of(size.name))
    for (name, axis), called in names.items():
        if (what := _extent(arrays[name], axis)) is not None:
            equal.setdefault(what, called)
    shared: dict[tuple[str, ...], str] = {}
    found: dict[str, DeclaredArray] = {}
    for name, array in arrays.items():
        like = shared.setdefault(array.like, name) if array.like else name
        extents = tuple(
            names.get((like, axis)) or _size(f"{like}.axis{axis}", array, axis, equal)
            for axis in range(array.ndim)
        )
        spec = ArraySpec(
            name=name,
            dtype=array.dtype,
            shape=extents,
            dims=tuple(NotDistributed() for _ in extents),
            mesh=MeshSpec(),
            order=_order(array),
            halo=(0,) * array.ndim,
        )
        place = Places(places[name], (), ())
        symbols = tuple(ONE if extent == "1" else sym(extent) for extent in extents)
        found[name] = DeclaredArray(spec, dtype_of(array.dtype).name, symbols, place)
    return found


def _size(name: str, array: SeenArray, axis: int, equal: dict[int | str, str]) -> str:
    """Return what an extent is called: as an equal one is, 1 where it is broadcast."""
    what = _extent(array, axis)
    return name if what is None else "1" if what == 1 else equal.setdefault(what, name)


def _extent(array: SeenArray, axis: int) -> int | str | None:
    """Return how many there are along an axis, in the program's terms where these are known.

    Two sizes of a program may be one number where it was looked at: that of a rank's last row, and
    of all rows, on the last rank.
    """
    known = _shape(array)[axis]
    told = bool(array.like) and (array.shape is not None or bool(array.made))
    return array.like[axis] if told and known != 1 else known


def _shape(array: SeenArray) -> tuple[int | None, ...]:
    """Return the extents that are known, also where not all are."""
    if array.shape is not None:
        return array.shape
    # of what a run showed they only tell what is alike
    told = array.like if array.like and array.made else ("",) * array.ndim
    return tuple(int(one) if one.isdecimal() else None for one in told)


def agreeing(
    misfits: Iterable[tuple[Expr, ...]],
    rebound: Sequence[tuple[Expr, ...]],
    arrays: Iterable[DeclaredArray],
    bound: Iterable[DeclaredArray],
    given: Collection[str],
    sizes: Mapping[str, SizeBinding],
) -> dict[Expr, Expr]:
    """Return what extents are, since the operands of a program that runs fit one another.

    Parameters
    ----------
    misfits : iterable of tuple of Expr
        Pairs that are not known to agree.
    rebound : sequence of tuple of Expr
        Pairs that agree where sizes say so: of an attribute's, and of what is bound to it.
    arrays : iterable of DeclaredArray
        Those that nobody declared.
    bound : iterable of DeclaredArray
        Those that the kernel binds: of what it is given they tell no extents.
    given : collection of str
        Symbols that are known where the kernel begins.
    sizes : mapping of str to SizeBinding
        Those that were shown: what disagrees there does so.
    """
    own = {extent for array in arrays for extent in array.extents if isinstance(extent, Sym)}
    later = {extent for one in bound for extent in one.extents if isinstance(extent, Sym)} - own
    own |= later
    known = {name: size.value for name, size in sizes.items()}
    alike: dict[Expr, Expr] = {}
    for pair in (*misfits, *rebound):
        one, other = (alike.get(extent, extent) for extent in pair)
        kept, gone = _solved(one, other, own)
        if isinstance(kept, Sym) and kept in later and gone not in later:
            kept, gone = gone, kept
        named, begun = free_symbols(kept), {extent.name for extent in own}.union(given)
        if not isinstance(gone, Sym) or gone not in own or gone.name in named or not named <= begun:
            continue
        if gone not in later and named & {extent.name for extent in later}:
            continue
        if free_symbols(kept - gone) <= known.keys():
            if evaluate(kept - gone, known) != 0:
                continue
        elif gone.name in given or pair in rebound:
            continue
        alike = {extent: kept if now == gone else now for extent, now in alike.items()}
        alike[gone] = kept
    return alike


def _solved(one: Expr, other: Expr, own: Collection[Expr]) -> tuple[Expr, Expr]:
    """Return two that are equal since others are, the last an extent of an array if one can be."""
    if other in own or one in own:
        return (one, other) if other in own else (other, one)
    for extent in sorted(own, key=to_text):
        for difference in (one - other, other - one):
            if isinstance(extent, Sym) and extent.name not in free_symbols(extent - difference):
                return extent - difference, extent
    return one, other


def fitted(array: DeclaredArray, alike: Mapping[Expr, Expr]) -> DeclaredArray:
    """Return a declaration with extents that others are taken to agree with."""
    extents = tuple(alike.get(extent, extent) for extent in array.extents)
    spec = replace(array.spec, shape=tuple(map(to_text, extents)))
    return array if extents == array.extents else replace(array, spec=spec, extents=extents)


def _restated(declared: DeclaredArray, seen: Seen) -> DeclaredArray:
    """Return an annotated array with the element type and storage order that were seen."""
    for array in seen.arrays:
        if array.name == declared.spec.name and array.ndim == len(declared.extents):
            if not _is_usable(array):
                return declared
            dtype = dtype_of(array.dtype).name
            spec = replace(declared.spec, order=_order(array), dtype=dtype)
            return replace(declared, spec=spec, dtype=dtype)
    return declared


def _sizes(seen: Seen) -> frozenset[str]:
    """Return the parameters that are sizes: whole numbers, but for those that were below 1."""
    return frozenset(
        number.name
        for number in seen.numbers
        if _kind(number.dtype) is Kind.INTEGER and (number.value is None or number.value >= 1)
    )


def _other_numbers(seen: Seen) -> dict[str, str]:
    """Return the other numeric parameters with their types."""
    sizes = _sizes(seen)
    return {
        number.name: number.dtype
        for number in seen.numbers
        if number.name not in sizes and _kind(number.dtype) is not None
    }


def seen_sizes(
    seen: Seen, arrays: Mapping[str, DeclaredArray], scalars: Collection[str], span: Span
) -> dict[str, SizeBinding]:
    """Return the sizes that the arguments bind; none that two arguments disagree on.

    Parameters
    ----------
    seen : Seen
    arrays : mapping of str to DeclaredArray
        What was declared of the arguments, by annotations or by what was seen.
    scalars : collection of str
        Parameters that are sizes.
    span : Span
        The place to name where one is needed.
    """
    values: dict[str, set[int]] = {}
    origins: dict[str, str] = {}
    bound = array_bindings(seen)
    for array in {**bound, **{one.name: one for one in seen.arrays}}.values():
        declared = arrays.get(array.name)
        if declared is None or len(declared.extents) != array.ndim:
            continue
        for extent, value in zip(declared.extents, _shape(array), strict=True):
            for name, size in () if value is None else solved(extent, value):
                values.setdefault(name, set()).add(size)
                origins.setdefault(name, array.made)
    later = (one.what for one in seen.bindings if isinstance(one.what, SeenNumber))
    for number in (*seen.numbers, *later):
        if size_of(number.name) in scalars and number.value is not None:
            values.setdefault(size_of(number.name), set()).add(number.value)
            origins.setdefault(size_of(number.name), number.given)
    for name, extent_of_mesh in _mesh_sizes(seen, arrays.values()):
        values.setdefault(name, set()).add(extent_of_mesh)
    return {
        name: SizeBinding(next(iter(found)), span, origins.get(name) or seen.origin)
        for name, found in values.items()
        if len(found) == 1 and min(found) >= 1
    }


def solved(extent: Expr, value: int) -> Iterable[tuple[str, int]]:
    """Yield the size that an extent linear in a single one determines."""
    names = free_symbols(extent)
    if len(names) != 1:
        return
    (name,) = names
    try:
        start = evaluate(extent, {name: 0})
        slope = evaluate(extent, {name: 1}) - start
        if slope == 0:
            return
        size = int((value - start) / slope)
        if evaluate(extent, {name: size}) == value:
            yield name, size
    except ExprError:
        return


def _mesh_sizes(seen: Seen, arrays: Iterable[DeclaredArray]) -> Iterable[tuple[str, int]]:
    """Yield the extent of a mesh that the number of ranks determines."""
    for array in arrays:
        names = [extent for _, extent in array.spec.mesh.axes if isinstance(extent, str)]
        known = 1
        for _, extent in array.spec.mesh.axes:
            known *= extent if isinstance(extent, int) else 1
        if seen.ranks > 1 and len(names) == 1 and seen.ranks % known == 0:
            yield names[0], seen.ranks // known


def _order(array: SeenArray) -> StorageOrder:
    # numba calls a vector C, whichever it is
    walked = array.strides_bytes or ()
    turned = array.layout == "A" and len(walked) > 1 and abs(walked[0]) < abs(walked[-1])
    return "F" if (array.layout == "F" and array.ndim > 1) or turned else "C"


def _is_usable(array: SeenArray) -> bool:
    return array.ndim > 0 and _kind(array.dtype) is not None


def _kind(dtype: str) -> Kind | None:
    try:
        return kind_of(dtype)
    except UnknownDtype:
        return None


def _names_of_extents(
    node: cst.FunctionDef,
    arrays: Mapping[str, SeenArray],
    once: Collection[str],
    imports: Mapping[str, str],
) -> dict[_Axis, str]:
    """Return what extents are called by ``n, m = a.shape``, ``n = a.shape[0]`` or ``len(a)``."""
    names: dict[_Axis, str] = {}
    types = {
        name: ArrayType(one.dtype, tuple(sym(f"{name}.axis{k}") for k in range(one.ndim)))
        for name, one in arrays.items()
    }
    places = {e: (name, k) for name, one in types.items() for k, e in enumerate(one.extents)}
    scope = Scope(imports, lambda part: Span(1, 0, 1, 0), locals=types)
    for found in nodes_in(node.body):
        match found:
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value):
                bound: Iterable[tuple[str, Known]] = ()
                with suppress(NotUnderstood):
                    bound = tuple(pairs(target, known(value, scope), scope))
                for name, extent in bound:
                    place = places.get(extent) if isinstance(extent, Expr) else None
                    if place is not None and name in once and name not in names.values():
                        names.setdefault(place, name)
    return names


# What to write for parameters that nothing declares.


def hints(parameters: Iterable[cst.Param], *, in_types: bool) -> dict[str, str]:
    """Return for each of some parameters why it is not known, and what makes it so.

    Parameters
    ----------
    parameters : iterable of libcst.Param
        Those of which neither an annotation nor a comment says what they are.
    in_types : bool
        Whether the kernel is marked by a decorator, not by a comment.
    """
    found: dict[str, str] = {}
    for parameter in parameters:
        name = parameter.name.value
        lack = f"`{name}` has no annotation"
        if parameter.annotation is not None:
            lack = f"the annotation of `{name}` states no extents"
        text = f"`# advise: {name}: f8[N] over (block(row)) on mesh(row=P)` above it"
        if in_types:
            dist = 'Dist("N", Block("row"), on=Mesh(row="P"))'
            text = f"`{name}: Annotated[NDArray[np.float64], {dist}]`"
        found[name] = (
            f"{lack}: write {text}, with its own element type and an extent for each dimension;"
            f" or, if it is a number, `{name}: int` or `{name}: float`"
        )
    return found


# --- alone ----------------------------------------------------------------------------------------
# Statements as a function of the names in them, for who reads functions.


SpanOf = Callable[[cst.CSTNode], Span]


def as_function(
    name: str,
    body: Sequence[Any],
    span_of: SpanOf,
    head: Span,
    parameters: Sequence[str] = (),
    returned: Sequence[str] = (),
) -> tuple[cst.FunctionDef, SpanOf]:
    """Return statements, or a call, as a function with some parameters that returns some names.

    The place of its head is stated; the other result tells where each node stands.
    """
    first, last = span_of(body[0]), span_of(body[-1])
    whole = replace(first, end_line=last.end_line, end_column=last.end_column)
    end = replace(whole, start_line=last.end_line, start_column=last.end_column)
    given = [cst.Param(cst.Name(one)) for one in parameters]
    own: dict[cst.CSTNode, Span] = {one.name: head for one in given}
    if isinstance(body[0], cst.Call):
        gives = cst.Return(body[0])
        body = [cst.SimpleStatementLine([gives])]
        own |= dict.fromkeys((gives, body[0]), whole)
    if returned:
        parts = [cst.Name(one) for one in returned]
        value = cst.Tuple([cst.Element(one) for one in parts]) if parts[1:] else parts[0]
        gives = cst.Return(value)
        body = [*body, cst.SimpleStatementLine([gives])]
        own |= dict.fromkeys((*parts, value, gives, body[-1]), end)
    node = cst.FunctionDef(name_node(name), cst.Parameters(given), cst.IndentedBlock(body))
    own |= {node: whole, node.body: whole, node.name: head}
    return node, lambda one: own[one] if one in own else span_of(one)


def loop_alone(found: LoopAlone, module: cst.Module, span_of: SpanOf) -> tuple[FoundKernel, SpanOf]:
    """Return a loop as a function of the names that it reads, also in functions of the file.

    What it binds that stands anywhere else in the function around it is what it gives back.
    """
    loop, within, scopes, seen = found
    shown: tuple[SeenArray | SeenNumber, ...] = (*seen.arrays, *seen.numbers)
    known = {one.name.partition(".")[0] for one in shown}
    outside = counted_names(within[0] if within else module) - counted_names(loop)
    for other in _others(within[0] if within else module, loop):
        bound = _own_names(other)
        outside -= Counter({n: count for n, count in counted_names(other).items() if n in bound})
    later = assigned_names(loop) & {*outside, *scopes[-1].elsewhere}
    read = sorted(filter(str.isidentifier, known))
    span = span_of(loop)
    head = Span(span.start_line, span.start_column, span.start_line, span.start_column)
    node, places = as_function(seen.function, [loop], span_of, head, read, sorted(later))
    own = ScopeVisitor()
    own.scopes = [*scopes, NameScope(ScopeKind.FUNCTION)]
    for part in parts_of(node):
        own.visit(part)
    line = span.start_line
    kernel = FoundKernel(node, {}, line, tuple(own.scopes), (), marked=False, seen=seen, line=line)
    return kernel, places


def _others(node: cst.CSTNode, loop: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the outermost loops and comprehensions that are not around a loop, and functions."""
    if node is loop:
        return
    around = any(one is loop for one in nodes_in(node))
    if not around and isinstance(node, cst.For | cst.BaseComp | cst.FunctionDef):
        yield node
        return
    for part in parts_of(node):
        yield from _others(part, loop)


def _own_names(node: cst.CSTNode) -> frozenset[str]:
    """Return the names that are bound in a node before they are read there, whatever was before."""
    bound: set[str] = set()
    read: set[str] = set()

    def look(*parts: cst.CSTNode) -> None:
        for part in parts:
            match part:
                case cst.Name(value=name):
                    read.update({name} - bound)
                case cst.Attribute(value=value) | cst.Arg(value=value):
                    look(value)
                case cst.Assign(targets=targets, value=value):
                    look(value)
                    for stored in targets:
                        bound.update(target_names(stored.target))
                        look(stored.target)
                case cst.For(target=target, iter=source, body=body):
                    look(source)
                    perhaps(body, *target_names(target))
                case cst.If() | cst.While() | cst.Try():
                    for one in parts_of(part):
                        perhaps(one)
                case _:
                    look(*parts_of(part))

    def perhaps(body: cst.CSTNode, *names: str) -> None:
        saved = set(bound)
        bound.update(names)
        look(body)
        bound.intersection_update(saved)

    if isinstance(node, cst.For):
        look(node)
    return names_of_its_own(node) - read
