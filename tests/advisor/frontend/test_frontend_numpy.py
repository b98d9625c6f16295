"""What the front end of kernels reads, and what it refuses; meanings: `test_numpy_meaning`."""

from __future__ import annotations

import pytest

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Bind, ScalarBind, Unknown, walk
from advisor.ir.values import Reduction
from advisor.source import SourceProblem
from costdb.expr import evaluate, to_text

SIZES = {"N": 5, "M": 4}
SHAPES = {"a": ("N", "M"), "b": ("N", "M"), "v": ("M",), "w": ("N",)}
HEAD = """\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Dist, kernel

@kernel(N=5, M=4, k=2)
def f({parameters}, k: int, x: float):
    r = {text}
"""


def source_of(text: str, dtypes: dict[str, str]) -> str:
    declared = [
        f"{name}: Annotated[NDArray[np.{dtypes[name]}], Dist({', '.join(map(repr, shape))},"
        f" {', '.join(['None'] * len(shape))})]"
        for name, shape in SHAPES.items()
    ]
    return HEAD.format(parameters=", ".join(declared), text=text)


def read(text: str, dtypes: dict[str, str]) -> Kernel:
    (found,) = read_kernels("kernel.py", source_of(text, dtypes))
    return found


@pytest.mark.parametrize(
    "text",
    [
        "a[k - 2 :]",  # from the end where k is 1
        "a[: 2 - k]",
        "a[::k]",
        "a[::-2]",
        "np.roll(a, 1)",
        "np.roll(a, (1, 2), axis=(0, 0, 1))",
        "np.roll(a, (1, 2), axis=0)",
        "np.roll(a, *[1, 0])",
        "np.cumsum(a, 0, None, b)",
        "np.add(a, b, a)",
        "np.add(a, b, where=a > 1)",
        "np.array(a, copy=False)",
        "np.array(a, ndmin=3)",
        "np.array(a, copy=k)",
        "a.astype(np.float32, copy=False)",
        "a.max(0, b)",
        "a.sum(axis=0, keepdims=x > 0)",
        "np.linalg.norm(a, ord=2)",
        "np.linalg.norm(a, 1)",
        "np.diff(a + b)",
        "np.diff(a, n=2)",
        "np.einsum('ii,ij->j', a, b)",
        "np.einsum('ii', a)",
        "np.floor(v.astype(int))",
        "a.sum(axis=(0, 0))",
        "np.zeros_like(a, shape=(2, 2))",
        "np.zeros_like()",
        "np.zeros_like(dtype=np.int8, a=a, subok=False)",
        "np.roll()",
        "np.where(a > 1)",
        "1 < a < 3",
        "a if k else b",
        "a and b",
        "not a",
        "a[b]",
        "a[True]",
        "a[[0, 1]]",
        "a[(0, 1)]",
        "a @ w",
        "np.dot(a, b, a)",
        "np.matmul(a, out=b)",
        "a.nosuch",
        "a.copy",
        "a.view()",
        "a.view(np.int8)",
        "a.sort()",
        "unknown(a)",
        "(lambda: a)()",
        "(y := a)",
        "np.pad(a, 1, mode='wrap')",
        "np.pad(a, ((1, 1), (0, 0)))",
        "np.pad(a, ((1, 1), (0, 0)), mode='edge')",
        "np.zeros((N, *a.shape))",
        "np.full((N,), k)",
        "np.fft.fft(a, 8)",
        "2 ** -k + a",
        "np.float32(a)",
        "a.astype(dtype=object)",
        "a.astype('U3')",
        "int(a)",
        "max(a, b)",
        "max(*a)",
        "a + undefined",
        "f'{a}'",
        "a[f(0)]",
        "a['field']",
    ],
)
def test_what_is_not_surely_understood_is_an_unknown(text: str) -> None:
    kernel = read(text, dict.fromkeys(SHAPES, "int32"))
    assert isinstance(kernel.body[0], Unknown), kernel.body[0]
    assert kernel.body[0].span.start_line == 8
    assert not any(isinstance(statement, Bind) for statement in kernel.body)


@pytest.mark.parametrize(
    ("text", "extents"),
    [("a @ v", ("N",)), ("w @ b", ("M",)), ("v @ v", ()), ("np.vdot(v, v)", ())],
)
def test_products_with_vectors_are_sums_along_an_axis(text: str, extents: tuple[str, ...]) -> None:
    kernel = read(text, dict.fromkeys(SHAPES, "float64"))
    (made,) = kernel.body
    assert isinstance(made, Bind | ScalarBind), made
    assert isinstance(made.value, Reduction)
    if extents:
        assert tuple(map(to_text, kernel.extents("r"))) == extents


def test_types_of_arrays_may_have_names() -> None:
    written = "NDArray[np.int32]"
    for alias, used in (
        (f"F = {written}", "F"),
        (f"F: TypeAlias = {written}", "F"),
        ("F = np.ndarray[tuple[int, int], np.dtype[np.int32]]", "F"),
        ("D = np.dtype[np.int32]", "np.ndarray[tuple[int, int], D]"),
    ):
        source = source_of("a", dict.fromkeys(SHAPES, "int32")).replace(written, used)
        (found,) = read_kernels("k.py", source.replace("\n\n@", f"\n{alias}\n\n@", 1))
        assert found.arrays["a"].dtype == "int32"
    twice = source.replace("\n\n@", "\nD = np.dtype[np.int8]\nD = np.dtype[np.int32]\n\n@", 1)
    with pytest.raises(SourceProblem, match="element type of `a` is not known"):
        read_kernels("k.py", twice)


@pytest.mark.parametrize("name", ["F", "d", "T", "i4", "float64", "other.F", "other.float64"])
def test_names_that_may_be_anything_are_no_element_types(name: str) -> None:
    source = source_of("a", dict.fromkeys(SHAPES, "int32")).replace("[np.int32]", f"[{name}]")
    source = source.replace("import numpy as np\n", "import numpy as np, other\n", 1)
    with pytest.raises(SourceProblem, match="element type of `a` is not known"):
        read_kernels("k.py", source)


@pytest.mark.parametrize("first", ["np.float64", "np.float32"])
def test_a_name_of_two_element_types_is_neither(first: str) -> None:
    source = source_of("a", dict.fromkeys(SHAPES, "int32")).replace("[np.int32]", "[F]")
    both = f"if True:\n    F = {first}\nelse:\n    F = np.float64\n"
    source = source.replace("\n\n@", f"\n{both}\n\n@", 1)
    if first == "np.float64":
        assert read_kernels("k.py", source)[0].arrays["a"].dtype == "float64"
        return
    with pytest.raises(SourceProblem, match="element type of `a` is not known"):
        read_kernels("k.py", source)


@pytest.mark.parametrize(
    ("text", "extent"),
    [("v[k:0:-1]", 2), ("v[k - 1 :: -1]", 2), ("v[:k:-1]", 1), ("a[1, -2::-1]", 3), ("v[::-1]", 4)],
)
def test_slices_that_run_backwards_are_parts_turned_round(text: str, extent: int) -> None:
    kernel = read(f"{text} + 0.0", dict.fromkeys(SHAPES, "float64"))
    (made,) = kernel.body
    assert isinstance(made, Bind), made
    (found,) = kernel.extents("r")
    assert evaluate(found, {**SIZES, "k": 2}) == extent


def test_subscripts_that_count_down_with_a_loop_are_read() -> None:
    source = """
import numpy as np
# advise: kernel N=20 b=3
# advise: x: f8[N, N] over (block(p), none) on mesh(p=4)
def f(x, b: int):
    out = x[b - 1 :].copy()
    for i in range(1, b):
        out += x[b - 1 - i : N - i]
    return out
"""
    for extent in ("x.shape[0]", "np.shape(x)[0]", "np.shape(x)[np.ndim(x) - 1]"):
        (kernel,) = read_kernels("k.py", source.replace("N - i", f"{extent} - i"))
        assert not [s for s in walk(kernel.body) if isinstance(s, Unknown)]
    # what a pragma says of the trips bounds no index
    stated = source.replace("    for", "    # advise: trip 2\n    for").replace("N - i", "-i")
    (kernel,) = read_kernels("k.py", stated)
    reasons = [s.reason for s in walk(kernel.body) if isinstance(s, Unknown)]
    assert reasons[0] == "the sign of a subscript is not known"


@pytest.mark.parametrize(
    ("written", "value"),
    [("1 << 20", 1 << 20), ("2**9", 512), ("64 * 1024 + 2", 65538), ("(1 << 4) // 3 - 1", 4)],
)
def test_sizes_may_be_computed_from_literals(written: str, value: int) -> None:
    source = source_of("a", dict.fromkeys(SHAPES, "int32"))
    said = source.replace("k=2)", f"k=2, Q={written})", 1)
    (found,) = read_kernels("k.py", said)
    assert found.sizes["Q"].value == value


@pytest.mark.parametrize(
    "written", ["n << 2", "1 << 64", "9**9999999", "2**-1", "3 // 0", "1.5 * 2"]
)
def test_sizes_that_are_no_numbers_of_the_source_are_refused(written: str) -> None:
    source = source_of("a", dict.fromkeys(SHAPES, "int32"))
    said = source.replace("k=2)", f"k=2, Q={written})", 1)
    with pytest.raises(SourceProblem, match="size Q must be a whole number"):
        read_kernels("k.py", said)


@pytest.mark.parametrize(
    ("above", "says"),
    [
        ("# advise: kernel N=1.5\n# advise: a: f8[N]", "`N` is an extent of an array"),
        ("# advise: kernel N=5\n# advise: a: f8[N]\n# advise: a: f8", "`a` is declared twice"),
        ("# advise: kernel N=5\n# advise: q: f8", "`q` is no name of the kernel"),
    ],
)
def test_numbers_that_cannot_be_are_refused(above: str, says: str) -> None:
    with pytest.raises(SourceProblem, match=says):
        read_kernels("k.py", f"{above}\ndef f(a, N: int):\n    return 2 * a\n")


def test_nothing_is_said_of_the_differences_of_one_element() -> None:
    kernel = read("np.diff(a[1, -2])", dict.fromkeys(SHAPES, "float64"))
    assert isinstance(kernel.body[0], Unknown)


@pytest.mark.parametrize(
    ("chained", "joined"),
    [
        ("a[k][1]", "a[k, 1]"),
        ("a[-1][1:]", "a[-1, 1:]"),
        ("a[k] [..., 0]", "a[k, ..., 0]"),
        ("a[k - 1][::-1] + a[0][:]", "a[k - 1, ::-1] + a[0, :]"),
    ],
)
def test_a_subscript_of_a_row_is_one_of_the_array(chained: str, joined: str) -> None:
    dtypes = dict.fromkeys(SHAPES, "float64")
    first, second = (
        [getattr(one, "value", None) for one in walk(read(f"{text} + 1", dtypes).body)]
        for text in (chained, joined)
    )
    assert first == second != []
    assert None not in first


STARRED = """\
{imports}

# advise: kernel
# advise: x: f8[N]
def f(x):
    r = {text}
    return r
"""


@pytest.mark.parametrize(
    ("imports", "text", "is_known"),
    [
        (["numpy"], "sin(pi * x)", True),
        (["math", "numpy"], "sin(pi * x)", True),
        # the sine of `math` is of no array, nor does NumPy have a factorial
        (["numpy", "math"], "sin(x)", False),
        (["numpy"], "factorial(x)", False),
        # what of the builtins NumPy hides depends on its release
        (["numpy"], "max(x, 0)", False),
        (["numpy"], "sum(x * x, 0)", True),
        (["numpy"], "x[len(x) - 1] + x", True),
        # and anything may have been in the other one
        (["numpy", "tools"], "sin(x)", False),
        (["numpy", "tools"], "x[len(x) - 1] + x", False),
    ],
)
def test_star_imports_bind_what_is_surely_in_them(
    imports: list[str], text: str, is_known: bool
) -> None:
    lines = "\n".join(f"from {module} import *" for module in imports)
    (kernel,) = read_kernels("f.py", STARRED.format(imports=lines, text=text))
    assert any(isinstance(one, Unknown) for one in walk(kernel.body)) != is_known
