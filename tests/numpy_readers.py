"""What both readers and NumPy itself know of expressions: element type and shape of each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from advisor.frontend.kernels import read_kernels
from advisor.ir.spmd.memory import PayloadKind
from advisor.ir.statements import Bind, ScalarBind, Statement
from costdb.expr import Expr, evaluate
from tests.spmd.reading import operations, program

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
Found = tuple[str | None, tuple[int, ...]] | None
Arrays = Mapping[str, tuple[str, tuple[str | int, ...]]]
"""Element type and extents of each name; an extent may be the name of a number."""
Numbers = Mapping[str, int | float]
_SPELLED = {int: "int", float: "float"}


def by_numpy(text: str, values: Mapping[str, object]) -> Found:
    """Return what NumPy gives; None where it refuses."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = eval(text, {"np": np, **values})  # text of a test
        except (
            *(TypeError, ValueError, IndexError, OverflowError, AttributeError),
            np.linalg.LinAlgError,
        ):
            return None
    return np.asarray(found).dtype.name, np.shape(found)


def made(arrays: Arrays, numbers: Numbers) -> str:
    """Return the lines that make the operands in a program."""
    return "".join(f"{name} = {value}\n" for name, value in numbers.items()) + "".join(
        f"{name} = np.empty(({', '.join(map(str, shape))},), dtype='{dtype}')\n"
        for name, (dtype, shape) in arrays.items()
    )


def by_program(texts: Sequence[str], arrays: Arrays, numbers: Numbers) -> Iterator[Found]:
    """Yield what a program that sends the results knows of each of them."""
    sending = (f"r{n} = {text}\ncomm.send(r{n}, dest=1)\n" for n, text in enumerate(texts))
    sends = operations(program(made(arrays, numbers) + "".join(sending)))
    assert len(sends) == len(texts)
    for operation in sends:
        sent = operation.send
        assert sent is not None
        if sent.kind is PayloadKind.SCALAR:
            # of numbers of Python's the precision is that of NumPy's
            yield {"float": None, "int": None}.get(sent.dtype or "", sent.dtype), ()
        elif sent.kind is not PayloadKind.ARRAY or sent.view is None or sent.view.shape is None:
            yield None
        else:
            yield sent.view.dtype, shape_of(sent.view.shape, numbers)


def kernel_source(lines: Sequence[str], arrays: Arrays, numbers: Numbers) -> str:
    """Return a kernel of some statements, with its operands declared."""
    declared = "".join(
        f"# advise: {name}: {dtype}[{', '.join(map(str, shape))}]\n"
        for name, (dtype, shape) in arrays.items()
    )
    sizes = ", ".join(f"{name}={n}" for name, n in numbers.items() if isinstance(n, int))
    typed = (f"{name}: {_SPELLED[type(value)]}" for name, value in numbers.items())
    head = f"# advise: kernel {sizes}\n{declared}def f({', '.join((*arrays, *typed))}):\n"
    body = "".join(f"    {line}\n" for line in lines)
    return f"import numpy as np\n\n{head}{body}"


def by_kernel(texts: Sequence[str], arrays: Arrays, numbers: Numbers) -> Iterator[Found]:
    """Yield what a kernel that copies the results knows of each of them."""
    # what is a view of an array has no name of its own there, its copy has
    lines = [
        line for n, text in enumerate(texts) for line in (f"r{n} = {text}", f"q{n} = np.copy(r{n})")
    ]
    source = kernel_source(lines, arrays, numbers)
    above = source.count("\n") - len(lines)
    (kernel,) = read_kernels("k.py", source)
    first: dict[int, Statement] = {}
    for statement in kernel.body:
        first.setdefault((statement.span.start_line - above - 1) // 2, statement)
    for number in range(len(texts)):
        match first[number]:
            case Bind(name=name):
                yield kernel.dtype(name), shape_of(kernel.extents(name), numbers)
            case ScalarBind():
                yield None, ()
            case _:
                yield None


def shape_of(extents: Sequence[Expr], numbers: Numbers) -> tuple[int, ...]:
    """Return extents at the values of numbers."""
    return tuple(int(evaluate(extent, dict(numbers))) for extent in extents)
