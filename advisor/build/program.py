"""A built program as text: what its kernels call, who owns what, and the kernels."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import libcst

from advisor.build.chunks import write_chunks
from advisor.build.module import Module
from advisor.build.text import NotBuiltError as NotBuiltError
from advisor.build.writer import Function, write
from advisor.ir.kernel import Kernel

_OWN = ("MPI", "np", "OWNERS", "RESULTS", "main", "annotations")
_ALWAYS = ("scatter", "gather")
_EQUAL = libcst.AssignEqual(libcst.SimpleWhitespace(""), libcst.SimpleWhitespace(""))


MPI, DASK = "mpi", "dask"
_CHUNKS = "# Of each kernel, the chunks of the arrays that it takes."
_OWNERS = "# Of each kernel, who owns what of the arrays that it takes, and of its results."


def build(
    path: str,
    kernels: Sequence[Kernel],
    sizes: Mapping[str, int | float],
    plan: str = "",
    to: str = MPI,
) -> str:
    """Return the program that annotated kernels of a file come to.

    Parameters
    ----------
    path : str
        Of the file, for the program's comments.
    kernels : sequence of Kernel
        At least one.
    sizes : mapping of str to number
    plan : str
        What was changed of the kernels as written, in words.
    to : str
        What it is written for: ranks of MPI, or chunks of Dask.

    Raises
    ------
    NotBuiltError
        Something of them has no form: what, and where.
    """
    helpers = definitions() if to == MPI else {}
    names = {kernel.name for kernel in kernels}
    own = (*_OWN, *helpers, *names, *(("da", "CHUNKS") if to == DASK else ()))
    module = Module(sizes, set(own), kernels[0].context.identifiers)
    writing = write if to == MPI else write_chunks
    functions = [writing(kernel, module) for kernel in kernels]
    body = "\n\n\n".join("\n".join(one.lines) for one in functions)
    name = Path(path).name
    said = [
        f"Written by `advise build {name}{'' if to == MPI else ' --to dask'}`"
        f"{f', {plan}' if plan else ''}. A comment says of which line a part is.",
        _USE[to],
    ]
    where = "on the ranks of MPI" if to == MPI else "on chunks of Dask"
    head = [
        f'"""{name}: {", ".join(one.name for one in functions)} {where}.',
        "",
        *(line for part in said for line in textwrap.wrap(part, 95)),
        '"""',
        "",
        *_IMPORTS[to],
    ]
    declared = _declarations(module)
    if to == DASK:
        chunks = (_CHUNKS, *_table("CHUNKS", functions))
        return "\n\n\n".join(map("\n".join, ((*head, "", *declared), (body,), chunks))) + "\n"
    owners = "\n".join(
        (_OWNERS, *_table("OWNERS", functions), *_table("RESULTS", functions, results=True))
    )
    wanted = _used("\n".join((body, owners, *declared)), helpers)
    parts = ["\n".join(head), *(helpers[one] for one in helpers if one in wanted)]
    parts += ["\n".join(declared), body, owners]
    return "\n\n\n".join(parts) + "\n"


_USE = {
    MPI: "Functions take and change this rank's blocks: `scatter` makes them, `gather` collects"
    " them, `OWNERS` says who owns what. Any launcher of MPI runs it, on any number of ranks.",
    DASK: "Functions take arrays of Dask in the chunks that `CHUNKS` says,"
    " `da.from_array(x, chunks)`, change them as the kernel does, and return what it returns;"
    " nothing is computed before it is asked for.",
}
_IMPORTS = {
    MPI: (
        "import numpy as np",
        "from mpi4py import MPI",
        "",
        "comm = MPI.COMM_WORLD",
        "rank, size = comm.Get_rank(), comm.Get_size()",
    ),
    DASK: ("import dask.array as da", "import numpy as np"),
}


def _table(name: str, functions: Sequence[Function], *, results: bool = False) -> list[str]:
    """Return the lines of what is known of the arrays that each kernel takes, or gives."""
    lines = [f"{name} = {{"]
    for one in functions:
        layouts = ", ".join(f'"{array}": {layout}' for array, layout in one.layouts.items())
        held = f"[{', '.join(one.results)}]" if results else f"{{{layouts}}}"
        lines.append(f'    "{one.name}": {held},')
    return [*lines, "}"]


def _declarations(module: Module) -> list[str]:
    """Return sizes, meshes and layouts; a size that is an extent of a mesh follows it."""
    of_mesh = {
        extent: (name, axis)
        for spec, name in module.meshes.items()
        for axis, extent in spec.axes
        if isinstance(extent, str)
    }
    grid = ", the ranks as a grid, and who owns what" if module.meshes else " and chunks"
    lines = [f"# Sizes{grid}."]
    lines += [
        f"{name} = {module.sizes[name]}" for name in sorted(module.used) if name not in of_mesh
    ]
    lines += [module.mesh_line(spec) for spec in module.meshes]
    lines += [
        f'{name} = {of_mesh[name][0]}.axes["{of_mesh[name][1]}"]'
        for name in sorted(module.used)
        if name in of_mesh
    ]
    return [*lines, *module.lines]


@cache
def definitions() -> dict[str, str]:
    """Return the text of each definition that a program may need, without types."""
    text = (Path(__file__).parent / "helpers.py").read_text("utf-8")
    tree = libcst.parse_module(text.replace("  # noqa: B905", "")).visit(_WithoutTypes())
    return {
        one.name.value: tree.code_for_node(one).strip()
        for one in tree.body
        if isinstance(one, libcst.FunctionDef | libcst.ClassDef)
    }


class _WithoutTypes(libcst.CSTTransformer):
    """Leaves annotations out: a program is no place to explain them."""

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        match updated_node:
            case libcst.Param(default=None):
                return updated_node.with_changes(annotation=None)
            case libcst.Param():
                return updated_node.with_changes(annotation=None, equal=_EQUAL)
            case libcst.FunctionDef():
                return updated_node.with_changes(returns=None)
            case libcst.AnnAssign(target=target, value=libcst.BaseExpression() as value):
                return libcst.Assign([libcst.AssignTarget(target)], value)
        return updated_node


def _used(text: str, helpers: Mapping[str, str]) -> set[str]:
    """Return the definitions that a text needs, and those that they need."""
    wanted: set[str] = set()
    names = {*_ALWAYS, *_names(text)}
    while more := (names & helpers.keys()) - wanted:
        wanted |= more
        for one in more:
            names |= _names(helpers[one])
    return wanted


@cache
def _names(text: str) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name))
