"""What classes and imports bind names to."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from advisor.frontend.naming.names import dotted, imported_names
from advisor.frontend.spmd import communicators
from advisor.frontend.spmd.assignments import as_size
from advisor.frontend.spmd.frames import Context
from advisor.frontend.spmd.functions import define, of_annotation
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Class,
    Comm,
    External,
    Function,
    Number,
    Opaque,
    Sequence,
    Sibling,
    Text,
    Value,
)


def define_class(node: cst.ClassDef, run: Run) -> Value:
    """Return a class of the file; methods of base classes in the file are its own too."""
    methods: dict[str, Function] = {}
    constants: dict[str, Value] = {}
    for base in node.bases:
        found = run.plain(base.value)
        if isinstance(found, Class):
            methods.update(found.methods)
            constants.update(found.constants)
    name = node.name.value
    made: list[Function] = []
    for statement in node.body.body:
        if isinstance(statement, cst.FunctionDef):
            made.append(define(statement, run, f"{name}.{statement.name.value}"))
            methods[statement.name.value] = made[-1]
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                run.statement = run.span(small)
                _constant(small, constants, run)
    cls = Class(name, tuple(methods.items()), tuple(constants.items()), run.file.module)
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
    if module in ("mpi4py.MPI", "numpy", "math"):
        yield "*", External(module)
    context = _beside(module, node, run) if module else None
    if context is None:
        return
    names = context.frame.names
    listed = names.get("__all__")
    items = listed.items or () if isinstance(listed, Sequence) else ()
    shown = {item.value for item in items if isinstance(item, Text)}
    for name, found in names.items():
        if name in shown if listed is not None else not name.startswith(("_", "*")):
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
    return found if isinstance(found, Function | Class | Comm | Number) else None
