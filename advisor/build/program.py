"""A built program as text: what its kernels call, who owns what, and the kernels."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import libcst

from advisor.analysis.placement import Placement, ranks_of
from advisor.build.scope import Block
from advisor.build.text import (
    Frame,
    Module,
    literal,
    natural,
    placements,
    tidy,
    tupled,
    whole_along,
    whole_axes,
)
from advisor.build.text import NotBuiltError as NotBuiltError
from advisor.build.writer import Function, Writer, write, written_by
from advisor.distribution import CyclicDim, NotDistributed
from advisor.ir.kernel import Kernel, symbols
from advisor.ir.shapes import is_whole
from advisor.ir.statements import Bind, Loop, Scatter, Store, walk
from advisor.ir.values import (
    Copy,
    Elementwise,
    Fill,
    Fourier,
    Range,
    Read,
    Reduction,
    Scalar,
    Scan,
    Sort,
    Subscript,
    Value,
    parts_of,
    reads,
)
from advisor.numpy_table import Kind, kind_of
from advisor.source import names_in
from costdb.expr import ZERO, Expr, ceil_div, num
from costdb.expr.nodes import Num
from costdb.records import dataclass, field, only, replace

# --- chunks ---------------------------------------------------------------------------------------
# One kernel as a function of Dask's arrays, whose chunks are the blocks that ranks would own.
#
# Dask runs NumPy's functions on whole arrays, so statements are written as of arrays that no rank
# shares, by the same writer. What is its own: neighbours' elements come by ``map_overlap``, as deep
# as they are read; a loop over elements that no chunk needs of another is done for each chunk by
# ``map_blocks``; and what runs along an axis in chunks has it in one piece before, by ``rechunk``.


_WIDTH = 96


def write_chunks(kernel: Kernel, module: Module) -> Function:
    """Return a kernel as a function of arrays in chunks.

    Raises
    ------
    NotBuiltError
        Something has no form: what, and where.
    """
    for name, array in kernel.arrays.items():
        for axis, dim in enumerate(array.spec.dims):
            if isinstance(dim, CyclicDim):
                raise NotBuiltError(
                    f"`{name}` is dealt out cyclically along axis {axis}: Dask has blocks only",
                    array.places.whole,
                )
    whole = {
        name: replace(
            array,
            spec=replace(array.spec, dims=tuple(NotDistributed() for _ in array.spec.dims)),
        )
        for name, array in kernel.arrays.items()
    }
    kind = partial(Chunked, spread=placements(kernel))
    return written_by(kind, kernel.with_arrays(whole), module)[1]


@dataclass()
class Chunked(Writer):
    """Writes statements of arrays in chunks, which are `spread` as blocks of ranks would be."""

    spread: Mapping[str, Placement] = field(default_factory=dict)
    inside: Mapping[tuple[str, tuple[Subscript, ...]], str] = field(default_factory=dict)

    # chunks

    def layout(self, name: str) -> str:
        """Return the name of an array's chunks."""
        text = self.chunks(self.spread[name], self.typed(name).extents)
        alike = (one for one in self.kernel.arrays if self.spread[one] == self.spread[name])
        return self.module.define(text, f"{self.name(next(alike, name)).upper()}_CHUNKS")

    def chunks(self, placement: Placement, extents: Sequence[Expr]) -> str:
        """Return the lengths of chunks along each dimension as text."""
        found = []
        for d, (dim, extent) in enumerate(zip(placement.dims, extents, strict=True)):
            if placement.origin[d] != ZERO or (placement.template[d] != extent and dim.axes):
                raise NotBuiltError("an array that is aligned with a part of another one")
            ranks = literal(ranks_of(placement.mesh, dim.axes), self.module.sizes)
            if not self.module.is_own((extent,)):
                raise NotBuiltError("an array whose length only a run tells")
            found.append(self.text(ceil_div(extent, num(ranks)) if ranks > 1 else extent))
        return tupled(found)

    def spreads(self, placement: Placement) -> list[int]:
        """Return the dimensions that are in several chunks."""
        return [d for d, dim in enumerate(placement.dims) if not isinstance(dim, NotDistributed)]

    def made_here(self, name: str) -> str:
        """Return what makes an array that nothing else makes."""
        shape = tupled([self.text(extent) for extent in self.typed(name).extents])
        return f"da.empty({shape}, dtype={self.kernel.dtype(name)!r}, chunks={self.layout(name)})"

    # values

    def read(self, array: str, region: Sequence[Subscript], frame: Frame) -> str:
        """Return what is read: within a chunk, where it lies beside what is computed."""
        known = self.inside.get((array, tuple(region)))
        return known or super().read(array, region, frame)

    def applied(self, value: Reduction | Scan | Sort | Fourier, text: str) -> str:
        """Return a call along an axis, which it has in one piece where it must."""
        if not isinstance(value, Sort | Fourier):
            return super().applied(value, text)
        extents = self.extents(value.operand)
        placement = natural(value.operand, self.spread, extents)
        back = ""
        if value.axis in self.spreads(placement):
            turned = whole_along(placement, extents, value.axis)
            text = f"{text}.rechunk({self.chunks(turned, extents)})"
            back = f".rechunk({self.chunks(placement, extents)})"
        if isinstance(value, Sort):
            return f"da.map_blocks(np.sort, {text}, axis={value.axis}){back}"
        return f"{super().applied(value, text)}{back}"

    # statements

    def bind(self, one: Bind) -> None:
        """Write a name for a fresh array, in the chunks that ranks would have."""
        text = ""
        if isinstance(one.value, Fill) and one.name in self.spread:
            text = self.filled(one.value, whole_axes(self.kernel.extents(one.name)))
        if not text.startswith(("np.empty", "np.zeros", "np.ones", "np.full")):
            super().bind(one)
            return
        chunks = self.chunks(self.spread[one.name], self.kernel.extents(one.name))
        shape, _, dtype = text[2:-1].rpartition(", ")
        self.line(f"{self.name(one.name)} = da{shape}, dtype={dtype}, chunks={chunks})")

    def store(self, one: Store) -> None:
        """Write elements that change; where neighbours' are read, of chunks with rims."""
        value, extents = one.value, self.kernel.extents(one.array)
        if (
            isinstance(value, Read)
            and {value.array, one.array} <= self.spread.keys()
            and self.spread[value.array].dims != self.spread[one.array].dims
            and is_whole((*value.region, *one.region), (*extents, *extents))
        ):
            source = f"{self.name(value.array)}.rechunk({self.layout(one.array)})"
            self.line(f"{self.name(one.array)}[...] = {source}")
            return
        depths = self.depths(one)
        if depths is None:
            super().store(one)
        else:
            self.overlapped(one, depths)

    def depths(self, one: Store) -> tuple[int, ...] | None:
        """Return how far a statement reads beyond a chunk; None where slices have to do."""
        placement = self.spread.get(one.array)
        found = list(reads(one.value))
        plain = Elementwise | Read | Scalar | Copy
        if (
            placement is None
            or not found
            or not all(isinstance(p, plain) for p in parts_of(one.value))
        ):
            return None
        if any(set(_names_in(part)) - self.module.sizes.keys() for part in parts_of(one.value)):
            return None
        extents = self.typed(one.array).extents
        depths = [0] * len(extents)
        for read in found:
            other = self.spread.get(read.array)
            if other is None or other.dims != placement.dims or len(read.region) != len(extents):
                return None
            if self.typed(read.array).extents != extents:
                return None
            for d, (part, target) in enumerate(zip(read.region, one.region, strict=True)):
                if not (isinstance(part, Range) and isinstance(target, Range)):
                    return None
                shift = part.low - target.low
                if not isinstance(shift, Num) or part.high - part.low != target.high - target.low:
                    return None
                depths[d] = max(depths[d], abs(int(shift.value)))
        for d in self.spreads(placement):
            ranks = literal(ranks_of(placement.mesh, placement.dims[d].axes), self.module.sizes)
            length = literal(extents[d], self.module.sizes)
            piece = -(-length // ranks)
            if depths[d] > (length % piece or piece):
                return None
        return tuple(depths) if any(depths[d] for d in self.spreads(placement)) else None

    def overlapped(self, one: Store, depths: Sequence[int]) -> None:
        """Write a statement as a function of chunks with rims."""
        given = list(dict.fromkeys(read.array for read in reads(one.value)))
        inside = {}
        for read in reads(one.value):
            parts = []
            for part, place, depth in zip(read.region, one.region, depths, strict=True):
                assert isinstance(part, Range) and isinstance(place, Range)
                shift = part.low - place.low
                assert isinstance(shift, Num)
                start, end = depth + int(shift.value), int(shift.value) - depth
                parts.append(f"{start or ''}:{end or ''}")
            inside[read.array, tuple(read.region)] = f"{self.name(read.array)}[{', '.join(parts)}]"
        frame, _ = self.axes_of(one.array, one.region)
        self.inside = inside
        text = self.value(one.value, self.fitted(one.value, frame))
        self.inside = {}
        function = self.function_of(one.span.start_line, given, tidy(f"return {text}", _WIDTH))
        target = self.target(one.array, one.region, frame)
        index = target[len(self.name(one.array)) :].replace("[...]", "")
        names = [self.name(name) for name in given]
        rims = ", ".join(f"{d}: {n}" for d, n in enumerate(depths) if n)
        more = f"depth={{{rims}}}, boundary=0, trim=False, chunks={names[0]}.chunks"
        found, kind = self.fresh("found"), f"meta={self.meta(one.array)}"
        self.line(f"{found} = da.map_overlap({function}, {', '.join(names)}, {more}, {kind})")
        self.line(f"{target} = {found}{index}")
        self.changed((one.array,))

    def meta(self, name: str) -> str:
        """Return an empty array of an array's type, which spares Dask a trial."""
        found = self.typed(name)
        return f"np.empty(({'0, ' * len(found.extents)}), {found.dtype!r})"

    def function_of(self, line: int, given: Sequence[str], body: Sequence[str]) -> str:
        """Write a function of chunks ahead of all else, and return its name."""
        name = self.fresh(f"line_{line}")
        names = ", ".join(self.name(one) for one in given)
        source = self.kernel.context.lines[line - 1].strip()
        head = f"# Of each chunk, {line}: {source}"
        lines = (
            head if len(head) < _WIDTH else f"{head[: _WIDTH - 4]} ...",
            f"def {name}({names}):",
        )
        self.blocks[0].lines[0:0] = [*lines, *(f"    {text}" for text in body), ""]
        return name

    def scatter(self, one: Scatter) -> None:
        """Write sums at places as counts of these."""
        found = self.typed(one.array)
        value = one.value
        if (
            len(found.extents) != 1
            or one.operation != "add"
            or kind_of(found.dtype) is not Kind.INTEGER
            or not isinstance(value, Scalar)
        ):
            raise NotBuiltError("places that only the data know, other than counts of them")
        frame = whole_axes(self.extents(one.places))
        places = self.value(one.places, frame)
        counts = f"np.bincount({places}, minlength={self.text(found.extents[0])})"
        times = self.scalar(value.text)
        more = counts if value.text == "1" else f"{times} * {counts}"
        self.line(f"{self.name(one.array)}[...] += ({more}).astype({found.dtype!r})")

    def loop(self, one: Loop) -> None:
        """Write a loop: of whole statements, or of elements that no chunk needs of another."""
        inner = [s for s in walk(one.body) if isinstance(s, Loop)]
        moving = {one.variable, *(s.variable for s in inner)}
        stores = [s for s in walk(one.body) if isinstance(s, Store)]
        if not any(moving & symbols((s.region, s.value)) for s in stores):
            super().loop(one)
            return
        given = self.by_chunk(one, stores)
        self.blocks.append(Block(frozenset()))
        self.header_and_body(one, "")
        body = self.blocks.pop().lines
        target = given[0]
        name = self.name(target)
        body = [f"{name} = {name}.copy()", *body, f"return {name}"]
        function = self.function_of(one.span.start_line, given, body)
        names = ", ".join(self.name(n) for n in given)
        self.line(f"{name}[...] = da.map_blocks({function}, {names}, meta={self.meta(target)})")

    def by_chunk(self, one: Loop, stores: Sequence[Store]) -> list[str]:
        """Return the arrays of a loop that chunks do by themselves, first what it changes.

        Raises
        ------
        NotBuiltError
            A chunk needs others, or it is not seen that it does not.
        """
        others = [s for s in walk(one.body) if not isinstance(s, Store | Loop)]
        outer = {block.loop.variable for block in self.blocks if block.loop is not None}
        parts = [(s.array, s.region) for s in stores]
        parts += [(r.array, tuple(r.region)) for s in stores for r in reads(s.value)]
        targets = {s.array for s in stores}
        if others or len(targets) != 1 or outer & symbols(tuple(stores)):
            raise NotBuiltError("a loop over elements that does more than change one array")
        first = next(iter(targets))
        along = self.spreads(self.spread[first])
        for name, region in parts:
            extents = self.typed(name).extents
            if extents != self.typed(first).extents or self.spreads(self.spread[name]) != along:
                raise NotBuiltError(f"a loop over elements of arrays in other chunks: `{name}`")
            for d in along:
                if not is_whole((region[d],), (extents[d],)):
                    raise NotBuiltError(
                        f"a loop over elements of `{name}` along axis {d}, whose chunks Dask"
                        " would do one after another: distribute another axis"
                    )
        return list(dict.fromkeys((first, *(name for name, _ in parts))))


def _names_in(value: Value) -> Iterator[str]:
    """Yield the names in a number that is written out."""
    if isinstance(value, Scalar):
        yield from names_in(ast.parse(value.text, mode="eval"))


# --- program --------------------------------------------------------------------------------------


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
    taken = frozenset[str]().union(*(kernel.context.identifiers for kernel in kernels))
    module = Module(sizes, set(own), taken)
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
        for one in only(libcst.FunctionDef | libcst.ClassDef, tree.body)
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
