"""What imported names stand for in an SPMD program."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from advisor.frontend.names import dotted, imported_names
from advisor.frontend.spmd import communicators
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import External, Opaque, Value

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


def imported(node: cst.Import | cst.ImportFrom, run: Run) -> Iterator[tuple[str, Value]]:
    """Yield every name that an import binds, and what it stands for."""
    if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
        module = dotted(node.module) if node.module is not None else None
        if module in ("mpi4py.MPI", "numpy", "math"):
            yield "*", External(module)
        return
    known = imported_names([node])
    for name, path in known.items():
        if path.partition(".")[0] in _KNOWN:
            yield name, communicators.constant(path, run) or External(path)
        else:
            yield name, Opaque(f"`{name}` is imported from another file", text=name)
    if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
        for alias in node.names:
            name = alias.evaluated_alias or alias.evaluated_name
            if name not in known:
                yield name, Opaque(f"`{name}` is imported from another file", text=name)
