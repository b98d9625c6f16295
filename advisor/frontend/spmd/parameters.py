"""What parameters, classes and imports bind names to."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from advisor.frontend.naming.names import dotted, imported_names
from advisor.frontend.spmd import communicators
from advisor.frontend.spmd.assignments import as_size
from advisor.frontend.spmd.expressions import arguments, evaluate
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.options import click_options
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    Class,
    Comm,
    External,
    Function,
    Nothing,
    Number,
    Opaque,
    Record,
    Sequence,
    Sibling,
    Text,
    Value,
)
from advisor.ir.spmd.ranks import CommKind


def given_parameters(function: Function, given: list[Argument], run: Run) -> dict[str, Value]:
    """Return values for the parameters of a function by the arguments of a call."""
    node = function.node
    params = [*node.params.posonly_params, *node.params.params]
    names: dict[str, Value] = {}
    positional = [a.value for a in given if a.keyword is None and not a.star]
    starred = any(a.star for a in given)
    if function.owner is not None and params and not _is_static(node):
        positional.insert(0, function.owner)
    for parameter, value in zip(params, positional, strict=False):
        names[parameter.name.value] = value
    keywords = {a.keyword: a.value for a in given if a.keyword is not None}
    options = _options(node, run)
    for parameter in (*params, *node.params.kwonly_params):
        name = parameter.name.value
        if name in keywords:
            names[name] = keywords[name]
        elif name not in names and name in options:
            names[name] = options[name]
        elif name not in names and not starred and parameter.default is not None:
            names[name] = _default(parameter, run)
        elif name not in names:
            names[name] = _unknown(parameter, run)
    _rest(node, positional[len(params) :], names)
    return names


def _rest(node: cst.FunctionDef, rest: list[Value], names: dict[str, Value]) -> None:
    star = node.params.star_arg
    if isinstance(star, cst.Param):
        names[star.name.value] = Sequence(tuple(rest), is_list=False)
    if node.params.star_kwarg is not None:
        names[node.params.star_kwarg.name.value] = Opaque("keyword arguments")


def _options(node: cst.FunctionDef, run: Run) -> dict[str, Value]:
    found = []
    for decorator in node.decorators:
        called = decorator.decorator
        if isinstance(called, cst.Call) and (dotted(called.func) or "").startswith("click."):
            found.append(arguments(called, run))
    return click_options(node, found, run) if found else {}


def _default(parameter: cst.Param, run: Run) -> Value:
    """Return a parameter's default; whole numbers are sizes that a caller may change."""
    assert parameter.default is not None
    with run.block():
        found = evaluate(parameter.default, run)
    if isinstance(found, Number):
        value = run.integer(found)
        if value is not None and value >= 3 and found.dtype == "int":
            span = run.span(parameter)
            name = parameter.name.value
            origin = f"default of `{name}`, line {span.start_line}{run.place}"
            return Number(run.symbols.known(name, value, origin, span))
    return found


def unknown_parameters(node: cst.FunctionDef, owner: Record | None, run: Run) -> dict[str, Value]:
    """Return values for the parameters of a function that nothing in the file calls."""
    names: dict[str, Value] = {}
    params = [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]
    options = _options(node, run)
    run.frame.of_all_ranks = ""  # each function is given its own
    for position, parameter in enumerate(params):
        name = parameter.name.value
        if position == 0 and owner is not None and not _is_static(node):
            names[name] = owner
        elif name in options:
            names[name] = options[name]
        elif parameter.default is not None:
            found = _default(parameter, run)
            stated = _unknown(parameter, run)
            names[name] = stated if isinstance(found, Nothing | Text) else found
        else:
            names[name] = _unknown(parameter, run)
    _rest(node, [], names)
    return names


def _is_static(node: cst.FunctionDef) -> bool:
    return any(
        isinstance(d.decorator, cst.Name) and d.decorator.value == "staticmethod"
        for d in node.decorators
    )


def _unknown(parameter: cst.Param, run: Run) -> Value:
    """Return what a parameter is that no call gives."""
    name = parameter.name.value
    if parameter.annotation is not None:
        found = of_annotation(parameter.annotation.annotation, name, run)
        if found is not None:
            return found
    return Opaque(f"`{name}` is a parameter that nothing in the file gives", text=name)


def of_annotation(node: cst.BaseExpression, name: str, run: Run) -> Value | None:
    """Return what an annotation says that a name denotes."""
    text = run.text(node).strip("'\"")
    bare = text.removeprefix("Optional[").partition("[")[0].partition(" |")[0].rstrip("]")
    last = bare.rpartition(".")[2]
    if last in ("Comm", "Intracomm", "Cartcomm", "Intercomm"):
        module = run.lookup(bare.partition(".")[0])
        if isinstance(module, External) and module.path.startswith("mpi4py"):
            kind = CommKind.GIVEN
            return Comm(run.communicator(kind, name, run.span(node)))
    if bare == "int":
        why = f"`{name}` is a parameter that nothing in the file gives"
        return Number(run.symbols.unknown(name, why, run.span(node)))
    if bare in ("float", "complex"):
        return Number(None, bare)
    if bare == "str":
        return Text(None)
    if last in ("ndarray", "NDArray", "ArrayLike"):
        return Array(run.given_array(name, run.span(node), None, None))
    return None


# Classes of a file: their methods, and what their bodies bind.


def define_class(node: cst.ClassDef, run: Run) -> Value:
    """Return a class of the file; methods of base classes in the file are its own too."""
    methods: dict[str, Function] = {}
    constants: dict[str, Value] = {}
    for base in node.bases:
        found = run.plain(base.value)
        if isinstance(found, Class):
            methods.update(found.methods)
            constants.update(found.constants)
    made: list[str] = []
    for statement in node.body.body:
        if isinstance(statement, cst.FunctionDef):
            name = f"{node.name.value}.{statement.name.value}"
            function = run.functions.add(name, statement, run)
            methods[statement.name.value] = function
            made.append(function.name)
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                run.statement = run.span(small)
                _constant(small, constants, run)
    cls = Class(
        node.name.value, tuple(methods.items()), tuple(constants.items()), run.functions.module
    )
    run.functions.own(cls, made, run)
    return cls


def _constant(node: cst.BaseSmallStatement, constants: dict[str, Value], run: Run) -> None:
    match node:
        case cst.Assign(targets=[target], value=value) if isinstance(target.target, cst.Name):
            name = target.target.value
            constants[name] = as_size(name, evaluate(value, run), run)
        case cst.AnnAssign(target=cst.Name(value=name), value=value):
            if value is None:
                found = of_annotation(node.annotation.annotation, name, run)
            else:
                found = as_size(name, evaluate(value, run), run)
            constants[name] = found or Opaque(f"`{name}`", text=name)


# What imported names stand for in an SPMD program.

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
    if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
        module = dotted(node.module) if node.module is not None else None
        if module in ("mpi4py.MPI", "numpy", "math"):
            yield "*", External(module)
        elif module is not None and len(node.relative) <= 1:
            yield from _all_of(module, run)
        return
    known = imported_names([node])
    beside = dict(_from_beside(node, run))
    yield from beside.items()
    for name, path in known.items():
        if name in beside:
            continue
        if path.partition(".")[0] in _KNOWN:
            yield name, communicators.constant(path, run) or External(path)
        else:
            yield name, Opaque(f"`{name}` is imported from another file", text=name)
    if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
        for alias in node.names:
            name = alias.evaluated_alias or alias.evaluated_name
            if name not in known and name not in beside:
                yield name, Opaque(f"`{name}` is imported from another file", text=name)


def _all_of(module: str, run: Run) -> Iterator[tuple[str, Value]]:
    """Yield what a star import binds from a module beside the program."""
    context = None if module.partition(".")[0] in _KNOWN else run.context(module)
    if context is None:
        return
    names = context.frame.names
    listed = names.get("__all__")
    shown = None if listed is None else _texts(listed)
    for name, found in names.items():
        if name in shown if shown is not None else not name.startswith(("_", "*")):
            other = Opaque(f"`{name}` is imported from another file", text=name)
            yield name, found if isinstance(found, _SHARED) else other


def _texts(value: Value) -> frozenset[str]:
    items = value.items or () if isinstance(value, Sequence) else ()
    return frozenset(item.value for item in items if isinstance(item, Text) and item.value)


def _from_beside(node: cst.Import | cst.ImportFrom, run: Run) -> Iterator[tuple[str, Value]]:
    """Yield the names that an import binds to modules beside the program, or to what they hold."""
    if isinstance(node, cst.Import):
        for alias in node.names:
            whole = alias.evaluated_name
            name = alias.evaluated_alias or whole
            if whole.partition(".")[0] not in _KNOWN and "." not in name and run.context(whole):
                yield name, Sibling(whole)
        return
    if isinstance(node.names, cst.ImportStar) or len(node.relative) > 1:
        return
    module = dotted(node.module) if node.module is not None else ""
    if module is None or (not node.relative and module.partition(".")[0] in _KNOWN):
        return
    for alias in node.names:
        name = alias.evaluated_alias or alias.evaluated_name
        if not module:
            if run.context(alias.evaluated_name) is not None:
                yield name, Sibling(alias.evaluated_name)
            continue
        context = run.context(module)
        found = None if context is None else context.frame.names.get(alias.evaluated_name)
        if isinstance(found, Function | Class | Comm | Number):
            yield name, found
