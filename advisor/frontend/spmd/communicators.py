"""mpi4py's constants, communicators with sizes, ranks and topologies, and payloads."""

from __future__ import annotations

from dataclasses import replace

from advisor.frontend.spmd.numpy_calls import CONSTANTS
from advisor.frontend.spmd.numpy_created import dtype_name
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    ANYBODY,
    IN_PLACE,
    NOBODY,
    Argument,
    Arguments,
    Array,
    Comm,
    Datatype,
    External,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Range,
    Record,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import Constructor, DerivedType, Payload, PayloadKind, View
from advisor.ir.spmd.program import LargerFactor
from advisor.ir.spmd.steps import CommKind, Communicator, Partner, PartnerKind
from advisor.numpy_table import UNKNOWN_DTYPE, count_of, dtype_of
from advisor.source import Span
from costdb.expr import Expr, floor_div, num, sym
from costdb.expr.nodes import Sym

# What a call of mpi4py carries and whom it names: payloads, partners, datatypes.


MOST_PARTS = 8
"""Items of a list that are looked at one by one."""


def payload_of(argument: Argument, run: Run, *, buffered: bool) -> Payload | None:
    """Return what an argument carries; None for ``None`` and ``MPI.IN_PLACE``.

    Parameters
    ----------
    argument : Argument
    run : Run
    buffered : bool
        An upper-case method, which takes arrays and descriptions of them only.
    """
    value, text, span = argument.value, argument.text, argument.span
    if isinstance(value, Nothing) or value == IN_PLACE:
        return None
    if buffered:
        return _buffer(value, text, span, run)
    return _object(value, text, span, 0, run)


def _object(value: Value, text: str, span: Span, depth: int, run: Run) -> Payload:
    parts: list[tuple[str, Value]] = []
    length: Expr | None = None
    reason = ""
    match value:
        case Array() | Number():
            return _whole(value, text, span)
        case Text():
            reason = "a string"
        case Nothing():
            reason = "None"
        case Range():
            reason = "a sequence of numbers"
        case Sequence() if depth > 2:
            reason = "a deeply nested list"
        case Sequence(items=tuple() as items):
            parts, length = [(str(k), item) for k, item in enumerate(items)], num(len(items))
        case Sequence(element=element, length=length):
            parts = [] if element is None else [("...", element)]
        case Record(cls=None) if depth <= 2 and (held := run.entries(value.number)):
            parts = [(repr(key), item) for key, item in held]
            length = None if any(key is None for key, _ in held) else num(len(held))
        case Record():
            reason = "a dictionary or an instance"
        case Opaque(why=why):
            return Payload(PayloadKind.UNKNOWN, text, span, reason=why)
        case _:
            return Payload(PayloadKind.UNKNOWN, text, span, reason="its type is not followed")
    known = tuple(_object(v, f"{text}[{k}]", span, depth + 1, run) for k, v in parts[:MOST_PARTS])
    return Payload(PayloadKind.OBJECT, text, span, parts=known, length=length, reason=reason)


def _whole(value: Array | Number, text: str, span: Span) -> Payload:
    if isinstance(value, Number):
        dtype = None if value.dtype == UNKNOWN_DTYPE else value.dtype
        return Payload(PayloadKind.SCALAR, text, span, None, dtype, num(1))
    view = value.view
    return Payload(PayloadKind.ARRAY, text, span, view, view.dtype, view.count)


def _buffer(value: Value, text: str, span: Span, run: Run) -> Payload:
    match value:
        case Array():
            return _whole(value, text, span)
        case Sequence(items=tuple() as items) if items:
            return _described(items, text, span, run)
        case Text():
            return Payload(PayloadKind.OBJECT, text, span, reason="bytes")
        case Opaque(text=name):
            # upper-case methods take buffers only, so it is an array
            view = run.given_array(name or text, span)
            return Payload(PayloadKind.ARRAY, text, span, view, None, None, reason=value.why)
    return Payload(PayloadKind.UNKNOWN, text, span, reason="a buffer that is not followed")


def _described(items: tuple[Value, ...], text: str, span: Span, run: Run) -> Payload:
    datatype = next((item for item in items if isinstance(item, Datatype)), None)
    stated_text = next((i.value for i in items[1:] if isinstance(i, Text) and i.value), None)
    view: View | None = None
    if isinstance(items[0], Array):
        view = items[0].view
    elif isinstance(items[0], Opaque):
        view = run.given_array(items[0].text or text, span)
    # of the v forms, which state counts and displacements, how much is sent differs by rank
    count = None if view is None else view.count
    dtype = None if view is None else view.dtype
    derived = None if datatype is None else datatype.derived
    if dtype is None and datatype is not None:
        dtype = datatype.basic if derived is None else derived.base
    if dtype is None and stated_text is not None:
        dtype = dtype_name(Text(stated_text))
    stated = [item.expr for item in items[1:] if isinstance(item, Number)]
    if derived is not None:
        count = derived.elements
        if count is not None and stated and stated[0] is not None:
            count = count * stated[0]
    elif stated:
        count = stated[0]
    return Payload(PayloadKind.ARRAY, text, span, view, dtype, count, True, derived)


def partner_of(argument: Argument | None) -> Partner | None:
    """Return whom an argument names."""
    if argument is None:
        return None
    value, text, span = argument.value, argument.text, argument.span
    if value == NOBODY:
        return Partner(PartnerKind.NOBODY, text, span=span)
    if value == ANYBODY:
        return Partner(PartnerKind.ANY, text, span=span)
    match value:
        case NeighbourRank(axis, displacement):
            return Partner(PartnerKind.NEIGHBOUR, text, None, axis, displacement, True, span)
        case Number(expr=expr, nobody=nobody) if expr is not None:
            return Partner(PartnerKind.RANK, text, expr, may_be_nobody=nobody, span=span)
        case Opaque(expr=expr) if expr is not None:
            return Partner(PartnerKind.RANK, text, expr, span=span)
    return Partner(PartnerKind.UNKNOWN, text, span=span)


# MPI's datatypes: basic ones by name, and those derived from them.

_BASIC = {
    "float64": "DOUBLE REAL8 DOUBLE_PRECISION",
    "float32": "FLOAT REAL",
    "int64": "LONG LONG_LONG INT64_T",
    "int32": "INT INTEGER INT32_T",
    "int16": "SHORT INT16_T",
    "int8": "INT8_T",
    "uint64": "UNSIGNED_LONG UINT64_T",
    "uint32": "UNSIGNED UINT32_T",
    "uint8": "CHAR BYTE UINT8_T",
    "bool": "BOOL C_BOOL",
    "complex128": "C_DOUBLE_COMPLEX DOUBLE_COMPLEX COMPLEX16",
    "complex64": "C_FLOAT_COMPLEX COMPLEX",
}
BASIC_TYPES = {name: dtype for dtype, names in _BASIC.items() for name in names.split()}


def derive(base: Datatype, method: str, values: list[Value], run: Run, span: Span) -> Value:
    """Return a derived datatype."""
    text = run.text_of(span)
    basic = base.basic if base.derived is None else base.derived.base
    stated = [run.number(value) for value in values if isinstance(value, Number | Opaque)]
    numbers = tuple(number for number in stated if number is not None)
    constructor, elements = _CONSTRUCTORS.get(method, Constructor.OTHER), None
    match method:
        case "Commit" | "Create_resized" | "Dup":
            if method == "Create_resized" and base.derived is not None:
                return Datatype(None, replace(base.derived, text=text))
            return base
        case "Free":
            return Nothing()
        case "Get_size" | "Get_extent":
            size = None if base.basic is None else num(dtype_of(base.basic).itemsize_bytes)
            if method == "Get_extent":
                return Sequence((Number(num(0)), Number(size)), is_list=False)
            return Number(size)
        case "Create_vector" if len(numbers) == 3:
            elements = numbers[0] * numbers[1]
        case "Create_contiguous" if len(numbers) == 1:
            elements = numbers[0]
        case "Create_subarray":
            whole, part = (run.numbers(value) for value in (*values, Nothing(), Nothing())[:2])
            numbers = (*(whole or ()), *(part or ()))
            elements = None if part is None else count_of(part)
        case _:
            numbers = ()
    return Datatype(None, DerivedType(constructor, text, span, numbers, basic, elements))


_CONSTRUCTORS = {
    "Create_vector": Constructor.VECTOR,
    "Create_hvector": Constructor.VECTOR,
    "Create_contiguous": Constructor.CONTIGUOUS,
    "Create_subarray": Constructor.SUBARRAY,
    "Create_darray": Constructor.DARRAY,
    "Create_struct": Constructor.STRUCT,
}

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


def external(path: str, run: Run) -> Value:
    """Return what an imported library has under a name."""
    if path in CONSTANTS:
        return Number(None, "float")
    module, _, name = path.rpartition(".")
    if module != MPI:
        return External(path)
    if name in ("COMM_WORLD", "COMM_SELF"):
        kind = CommKind.WORLD if name == "COMM_WORLD" else CommKind.SELF
        return Comm(run.communicator(kind, name, Span(1, 0, 1, 0)))
    return _CONSTANTS.get(name, External(path))


_CONSTANTS: dict[str, Value] = {
    "PROC_NULL": NOBODY,
    "ANY_SOURCE": ANYBODY,
    **{name: Datatype(dtype) for name, dtype in BASIC_TYPES.items()},
}


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
        return Sequence(tuple(Number(num(extent) if extent else None) for extent in given))
    name, why = run.target or "dims", "a factor that MPI.Compute_dims chooses"
    first = [run.symbols.unknown(f"{name}{k}", why, span) for k in range(count - 1)]
    if count == 2 and isinstance(first[0], Sym):
        run.symbols.derive(first[0].name, LargerFactor(rest), why, span)
    return Sequence(tuple(Number(extent) for extent in (*first, rest / count_of(tuple(first)))))
