"""MPI's datatypes: basic ones by name, and those derived from them."""

from __future__ import annotations

from dataclasses import replace

from advisor.dtypes import dtype_of
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Datatype, Nothing, Number, Opaque, Sequence, Value
from advisor.ir.spmd.payloads import Constructor, DerivedType
from advisor.source import Span
from costdb.expr import Expr, num

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
            size = None if base.basic is None else num(dtype_of(base.basic).itemsize_bytes)
            if method == "Get_extent":
                return Sequence((Number(num(0)), Number(size)), is_list=False)
            return Number(size)
    return Datatype(None, DerivedType(Constructor.OTHER, text, span, (), basic))
