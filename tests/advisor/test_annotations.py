"""The annotations: inert, light, immutable values that refuse contradictions."""

import ast
import copy
import doctest
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import advisor
from advisor import Block, Cyclic, Dist, Mesh, annotations, kernel
from advisor.distribution import (
    ArraySpec,
    AxisMap,
    BlockDim,
    CyclicDim,
    MeshSpec,
    NotDistributed,
    check_spec,
    spec_of_dist,
)
from advisor.numpy_table import Kind, UnknownDtype, dtype_of, itemsize_of, kind_of

ROOT = Path(advisor.__file__).resolve().parent.parent
MESH = Mesh(row=4, col="P")
NAMES = ("row", "col", "layer")


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, 3))]
    extents = st.one_of(st.integers(1, 9), st.sampled_from(("P", "Q")))
    return Mesh(**{name: draw(extents) for name in names})


@st.composite
def dists(draw: st.DrawFn) -> Dist:
    mesh = draw(meshes())
    free = [name for name, _ in mesh.axes]
    entries: list[str | Block | Cyclic | None] = []
    halos = []
    for _ in range(draw(st.integers(1, 3))):
        taken = tuple(free.pop() for _ in range(min(len(free), draw(st.integers(0, 2)))))
        if not taken:
            entries.append(None)
        elif len(taken) == 1 and draw(st.booleans()):
            entries.append(taken[0])
        elif draw(st.booleans()):
            entries.append(Block(taken))
        else:
            entries.append(Cyclic(taken, k=draw(st.integers(1, 4))))
        halos.append(draw(st.integers(0, 2)) if taken else 0)
    extents = st.one_of(st.integers(1, 99), st.sampled_from(("N", "N+1", "2*b")))
    return Dist(
        *(draw(extents) for _ in entries),
        *entries,
        on=mesh,
        order=draw(st.sampled_from(("C", "F"))),
        halo=tuple(halos),
        dtype=draw(st.sampled_from((None, "i4", "float64"))),
    )


def built(node: ast.expr) -> object:
    """Return the value that an expression of annotations and literals stands for."""
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return getattr(advisor, node.func.id)(
            *map(built, node.args), **{str(word.arg): built(word.value) for word in node.keywords}
        )
    return ast.literal_eval(node)


@given(st.one_of(dists(), meshes()))
def test_a_value_equals_what_its_text_its_copies_and_its_pickle_build(value: Dist | Mesh) -> None:
    again = built(ast.parse(repr(value), mode="eval").body)
    for other in (again, copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert other == value
        assert hash(other) == hash(value)
        assert repr(other) == repr(value)


def test_examples_in_the_documentation_of_the_classes() -> None:
    failed, tried = doctest.testmod(annotations)
    assert (failed, tried) == (0, 4)


@pytest.mark.parametrize("value", [Block("row"), Cyclic("row"), MESH, Dist("N", None)])
def test_values_are_immutable(value: object) -> None:
    before = repr(value)
    for name in ("axes", "shape", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(value, name, ())
    with pytest.raises(AttributeError, match="immutable"):
        delattr(value, "axes")
    assert repr(value) == before


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Dist("N", "rwo", on=MESH), r"dimension 0 .* axis 'rwo'.* has only row, col"),
        (lambda: Dist("N", "row"), "axis 'row', but the mesh is missing"),
        (lambda: Dist("N", "N", "row", "row", on=MESH), "'row' is used by both dimension 0 and"),
        (lambda: Block(("row", "row")), "'row' is used twice"),
        (lambda: Block(()), "at least one mesh axis"),
        (lambda: Dist("N", "N", "row", on=MESH), "3 entries"),
        (lambda: Dist(on=MESH), "at least one dimension"),
        (lambda: Dist("N", "row", "N", "col", on=Mesh(row=2, col=2)), "axis 'N'"),
        (lambda: Dist("N", Block("row"), "N", None, on=MESH), r"entry 1 .*not Block\('row'\)"),
        (lambda: Dist("N", 4, on=MESH), "entry 1 of Dist must be the distribution of dimension 0"),
        (lambda: Dist(0, "row", on=MESH), "extent of dimension 0 must be at least 1, not 0"),
        (lambda: Dist("-3", "row", on=MESH), "at least 1, not -3"),
        (lambda: Dist(" ", "row", on=MESH), "extent of dimension 0 is empty"),
        (lambda: Cyclic("row", k=0), "at least 1 element, not 0"),
        (lambda: Dist("N", "row", on=MESH, halo=-1), "halo of dimension 0 must not be negative"),
        (lambda: Dist("N", "row", on=MESH, halo=(1, 1)), "2 halo widths"),
        (lambda: Dist("N", None, on=MESH, halo=1), "no dimension is distributed"),
        (lambda: Dist("N", "M", "row", None, on=MESH, halo=(0, 1)), "halo 1 in dimension 1"),
        (lambda: Dist("N", "row", on=MESH, order="R"), "order is 'C' or 'F', not 'R'"),
        (lambda: Mesh(), "at least one axis"),
        (lambda: Mesh(row=0), "'row' needs at least 1 rank, not 0"),
        (lambda: Mesh(row="P*2"), "must be a number or the name of a size, not 'P.2'"),
        (lambda: Mesh(**{"a b": 2}), "'a b' is not a name"),
        (lambda: kernel(N=0), "size N must be at least 1, not 0"),
    ],
)
def test_a_contradiction_is_a_value_error_of_one_line(
    make: Callable[[], object], says: str
) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Block(3), "named by a string, not 3"),
        (lambda: Cyclic("row", k=True), "k must be a whole number"),
        (lambda: Mesh(row=1.5), "extent of mesh axis 'row'"),
        (lambda: Dist(1.5, "row", on=MESH), "extent of dimension 0"),
        (lambda: Dist("N", "row", on="mesh"), "takes a Mesh"),
        (lambda: Dist("N", "row", on=MESH, halo=True), "a halo width"),
        (lambda: Dist("N", "row", on=MESH, dtype=int), "dtype= takes a name"),
        (lambda: kernel(N="big"), "size N must be a whole number"),
        (lambda: kernel(3), "marks a function"),
    ],
)
def test_a_wrong_type_is_a_type_error_of_one_line(make: Callable[[], object], says: str) -> None:
    with pytest.raises(TypeError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_kernel_leaves_compiled_functions_as_they_are() -> None:
    assert kernel(len) is len
    assert kernel(N=3)(len) is len


def run_python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_importing_the_annotations_imports_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules); import advisor;"
        "print(*sorted(set(sys.modules) - before))"
    )
    # -S: no site, so that nothing has been imported beforehand that would hide an import
    imported = run_python("-S", "-c", program).split()
    assert imported == [
        "__future__",
        "advisor",
        "advisor.annotations",
    ]


USER_CODE = """
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Cyclic, Dist, Mesh, annotations, kernel

mesh = Mesh(row=4, col="P")
Image = Annotated[NDArray[np.int32], Dist("N", "N", Block("row"), Cyclic("col", k=2), on=mesh)]


@kernel
def bare(
    image: Annotated[NDArray[np.int32], Dist("N", "N", Block("row"), Block("col"), on=mesh)],
) -> NDArray[np.int32]:
    return image + image


@kernel(N=1000, b=3)
def sized(image: Image, b: int) -> int:
    return int(image.sum()) + b
"""


REVEALED = """

def undecorated(image: Image, b: int) -> int:
    return int(image.sum()) + b


reveal_type(undecorated)
reveal_type(sized)
reveal_type(bare(np.zeros((2, 2), np.int32)).dtype.itemsize)
sized(np.zeros((2, 2), np.int32), "three")
sized.no_such_attribute
Mesh(row=1.5)
"""


def test_a_strict_type_checker_reads_user_code(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    source = tmp_path / "user.py"
    source.write_text(USER_CODE + REVEALED)
    configuration = tmp_path / "mypy.ini"
    configuration.write_text(
        f"[mypy]\nstrict = True\nmypy_path = {ROOT}\nfollow_imports = silent\n"
    )
    cache = ROOT / ".mypy_cache" / "user_code"  # reading NumPy's types takes seconds
    out, err, _ = api.run([f"--config-file={configuration}", f"--cache-dir={cache}", str(source)])
    assert err == ""
    messages = [line.split(": ", 1)[1] for line in out.splitlines()[:-1]]
    undecorated, sized, itemsize = (line for line in messages if line.startswith("note"))
    assert sized == undecorated
    assert sized.count("signedinteger") == 1
    assert sized.endswith(' b: int) -> int"')
    assert itemsize == 'note: Revealed type is "int"'
    errors = [line.rsplit("[", 1)[1] for line in messages if line.startswith("error")]
    assert errors == ["arg-type]", "attr-defined]", "arg-type]"]


axis_maps: st.SearchStrategy[AxisMap] = st.one_of(
    st.just(NotDistributed()),
    st.builds(BlockDim, st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple)),
    st.builds(
        CyclicDim,
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple),
        st.integers(-1, 3),
    ),
)
specs = st.builds(
    ArraySpec,
    name=st.just("x"),
    dtype=st.none(),
    shape=st.lists(st.sampled_from(("N", "3", "0")), min_size=1, max_size=2).map(tuple),
    dims=st.lists(axis_maps, min_size=1, max_size=2).map(tuple),
    mesh=st.builds(
        lambda extents: MeshSpec(tuple(zip(NAMES, extents, strict=False))),
        st.lists(st.sampled_from((0, 1, 4, "P", "2*P")), min_size=1, max_size=3),
    ),
    order=st.sampled_from(("C", "F", "K")),
    halo=st.lists(st.integers(-1, 1), min_size=1, max_size=2).map(tuple),
)


def annotation_of(spec: ArraySpec) -> Dist:
    dims: list[Block | Cyclic | None] = []
    for dim in spec.dims:
        match dim:
            case NotDistributed():
                dims.append(None)
            case BlockDim(axes):
                dims.append(Block(axes))
            case CyclicDim(axes, k):
                dims.append(Cyclic(axes, k=k))
    if len(dims) != len(spec.shape):
        raise ValueError("an annotation pairs them by position")
    mesh = Mesh(**dict(spec.mesh.axes))
    return Dist(*spec.shape, *dims, on=mesh, order=spec.order, halo=spec.halo)


@settings(max_examples=100)
@given(specs)
def test_a_specification_is_refused_exactly_when_its_annotation_is(spec: ArraySpec) -> None:
    problems = check_spec(spec)
    assert all(problem and "\n" not in problem for problem in problems)
    if problems:
        with pytest.raises(ValueError):
            annotation_of(spec)
    else:
        assert spec_of_dist("x", annotation_of(spec)) == spec


def test_an_unknown_element_type_is_a_contradiction() -> None:
    problems = check_spec(spec_of_dist("x", Dist("N", None, dtype="i5")))
    assert problems == ["unknown element type 'i5'; expected one such as i4 or float64"]


def test_element_types_are_those_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    kinds = {"b": Kind.BOOLEAN, "i": Kind.INTEGER, "u": Kind.INTEGER}
    kinds |= {"f": Kind.FLOATING, "c": Kind.COMPLEX}
    codes = [f"{kind}{size}" for kind in "biufc" for size in (1, 2, 4, 8, 16)]
    names = [
        f"{stem}{bits}"
        for stem in ("int", "uint", "float", "complex")
        for bits in (8, 16, 32, 64, 128)
    ]
    words = "bool bool_ int uint intp uintp float double single half short byte ubyte ushort"
    words += " intc uintc longlong ulonglong complex cdouble csingle <i4 >f8 =c16 |b1"
    checked = 0
    for name in [*codes, *names, *words.split(), *"?bBhHiIlLqQefdFDpP"]:
        try:
            theirs = numpy.dtype(name)
        except TypeError:
            with pytest.raises(UnknownDtype):
                dtype_of(name)
            continue
        if theirs.itemsize > (16 if theirs.kind == "c" else 8):
            continue  # extended precision has no fixed size
        ours = dtype_of(name)
        assert (ours.name, itemsize_of(name)) == (theirs.name, theirs.itemsize), name
        assert kind_of(name) is kinds[theirs.kind]
        assert numpy.dtype(ours.code) == numpy.dtype(ours.name)
        assert ours.signed is (theirs.kind in "ifc")
        checked += 1
    assert checked > 50
