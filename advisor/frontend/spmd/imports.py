"""What imported names stand for in an SPMD program."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from advisor.frontend.naming.names import dotted, imported_names
from advisor.frontend.spmd import communicators
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
