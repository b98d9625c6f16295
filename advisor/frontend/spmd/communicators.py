"""mpi4py's constants, and communicators: their sizes, ranks and topologies."""

from __future__ import annotations

from dataclasses import replace

from advisor.frontend.spmd import numpy_calls
from advisor.frontend.spmd.payloads import BASIC_TYPES
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    ANYBODY,
    NOBODY,
    Arguments,
    Comm,
    Datatype,
    External,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Value,
)
from advisor.ir.spmd.program import LargerFactor
from advisor.ir.spmd.ranks import CommKind, Communicator
from advisor.numpy_shapes import count_of
from advisor.source import Span
from costdb.expr import floor_div, num, sym
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


def constant(path: str, run: Run) -> Value | None:
    """Return what a constant of mpi4py or NumPy denotes; None for functions and modules."""
    if path.startswith("numpy."):
        return numpy_calls.constant(path)
    if not path.startswith(f"{MPI}."):
        return None
    name = path.removeprefix(f"{MPI}.")
    if name in ("COMM_WORLD", "COMM_SELF"):
        kind = CommKind.WORLD if name == "COMM_WORLD" else CommKind.SELF
        return Comm(run.communicator(kind, name, Span(1, 0, 1, 0)))
    return _CONSTANTS.get(name)


_CONSTANTS: dict[str, Value] = {
    "PROC_NULL": NOBODY,
    "ANY_SOURCE": ANYBODY,
    **{name: Datatype(dtype) for name, dtype in BASIC_TYPES.items()},
}


def external(path: str, run: Run) -> Value:
    """Return what an imported library has under a name."""
    return constant(path, run) or External(path)


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
            return _coordinates(communicator)
        case "ndim" | "dim" if communicator.dims is not None:
            return Number(num(len(communicator.dims)))
        case "dims" | "periods" | "topo" | "name" | "group" | "topology" | "is_inter":
            return Opaque(f"`.{name}` of a communicator", foreign=True)
    return None


def _coordinates(communicator: Communicator) -> Value:
    """Return the own place in a Cartesian communicator: ranks are in row-major order."""
    if communicator.dims is None:
        return Sequence(None, Number(None, varies=True), None)
    found, behind = [communicator.rank], num(1)
    for extent in communicator.dims[:0:-1]:
        behind = behind * extent
        found[:1] = [floor_div(communicator.rank, behind), found[0] % extent]
    return Sequence(tuple(map(Number, found)))


def management(
    communicator: Communicator, name: str, arguments: Arguments, run: Run, span: Span
) -> Value | None:
    """Return what a method gives that sends nothing of the user's; None for other methods."""
    text = run.text_of(span)
    match name:
        case "Get_rank" | "Get_size" | "Get_dim":
            return attribute(communicator, name.removeprefix("Get_"), run)
        case "Dup" | "Clone" | "Create_dist_graph" | "Create_dist_graph_adjacent" | "Idup":
            return Comm(communicator)
        case "Split_type":
            return Comm(run.communicator(CommKind.NODE, text, span))
        case "Split" | "Create" | "Create_group" | "Create_graph":
            return Comm(run.communicator(CommKind.SPLIT, text, span))
        case "Sub":
            return _sub(communicator, arguments.at(0, "remain_dims"), run, span)
        case "Create_cart":
            return _cartesian(communicator, arguments, run, span)
        case "Shift":
            along = run.integer(arguments.at(0, "direction"))
            apart = run.integer(arguments.at(1, "disp"))
            below = NeighbourRank(along, None if apart is None else -apart)
            return Sequence((below, NeighbourRank(along, apart)), is_list=False)
        case "Get_coords" if arguments.at(0) == Number(communicator.rank):
            return _coordinates(communicator)
        case "Get_coords":
            every = Number(None, varies=True)
            items = None if communicator.dims is None else (every,) * len(communicator.dims)
            return Sequence(items, every)
        case "Get_cart_rank":
            return Number(None, varies=True)
        case "Get_topo":
            dims = attribute(communicator, "dims", run) or Opaque("dims")
            coords = _coordinates(communicator)
            return Sequence((dims, Opaque("periods"), coords), is_list=False)
        case "Get_group" | "Get_name" | "Set_name" | "Get_parent" | "Get_attr" | "Is_inter":
            return Opaque(f"the result of {name}", foreign=True)
        case "Set_errhandler" | "Free" | "Disconnect" | "py2f" | "Get_errhandler":
            return Nothing()
    return None


def _cartesian(communicator: Communicator, arguments: Arguments, run: Run, span: Span) -> Value:
    given, periodic = arguments.at(0, "dims"), arguments.at(1, "periods")
    dims = None if given is None else run.numbers(given, "dims")
    periods: tuple[bool | None, ...] | None = None
    if dims is not None:
        match periodic:
            case Sequence(items=tuple() as items):
                periods = tuple(_truth(item, run) for item in items)
            case None | Nothing():
                periods = (False,) * len(dims)
            case _:
                periods = (_truth(periodic, run),) * len(dims)
    made = run.communicator(CommKind.CARTESIAN, run.text_of(span), span)
    # ranks that do not fit get no communicator; all others number in row-major order
    size = communicator.size if dims is None else count_of(dims)
    return Comm(replace(made, size=size, rank=communicator.rank, dims=dims, periods=periods))


def _truth(value: Value, run: Run) -> bool | None:
    found = run.integer(value)
    return None if found is None else bool(found)


def _sub(communicator: Communicator, kept: Value | None, run: Run, span: Span) -> Value:
    made = run.communicator(CommKind.SPLIT, run.text_of(span), span)
    if isinstance(kept, Sequence) and kept.items is not None and communicator.dims is not None:
        flags = [_truth(item, run) for item in kept.items]
        if None not in flags and len(flags) == len(communicator.dims):
            dims = tuple(d for d, flag in zip(communicator.dims, flags, strict=True) if flag)
            return Comm(replace(made, size=count_of(dims), dims=dims))
    return Comm(made)


def computed_dims(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return the extents that ``MPI.Compute_dims`` chooses; those that are stated stay."""
    nodes, wanted = run.number(arguments.at(0)), arguments.at(1)
    stated = wanted.items if isinstance(wanted, Sequence) else None
    count = run.integer(wanted) if stated is None else len(stated)
    if count is None or not 1 <= count <= 4:
        return Sequence(None, Number(None), None)
    rest = sym("P") if nodes is None else nodes
    given = [run.integer(item) for item in stated or ()]
    if any(given):
        if None in given or given.count(0) > 1:
            return Sequence(tuple(Number(num(e) if e else None) for e in given))
        for extent in given:
            rest = rest / extent if extent else rest
        return Sequence(tuple(Number(num(e) if e else rest) for e in given))
    name, why = run.target or "dims", "a factor that MPI.Compute_dims chooses"
    first = [run.symbols.unknown(f"{name}{k}", why, span) for k in range(count - 1)]
    if count == 2 and isinstance(first[0], Sym):
        run.symbols.derive(first[0].name, LargerFactor(rest), why, span)
    return Sequence(tuple(Number(extent) for extent in (*first, rest / count_of(tuple(first)))))
