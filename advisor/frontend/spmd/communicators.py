"""mpi4py's constants and constructors: communicators, datatypes, windows, requests."""

from __future__ import annotations

from dataclasses import replace

from advisor.frontend.spmd import numpy_calls
from advisor.frontend.spmd.payload import partner_of, payload_of
from advisor.frontend.spmd.requests import waited
from advisor.frontend.spmd.run import Argument, Run
from advisor.frontend.spmd.values import (
    ANYBODY,
    NOBODY,
    Array,
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
    Window,
)
from advisor.ir.spmd.memory import Allocation, Buffer, Order, Origin, View
from advisor.ir.spmd.payloads import Constructor, DerivedType
from advisor.ir.spmd.ranks import CommKind, Communicator
from advisor.ir.spmd.steps import Communicate, Op
from advisor.source import Span
from costdb.expr import Expr, floor_div, num, sym

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

BASIC_TYPES = {
    "DOUBLE": "float64",
    "FLOAT": "float32",
    "REAL": "float32",
    "REAL8": "float64",
    "DOUBLE_PRECISION": "float64",
    "INT": "int32",
    "INTEGER": "int32",
    "LONG": "int64",
    "LONG_LONG": "int64",
    "INT64_T": "int64",
    "INT32_T": "int32",
    "INT16_T": "int16",
    "INT8_T": "int8",
    "UINT64_T": "uint64",
    "UINT32_T": "uint32",
    "UINT8_T": "uint8",
    "SHORT": "int16",
    "UNSIGNED": "uint32",
    "UNSIGNED_LONG": "uint64",
    "CHAR": "uint8",
    "BYTE": "uint8",
    "BOOL": "bool",
    "C_BOOL": "bool",
    "C_DOUBLE_COMPLEX": "complex128",
    "DOUBLE_COMPLEX": "complex128",
    "COMPLEX16": "complex128",
    "C_FLOAT_COMPLEX": "complex64",
    "COMPLEX": "complex64",
}


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
        case "Request.Waitany" | "Request.waitany" | "Request.Testall" | "Request.testall":
            waited(values, run, span)
            return Number(None, varies=True)
        case "Intracomm" | "Comm" | "Cartcomm":
            return values[0] if values else Opaque(f"MPI.{name}")
    if name.startswith("Win."):
        return _window(name.removeprefix("Win."), given, run, span)
    if name.startswith("Datatype."):
        method = name.removeprefix("Datatype.")
        base = values[0] if values and isinstance(values[0], Datatype) else Datatype(None)
        return derive(base, method, values[1:], run, span)
    if name.startswith("COMM_WORLD."):
        return Opaque(name)
    return Opaque(f"the result of MPI.{name} is not followed", foreign=True)


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
    first = [run.symbols.unknown(f"{names}{k}", why, span) for k in range(count - 1)]
    rest: Expr = nodes if nodes is not None else sym("P")
    for extent in first:
        rest = rest / extent
    return Sequence(tuple(Number(extent) for extent in (*first, rest)))


def derive(base: Datatype, method: str, values: list[Value], run: Run, span: Span) -> Value:
    """Return a derived datatype."""
    text = run.text_of(span)
    basic = base.basic if base.derived is None else base.derived.base
    numbers = tuple(
        found
        for found in (run.number(v) for v in values if isinstance(v, Number | Opaque))
        if found is not None
    )
    match method:
        case "Create_vector" | "Create_hvector" if len(numbers) == 3:
            if method == "Create_hvector":
                return Datatype(None, DerivedType(Constructor.VECTOR, text, span, (), basic))
            elements = numbers[0] * numbers[1]
            return Datatype(
                None, DerivedType(Constructor.VECTOR, text, span, numbers, basic, elements)
            )
        case "Create_contiguous" if len(numbers) == 1:
            return Datatype(
                None,
                DerivedType(Constructor.CONTIGUOUS, text, span, numbers, basic, numbers[0]),
            )
        case "Create_subarray":
            sizes = run.numbers(values[1]) if len(values) > 1 else None
            count: Expr | None = None
            if sizes is not None:
                count = num(1)
                for extent in sizes:
                    count = count * extent
            whole = run.numbers(values[0]) if values else None
            numbers = (*(whole or ()), *(sizes or ()))
            return Datatype(
                None, DerivedType(Constructor.SUBARRAY, text, span, numbers, basic, count)
            )
        case "Create_darray":
            return Datatype(None, DerivedType(Constructor.DARRAY, text, span, (), basic))
        case "Create_struct":
            return Datatype(None, DerivedType(Constructor.STRUCT, text, span))
        case "Commit" | "Create_resized" | "Dup":
            if method == "Create_resized" and base.derived is not None:
                return Datatype(None, replace(base.derived, text=text))
            return base
        case "Free":
            return Nothing()
        case "Get_size" | "Get_extent":
            return Number(None)
    return Datatype(None, DerivedType(Constructor.OTHER, text, span, (), basic))


def _window(method: str, given: list[Argument], run: Run, span: Span) -> Value:
    values = [a.value for a in given]
    comms = [v.communicator for v in values if isinstance(v, Comm)]
    memory = next((v.view for v in values if isinstance(v, Array)), None)
    world = run.communicator(CommKind.WORLD, "COMM_WORLD", Span(1, 0, 1, 0))
    made_on = comms[0] if comms else world
    name = run.targets[0] if run.targets else run.text_of(span)
    return Window(name, made_on, memory)


def window_method(window: Window, name: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a method of a window gives, and note what it moves."""
    operations = {
        "Get": Op.GET,
        "Rget": Op.GET,
        "Put": Op.PUT,
        "Rput": Op.PUT,
        "Accumulate": Op.ACCUMULATE,
        "Raccumulate": Op.ACCUMULATE,
        "Get_accumulate": Op.ACCUMULATE,
        "Fetch_and_op": Op.ACCUMULATE,
        "Compare_and_swap": Op.ACCUMULATE,
        "Fence": Op.FENCE,
        "Lock": Op.LOCK,
        "Lock_all": Op.LOCK,
        "Start": Op.LOCK,
        "Post": Op.LOCK,
        "Unlock": Op.UNLOCK,
        "Unlock_all": Op.UNLOCK,
        "Complete": Op.UNLOCK,
        "Wait": Op.UNLOCK,
        "Flush": Op.FLUSH,
        "Flush_all": Op.FLUSH,
        "Flush_local": Op.FLUSH,
        "Flush_local_all": Op.FLUSH,
        "Sync": Op.FLUSH,
    }
    op = operations.get(name)
    if op is None:
        return _window_memory(window, name, run, span)
    moved = op in (Op.GET, Op.PUT, Op.ACCUMULATE)
    values = [a for a in given if not a.star]
    payload = payload_of(values[0], run, buffered=True) if moved and values else None
    second = values[1] if len(values) > 1 else None
    target = partner_of(second, run) if moved and second is not None else None
    run.emit(
        Communicate(
            op,
            name,
            window.communicator,
            span,
            run.statement,
            send=payload if op is not Op.GET else None,
            receive=payload if op is Op.GET else None,
            dest=target,
            receiver=window.name,
            window=window.name,
        )
    )
    return Nothing()


def _window_memory(window: Window, name: str, run: Run, span: Span) -> Value:
    if name in ("tomemory", "Shared_query"):
        allocation = Allocation(Origin.SHARED, run.text_of(span), span, run.frame.depth)
        buffer = Buffer(window.name, span.start_line, None, None, Order.UNKNOWN, allocation)
        shared = Array(View(buffer, None, run.text_of(span), span))
        if name == "tomemory":
            return shared
        return Sequence((shared, Number(None)), is_list=False)
    if name in ("Free", "Attach", "Detach", "Set_attr"):
        return Nothing()
    return Opaque(f"the result of `.{name}` of a window", foreign=True)
