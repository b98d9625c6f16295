"""Assignments, imports and classes of an SPMD program: what names then denote or hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from advisor.frontend.bindings import dotted, imported_names
from advisor.frontend.scope import OF_SYNTAX
from advisor.frontend.spmd import communicators
from advisor.frontend.spmd.door import operation
from advisor.frontend.spmd.expressions import combine, evaluate, slices
from advisor.frontend.spmd.functions import define, of_annotation
from advisor.frontend.spmd.joining import key_of, replaced
from advisor.frontend.spmd.run import Context, Run
from advisor.frontend.spmd.subscripts import part_of, part_of_view, promoted, put
from advisor.frontend.spmd.values import (
    Array,
    Class,
    Comm,
    External,
    Function,
    Number,
    Opaque,
    Record,
    Sequence,
    Sibling,
    Text,
    Value,
)
from advisor.ir.spmd.memory import Origin, View
from advisor.ir.spmd.steps import Compute, Copy, Step
from advisor.ir.values import Scalar
from advisor.numpy_table import PYTHON_FLOAT
from costdb.expr.nodes import Num

SIZE_FROM = 3
"""Numbers from here on that a name is given are sizes, which a user may want to change."""


def assign(node: cst.Assign, run: Run) -> None:
    """Follow an assignment to one or several targets."""
    targets: list[cst.BaseExpression] = [target.target for target in node.targets]
    found = _several(targets, node.value, run) or assigned(targets, node.value, run)
    found = as_size(dotted(targets[0]) or "", found, run)
    for target in targets:
        store(target, found, run)


def assigned(targets: list[cst.BaseExpression], node: cst.BaseExpression, run: Run) -> Value:
    """Return a value; what is made for it is called as what it is assigned to."""
    with run.named(*(_name_of(target, run) for target in targets)):
        return evaluate(node, run)


def _several(targets: list[cst.BaseExpression], node: cst.BaseExpression, run: Run) -> Value | None:
    """Return the values of ``a, b = ..., ...``, each called as what it is assigned to."""
    target = targets[0]
    if len(targets) > 1 or not isinstance(target, cst.Tuple) or not isinstance(node, cst.Tuple):
        return None
    elements = (*target.elements, *node.elements)
    starred = any(isinstance(part, cst.StarredElement) for part in elements)
    if starred or len(node.elements) != len(target.elements):
        return None
    pairs = zip(target.elements, node.elements, strict=True)
    found = [(dotted(to.value) or "", assigned([to.value], one.value, run)) for to, one in pairs]
    return Sequence(tuple(as_size(name, value, run) for name, value in found), is_list=False)


def augment(node: cst.AugAssign, run: Run) -> None:
    """Follow an augmented assignment; arrays are changed in place."""
    operator = type(node.operator).__name__.removesuffix("Assign")
    left = evaluate(node.target, run)
    loaded = run.steps[-1][-1] if run.steps[-1] else None
    right = evaluate(node.value, run)
    span = run.statement
    if isinstance(left, Array) and operator == "MatrixMultiply":
        made = combine(operator, left, right, run, span)
        if isinstance(made, Array):
            run.emit(Copy(left.view, made.view, span))
        return
    if isinstance(left, Array):
        operation(OF_SYNTAX[operator], (left, right), run, span, left.view)
        if isinstance(node.target, cst.Subscript) and left.view.span == run.span(node.target):
            _put_back(node.target, left, run)
        return
    found = combine(operator, left, right, run, span)
    if isinstance(node.target, cst.Subscript):
        owner = evaluate(node.target.value, run)
        if isinstance(owner, Array):
            run.emit(Compute(_place(owner.view, loaded), (), None, span, "element"))
            return
    store(node.target, found, run)


def _put_back(target: cst.Subscript, changed: Array, run: Run) -> None:
    """Store a copy of chosen elements where they were taken; what chooses them is known by then."""
    if changed.view.buffer.allocation.copied is None:
        return
    with run.block():
        owner, index = evaluate(target.value, run), slices(target.slice, run)
    if isinstance(owner, Array):
        put(owner.view, index, changed, run, run.statement)


def _place(view: View, loaded: Step | None) -> View:
    """Return the element that was loaded last, where it is one of an array; else all of it."""
    match loaded:
        case Compute(target=None, reads=(one,), what="element") if one.buffer == view.buffer:
            return one
    return view


def _name_of(target: cst.BaseExpression, run: Run) -> str:
    if isinstance(target, cst.Subscript):
        # an entry of a dictionary or list is called by its text, a part of an array is not
        value = run.plain(target.value)
        return run.text(target) if isinstance(value, Record | Sequence) else ""
    return dotted(target) or ""


def as_size(name: str, found: Value, run: Run) -> Value:
    """Return a number that a name is given as a size, so that it can be changed and is told of."""
    match found:
        case Number(expr=Num(value), dtype="int" | "float") if name and value >= SIZE_FROM:
            if value == int(value):
                origin = f"line {run.statement.start_line}{run.place}"
                known = run.symbols.known(name, int(value), origin, run.statement)
                return Number(known, found.dtype)
    return found


def store(target: cst.BaseExpression, value: Value, run: Run) -> None:
    """Let a target denote or hold a value."""
    match target:
        case cst.Name(value=name):
            if isinstance(value, Number) and value.expr is None and value.dtype == "int":
                why = f"`{name}` is not known"
                made = run.symbols.unknown(name, why, run.statement, varies=value.varies)
                value = Number(made, "int", value.nobody, value.varies)
            run.bind(name, value)
        case cst.Attribute():
            owner = evaluate(target.value, run)
            if isinstance(owner, Record):
                run.keep(owner.number, target.attr.value, value)
            elif isinstance(owner, Array) and target.attr.value in ("shape", "dtype", "strides"):
                run.reshaped(owner.view)
        case cst.Subscript():
            _store_part(target, value, run)
        case cst.Tuple() | cst.List():
            count = len(target.elements)
            if _unpacked_shape(target, value, run):
                return
            for position, element in enumerate(target.elements):
                if isinstance(element, cst.StarredElement):
                    store(element.value, Opaque("the rest of a sequence"), run)
                else:
                    part = part_of(value, position, count, run)
                    store(element.value, _of_its_own(part, value, element.value, position), run)
        case cst.StarredElement():
            store(target.value, value, run)


def _of_its_own(part: Value, whole: Value, target: cst.BaseExpression, position: int) -> Value:
    """Return one of the arrays that a comprehension makes, each of which is another array."""
    if not isinstance(whole, Sequence) or whole.items is not None or not isinstance(part, Array):
        return part
    view = part.view
    if view.buffer.allocation.origin is Origin.PARAMETER:
        return part
    name = dotted(target) or view.buffer.name
    own = replace(view.buffer, name=name, number=view.buffer.number * 100 + position)
    return Array(replace(view, buffer=own))


def _unpacked_shape(target: cst.Tuple | cst.List, value: Value, run: Run) -> bool:
    """Name the extents of an array of unknown shape after what they are unpacked to."""
    if not isinstance(value, Opaque) or not value.text.endswith(".shape"):
        return False
    owner = value.text.removesuffix(".shape")
    names = [e.value.value for e in target.elements if isinstance(e.value, cst.Name)]
    if len(names) != len(target.elements):
        return False
    view = run.given_array(owner, run.statement, len(names))
    for name, extent in zip(names, view.buffer.extents or (), strict=True):
        run.bind(name, Number(extent))
    found = run.lookup(owner) if "." not in owner else None
    if isinstance(found, Opaque):
        run.bind(owner, Array(view))
    return True


def _store_part(target: cst.Subscript, value: Value, run: Run) -> None:
    owner = evaluate(target.value, run)
    index = slices(target.slice, run)
    owner = promoted(owner, index, target.value, run)
    match owner:
        case Array(view):
            place = part_of_view(view, index, run, run.span(target), run.text(target))
            if place is None and put(view, index, value, run, run.statement):
                return
            _store_elements(place, view, value, run)
        case Record(number=number):
            run.keep(number, key_of(index, run), value)
        case Sequence():
            run.rebind(target.value, replaced(owner, index, value, run))


def _store_elements(place: View | None, view: View, value: Value, run: Run) -> None:
    span = run.statement
    if place is None:
        place = View(view.buffer, None, run.text_of(span).partition("=")[0].strip(), span)
    if isinstance(value, Array):
        run.emit(Copy(place, value.view, span))
    else:
        single = "element" if place.shape == () else ""
        run.emit(Compute(place, (), Scalar("?", PYTHON_FLOAT), span, single))


# What classes and imports bind names to.


def define_class(node: cst.ClassDef, run: Run) -> Value:
    """Return a class of the file; methods of base classes in the file are its own too."""
    methods: dict[str, Function] = {}
    constants: dict[str, Value] = {}
    for base in node.bases:
        found = run.plain(base.value)
        if isinstance(found, Class):
            methods.update(found.methods)
            constants.update(found.constants)
    name, inherited = node.name.value, tuple(methods.items())
    made: list[Function] = []
    for statement in node.body.body:
        if isinstance(statement, cst.FunctionDef):
            made.append(define(statement, run, f"{name}.{statement.name.value}"))
            methods[statement.name.value] = made[-1]
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                run.statement = run.span(small)
                _constant(small, constants, run)
    own = tuple(methods.items()), tuple(constants.items())
    cls = Class(name, *own, run.file.module, inherited)
    for function in made:
        run.file.defined[function.name].owner = cls
    return cls


def _constant(node: cst.BaseSmallStatement, constants: dict[str, Value], run: Run) -> None:
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
            constants[name] = as_size(name, run.evaluate(value, run), run)
        case cst.AnnAssign(target=cst.Name(value=name), value=None):
            found = of_annotation(node.annotation.annotation, name, run)
            constants[name] = found or Opaque(f"`{name}`", text=name)
        case cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value):
            constants[name] = as_size(name, run.evaluate(value, run), run)


# libraries with communicators or receivers of their own, and everything of the standard library
_KNOWN_NAMES = """
numpy mpi4py numba math sys os time timeit argparse json docopt click functools itertools
random copy collections logging warnings socket smtplib cupy jax mpi4jax torch nccl pynccl
multiprocessing asyncio zmq serial h5py scipy pandas matplotlib tensorflow ray dask
concurrent threading queue struct pickle re string datetime pathlib shutil subprocess typing
dataclasses abc enum contextlib operator statistics tempfile gc platform getopt petsc4py
slepc4py paramiko http urllib ssl select signal io csv glob traceback mpl_toolkits
"""
_KNOWN = frozenset(_KNOWN_NAMES.split())

_SHARED = Function | Class | Comm | Number | External | Sibling
"""What means the same in the file that imports it; arrays may be changed in between."""


def imported(node: cst.Import | cst.ImportFrom, run: Run) -> Iterator[tuple[str, Value]]:
    """Yield every name that an import binds, and what it stands for."""
    module = ""
    if isinstance(node, cst.ImportFrom):
        module = (dotted(node.module) or "") if node.module is not None else ""
        if isinstance(node.names, cst.ImportStar):
            yield from _all_of(module, node, run)
            return
    known = imported_names([node])
    assert not isinstance(node.names, cst.ImportStar)
    for alias in node.names:
        whole = alias.evaluated_name
        name = alias.evaluated_alias or whole
        found = _from_beside(node, module, whole, run) if "." not in name else None
        name = name.partition(".")[0]
        path = known.get(name)
        if found is None and path is not None and path.partition(".")[0] in _KNOWN:
            found = communicators.external(path, run)
        yield name, found or _of_another_file(name)


def _of_another_file(name: str) -> Value:
    return Opaque(f"`{name}` is imported from another file", text=name)


def _all_of(module: str, node: cst.ImportFrom, run: Run) -> Iterator[tuple[str, Value]]:
    """Yield what a star import binds."""
    context = _beside(module, node, run) if module else None
    if context is None:
        return
    names = context.frame.names
    listed = names.get("__all__")
    items = listed.items or () if isinstance(listed, Sequence) else ()
    shown = {item.value for item in items if isinstance(item, Text)}
    for name, found in names.items():
        if name in shown if listed is not None else not name.startswith("_"):
            yield name, found if isinstance(found, _SHARED) else _of_another_file(name)


def _beside(module: str, node: cst.Import | cst.ImportFrom, run: Run) -> Context | None:
    """Return a module beside the program that an import names; None for any other."""
    relative = len(node.relative) if isinstance(node, cst.ImportFrom) else 0
    if relative > 1 or (not relative and module.partition(".")[0] in _KNOWN):
        return None
    return run.context(module)


def _from_beside(
    node: cst.Import | cst.ImportFrom, module: str, name: str, run: Run
) -> Value | None:
    """Return a module beside the program, or what it holds; None for what is elsewhere."""
    if not module:
        return None if _beside(name, node, run) is None else Sibling(name)
    context = _beside(module, node, run)
    found = None if context is None else context.frame.names.get(name)
    return found if isinstance(found, _SHARED) else None
