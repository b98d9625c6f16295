"""mpi4py's constants and constructors, and communicators: their sizes, ranks and topologies."""

from __future__ import annotations

from dataclasses import replace

from advisor.frontend.spmd import numpy_calls
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    ANYBODY,
    NOBODY,
    Comm,
    Datatype,
    External,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Text,
    Value,
)
from advisor.frontend.spmd.windows import BASIC_TYPES, derive, make_window, started, waited
from advisor.ir.spmd.ranks import CommKind, Communicator
from advisor.ir.spmd.sizes import LargerFactor
from advisor.source import Span
from costdb.expr import Expr, floor_div, num, sym
from costdb.expr.nodes import Sym

MPI = "mpi4py.MPI"

_OTHER_NAMES = """
Get_rank Get_size Dup Idup Clone Dup_with_info Create_dist_graph Create_dist_graph_adjacent
Split_type Split Create Create_group Create_graph Sub Create_cart Shift Get_coords Get_cart_rank
Get_topo Get_dim Get_group Get_name Set_name Get_parent Get_attr Set_attr Is_inter Is_intra
Get_topology Set_errhandler Get_errhandler Free Disconnect Abort Spawn Spawn_multiple Merge
Create_intercomm Get_remote_size Get_remote_group Get_info Set_info Accept Connect Compare py2f
f2py Get_dist_neighbors Get_dist_neighbors_count Get_neighbors Get_neighbors_count
Call_errhandler Cart_map Graph_map Create_keyval Delete_attr toint fromint Revoke Shrink Agree
Improbe Mprobe Iprobe Ibarrier Start Precv_init Psend_init Join Get_edges Get_dims inneighbors
"""
OTHER_METHODS = frozenset(_OTHER_NAMES.split())
"""Methods of mpi4py's communicators that send nothing of the user's."""


_CLASSES = frozenset(
    {"Comm", "Intracomm", "Intercomm", "Topocomm", "Cartcomm", "Graphcomm", "Distgraphcomm"}
)
"""Of communicators."""


def constant(path: str, run: Run) -> Value | None:
    """Return what a constant of mpi4py or NumPy denotes; None for functions and modules."""
    if path.startswith("numpy."):
        return numpy_calls.constant(path)
    if not path.startswith(f"{MPI}."):
        return None
    name = path.removeprefix(f"{MPI}.")
    match name:
        case "COMM_WORLD":
            return Comm(run.communicator(CommKind.WORLD, "COMM_WORLD", Span(1, 0, 1, 0)))
        case "COMM_SELF":
            return Comm(run.communicator(CommKind.SELF, "COMM_SELF", Span(1, 0, 1, 0)))
        case "PROC_NULL":
            return NOBODY
        case "ANY_SOURCE":
            return ANYBODY
    if name in BASIC_TYPES:
        return Datatype(BASIC_TYPES[name])
    return None


def attribute(communicator: Communicator, name: str, run: Run) -> Value | None:
    """Return what an attribute of a communicator that is no method denotes."""
    match name:
        case "rank":
            return Number(communicator.rank)
        case "size":
            return Number(communicator.size)
        case "dims" if communicator.dims is not None:
            return Sequence(tuple(Number(extent) for extent in communicator.dims))
        case "coords":
            return _coordinates(communicator, run)
        case "ndim" | "dim" if communicator.dims is not None:
            return Number(num(len(communicator.dims)))
        case "dims" | "periods" | "topo" | "name" | "group" | "topology" | "is_inter":
            return Opaque(f"`.{name}` of a communicator", foreign=True)
    return None


def _coordinates(communicator: Communicator, run: Run) -> Value:
    if communicator.dims is None:
        return Sequence(None, Number(None, varies=True), None)
    if len(communicator.dims) == 1:
        return Sequence((Number(communicator.rank),))
    if len(communicator.dims) == 2:
        # ranks of a Cartesian communicator are in row-major order
        columns = communicator.dims[1]
        return Sequence(
            (
                Number(floor_div(communicator.rank, columns)),
                Number(communicator.rank % columns),
            )
        )
    why = "a coordinate of the own rank"
    entries = [
        run.symbols.unknown(f"coord{axis}", why, communicator.span, varies=True)
        for axis in range(len(communicator.dims))
    ]
    return Sequence(tuple(Number(entry) for entry in entries))


def management(
    communicator: Communicator, name: str, given: list[Argument], run: Run, span: Span
) -> Value | None:
    """Return what a method gives that sends nothing of the user's; None for other methods."""
    values = [a.value for a in given if a.keyword is None]
    keywords = {a.keyword: a.value for a in given if a.keyword}
    text = run.text_of(span)
    match name:
        case "Get_rank":
            return Number(communicator.rank)
        case "Get_size":
            return Number(communicator.size)
        case "Dup" | "Clone" | "Create_dist_graph" | "Create_dist_graph_adjacent" | "Idup":
            return Comm(communicator)
        case "Split_type":
            return Comm(run.communicator(CommKind.NODE, text, span))
        case "Split" | "Create" | "Create_group" | "Create_graph" | "Sub":
            if name == "Sub":
                return _sub(communicator, values, keywords, run, span)
            return Comm(run.communicator(CommKind.SPLIT, text, span))
        case "Create_cart":
            return _cartesian(communicator, values, keywords, run, span)
        case "Shift":
            axis = values[0] if values else keywords.get("direction")
            step = values[1] if len(values) > 1 else keywords.get("disp")
            along = run.integer(axis)
            apart = run.integer(step)
            return Sequence(
                (
                    NeighbourRank(along, None if apart is None else -apart),
                    NeighbourRank(along, apart),
                ),
                is_list=False,
            )
        case "Get_coords":
            if values and values[0] == Number(communicator.rank):
                return _coordinates(communicator, run)
            count = len(communicator.dims or ()) or None
            if count is None:
                return Sequence(None, Number(None, varies=True), None)
            return Sequence(tuple(Number(None, varies=True) for _ in range(count)))
        case "Get_cart_rank":
            return Number(None, varies=True)
        case "Get_topo":
            dims = attribute(communicator, "dims", run) or Opaque("dims")
            coords = _coordinates(communicator, run)
            return Sequence((dims, Opaque("periods"), coords), is_list=False)
        case "Get_group" | "Get_name" | "Set_name" | "Get_parent" | "Get_attr" | "Is_inter":
            return Opaque(f"the result of {name}", foreign=True)
        case "Set_errhandler" | "Free" | "Disconnect" | "py2f" | "Get_errhandler":
            return Nothing()
        case "Get_dim" if communicator.dims is not None:
            return Number(num(len(communicator.dims)))
    return None


def _cartesian(
    communicator: Communicator,
    values: list[Value],
    keywords: dict[str, Value],
    run: Run,
    span: Span,
) -> Value:
    given = values[0] if values else keywords.get("dims")
    dims = None if given is None else run.numbers(given, "dims")
    periodic = values[1] if len(values) > 1 else keywords.get("periods")
    periods: tuple[bool | None, ...] | None = None
    if dims is not None:
        periods = (False,) * len(dims)
        if isinstance(periodic, Sequence) and periodic.items is not None:
            periods = tuple(_truth(item, run) for item in periodic.items)
        elif isinstance(periodic, Number):
            periods = (_truth(periodic, run),) * len(dims)
        elif periodic is not None and not isinstance(periodic, Nothing):
            periods = (None,) * len(dims)
    made = run.communicator(CommKind.CARTESIAN, run.text_of(span), span)
    # ranks that do not fit get no communicator; all others number in row-major order
    size = communicator.size
    if dims is not None:
        size = num(1)
        for extent in dims:
            size = size * extent
    return Comm(replace(made, size=size, rank=communicator.rank, dims=dims, periods=periods))


def _truth(value: Value, run: Run) -> bool | None:
    if isinstance(value, External) and value.path in ("builtins.True", "builtins.False"):
        return value.path == "builtins.True"
    found = run.integer(value)
    return None if found is None else bool(found)


def _sub(
    communicator: Communicator,
    values: list[Value],
    keywords: dict[str, Value],
    run: Run,
    span: Span,
) -> Value:
    made = run.communicator(CommKind.SPLIT, run.text_of(span), span)
    kept = values[0] if values else keywords.get("remain_dims")
    if isinstance(kept, Sequence) and kept.items is not None and communicator.dims is not None:
        flags = [_truth(item, run) for item in kept.items]
        if None not in flags and len(flags) == len(communicator.dims):
            dims = tuple(d for d, flag in zip(communicator.dims, flags, strict=True) if flag)
            size = num(1)
            for extent in dims:
                size = size * extent
            return Comm(replace(made, size=size, dims=dims))
    return Comm(made)


def construct(path: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a function of mpi4py gives."""
    name = path.removeprefix(f"{MPI}.")
    if name.startswith("Prequest.") and not name.startswith("Prequest.Start"):
        # what it inherits
        name = name.removeprefix("P").replace("request", "Request", 1)
    values = [a.value for a in given if a.keyword is None]
    match name:
        case "Wtime" | "Wtick":
            run.clocks += 1
            return Number(None, "float", varies=True)
        case "Compute_dims":
            return _dims(values, run, span)
        case "Get_processor_name" | "Get_library_version" | "Get_vendor":
            return Text(None)
        case "Init" | "Finalize" | "Is_initialized" | "Is_finalized" | "Init_thread":
            return Nothing()
        case "Status" | "Info" | "Info.Create" | "Group" | "Op.Create" | "memory.fromaddress":
            return Opaque(f"MPI.{name}", foreign=True)
        case "Request.Waitall" | "Request.Wait" | "Request.waitall" | "Request.wait":
            return waited(values, run, span)
        case "Prequest.Startall" | "Prequest.Start":
            return started(values, run, span)
        case "Request.Waitany" | "Request.waitany" | "Request.Testall" | "Request.testall":
            waited(values, run, span)
            return Number(None, varies=True)
        case "Intracomm" | "Comm" | "Cartcomm":
            return values[0] if values else Opaque(f"MPI.{name}")
    cls, _, method = name.partition(".")
    if cls in _CLASSES and method and values and isinstance(values[0], Comm):
        return _unbound(values[0].communicator, method, given[1:], run, span)
    if name.startswith("Win."):
        return make_window(name.removeprefix("Win."), given, run, span)
    if name.startswith("Datatype."):
        method = name.removeprefix("Datatype.")
        base = values[0] if values and isinstance(values[0], Datatype) else Datatype(None)
        return derive(base, method, values[1:], run, span)
    if name.startswith("COMM_WORLD."):
        return Opaque(name)
    return Opaque(f"the result of MPI.{name} is not followed", foreign=True)


def _unbound(
    communicator: Communicator, method: str, given: list[Argument], run: Run, span: Span
) -> Value:
    """Return what a method gives that is called by its class, as in ``Cartcomm.Shift(cart, 0, 1)``.

    What communicates in this way is told as unknown: an edit of it would have to be another one.
    """
    managed = management(communicator, method, given, run, span)
    if managed is not None:
        return managed
    run.unknown(f"`{method}` is called by the class of its communicator", span)
    return Opaque(f"the result of `.{method}` is not followed", varies=True)


def _rest_of_dims(given: list[int | None], nodes: Expr) -> Value:
    """Return the extents of a mesh of which some are stated, which stay as they are."""
    if None in given or sum(1 for extent in given if extent == 0) > 1:
        return Sequence(tuple(Number(None if not e else num(e)) for e in given))
    rest = nodes
    for extent in given:
        rest = rest / extent if extent else rest
    return Sequence(tuple(Number(num(e) if e else rest) for e in given))


def _dims(values: list[Value], run: Run, span: Span) -> Value:
    count = run.integer(values[1]) if len(values) > 1 else None
    if len(values) > 1 and isinstance(values[1], Sequence) and values[1].items is not None:
        count = len(values[1].items)
    if count is None or not 1 <= count <= 4:
        return Sequence(None, Number(None), None)
    nodes = run.number(values[0]) if isinstance(values[0], Number | Opaque) else None
    if count == 1 and nodes is not None:
        return Sequence((Number(nodes),))
    names = run.targets[0] if run.targets else "dims"
    why = "a factor that MPI.Compute_dims chooses"
    rest: Expr = nodes if nodes is not None else sym("P")
    stated = values[1].items if len(values) > 1 and isinstance(values[1], Sequence) else None
    given = [run.integer(item) for item in stated or ()]
    if any(given):
        return _rest_of_dims(given, rest)
    first = [run.symbols.unknown(f"{names}{k}", why, span) for k in range(count - 1)]
    if count == 2 and isinstance(first[0], Sym):
        run.symbols.derive(first[0].name, LargerFactor(rest), why, span)
    for extent in first:
        rest = rest / extent
    return Sequence(tuple(Number(extent) for extent in (*first, rest)))
