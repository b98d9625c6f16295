"""Comments that say what the annotations say: grammar, places, and refusals of one line."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.distribution import (
    ArraySpec,
    AxisMap,
    BlockDim,
    CyclicDim,
    MeshSpec,
    NotDistributed,
    check_spec,
)
from advisor.frontend.comments import parse_comment, read_comments, scan_comments
from advisor.frontend.directives import (
    AnyDirective,
    ArrayComment,
    CommentError,
    suppressed_blocks,
)

NAMES = ("row", "col", "layer")


def only(text: str) -> AnyDirective:
    (directive,) = parse_comment(text)
    return directive


def array(text: str) -> ArraySpec:
    directive = only(f"# advise: {text}")
    assert isinstance(directive, ArrayComment)
    return directive.spec


def refusal(text: str) -> CommentError:
    with pytest.raises(CommentError) as caught:
        parse_comment(f"# advise: {text}")
    return caught.value


def test_halo_of_one_width_is_for_the_distributed_dimensions() -> None:
    spec = array("x: f8[N, M] over (row, none) on mesh(row=2) halo=3")
    assert spec.halo == (3, 0)
    assert array("x: f8[N] over (row) on mesh(row=2) halo=0").halo == (0,)


def written(spec: ArraySpec) -> str:
    """Spell a specification as a comment does."""

    def dim_text(dim: AxisMap) -> str:
        match dim:
            case NotDistributed():
                return "none"
            case BlockDim(axes):
                return f"block({'*'.join(axes)})"
            case CyclicDim(axes, k):
                return f"cyclic({'*'.join(axes)}, {k})"

    text = f"{spec.name}: {spec.dtype}[{', '.join(spec.shape)}]"
    text += f" over ({', '.join(map(dim_text, spec.dims))})"
    text += f" on mesh({', '.join(f'{name}={extent}' for name, extent in spec.mesh.axes)})"
    return f"{text} order={spec.order} halo=({', '.join(map(str, spec.halo))})"


axes_used = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple)
axis_maps: st.SearchStrategy[AxisMap] = st.one_of(
    st.just(NotDistributed()),
    st.builds(BlockDim, axes_used),
    st.builds(CyclicDim, axes_used, st.integers(1, 4)),
)


@st.composite
def specs(draw: st.DrawFn) -> ArraySpec:
    rank = draw(st.integers(1, 3))

    def times(strategy: st.SearchStrategy[object]) -> tuple[object, ...]:
        return tuple(draw(st.lists(strategy, min_size=rank, max_size=rank)))

    extents = draw(st.lists(st.sampled_from((1, 4, "P")), min_size=1, max_size=3))
    return ArraySpec(
        name=draw(st.sampled_from(("x", "image", "_grid2", "größe"))),
        dtype=draw(st.sampled_from(("i4", "float64", "c16", "b1"))),
        shape=times(st.sampled_from(("N", "3", "N+1", "(N+1)*2", "max(N, 4)"))),
        dims=times(axis_maps),
        mesh=MeshSpec(tuple(zip(NAMES, extents, strict=False))),
        order=draw(st.sampled_from(("C", "F"))),
        halo=times(st.integers(0, 2)),
    )


@given(specs())
def test_what_is_written_is_read_or_refused_as_check_spec_says(spec: ArraySpec) -> None:
    problems = check_spec(spec)
    if problems:
        assert refusal(written(spec)).message == problems[0]
    else:
        assert array(written(spec)) == spec


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        (
            "",
            10,
            "expected kernel, NAME: DTYPE[...], trip, prob, cost or ignore, but the comment",
        ),
        (
            "igmore",
            11,
            "expected kernel, NAME: DTYPE[...], trip, prob, cost or ignore, but found",
        ),
        ("kernel N", 19, "expected '=', but the comment ends"),
        ("kernel N=0", 20, "expected a whole number, at least 1, but found '0'"),
        ("kernel N=1 N=2", 22, "size N is bound twice"),
        ("kernel N=" + "9" * 5000, 20, "expected a whole number below 10**18"),
        ("x: f8 over", 17, "expected '[', but found 'over'"),
        ("x: q7[N]", 14, "unknown element type 'q7'"),
        ("x: 8[N]", 14, "expected an element type such as i4 or float64, but found '8'"),
        ("x: f8[N", 18, "expected ',' or ']', but the comment ends"),
        ("x: f8[M, N+]", 22, "the expression ends too early"),
        ("x: f8[M, 0]", 20, "expected an extent at least 1, but found '0'"),
        ("x: f8[N] ober (row)", 20, "expected over (...), order=, halo= or the end"),
        ("x: f8[N] over (3) on mesh(row=2)", 26, "expected block(axis), cyclic(axis, k), a mesh"),
        ("x: f8[N] over (block(r, 2)) on mesh(r=2)", 33, "expected ')', but found ','"),
        ("x: f8[N] over (cyclic(r, 0)) on mesh(r=2)", 36, "the elements in a piece, at least 1"),
        ("x: f8[N] over (row)", 30, "expected 'on', but the comment ends"),
        ("x: f8[N] over (row) on mesh(row=0)", 43, "a number of ranks or the name of a size, at"),
        ("x: f8[N] over (row) on mesh(row=2) order=R", 52, "expected C or F, but found 'R'"),
        ("x: f8[N] over (row) on mesh(row=2) halo=-1", 51, "expected a whole number of elements"),
        ("x: f8[N] order=C order=C", 28, "order is given twice"),
        ("x: f8[N] halo=1", 25, "halo 1, but no dimension is distributed"),
        ("x: f8[N] over (row, col) on mesh(row=2, col=2)", 11, "2 distributions are given for"),
        ("x: f8[N] over (rwo) on mesh(row=2)", 11, "axis 'rwo', but the mesh has only row"),
        ("x: f8[N] over (block(row*row)) on mesh(row=2)", 11, "'row' is used twice by dimension 0"),
        ("x: f8[N] over (row) on mesh(row=2, row=3)", 11, "mesh axis 'row' is named twice"),
        ("trip", 15, "expected a number of iterations, but the comment ends"),
        ("trip -1", 16, "expected a number of iterations at least 0, but found '-1'"),
        ("prob 1.5", 16, "expected a probability from 0 to 1, but found '1.5'"),
        ("trip 9**9**9**9", 20, "a power needs more than"),
        ("trip " + "(" * 100_000 + ")" * 100_000, 116, "brackets nest more than"),
        ("trip 3 " + "x" * 50_000, 50_016, "longer than"),
        ("cost 3*N", 19, "expected a unit (us, ms or s) at the end"),
        ("cost -2 ms", 16, "expected a cost such as 3*N us at least 0, but found '-2'"),
        ("ignore-foo", 18, "expected file, start or end, but found 'foo'"),
        ("ignore[ADV201 ADV101]", 25, "expected ',' or ']', but found 'ADV101'"),
        ("ignore[ADV201] because", 26, "expected the end of the comment, but found 'because'"),
    ],
)
def test_a_mistake_is_one_line_at_its_place(text: str, column: int, says: str) -> None:
    error = refusal(text)
    assert says in error.message
    assert (error.line, error.column) == (1, column)
    assert "\n" not in str(error)
    assert len(error.message) < 200
    assert str(error) == f"line 1, column {column}: {error.message}"
    assert str(error.in_file("k.py")) == f"k.py:1:{column}: {error.message}"


def test_places_of_mistakes_count_from_the_start_of_the_file() -> None:
    with pytest.raises(CommentError) as caught:
        read_comments("a = 1\r\nb = 2\r    # advise: trip 3*\n")
    assert (caught.value.line, caught.value.column) == (3, 22)


def test_one_mistake_hides_no_other_directive() -> None:
    source = "# advise: trip 1\n# advise: trip\nx = (  # advise: trip 3\n# advise: igmore\n"
    comments = scan_comments(source)
    assert [directive.line for directive in comments.directives] == [1, 3]
    assert [error.line for error in comments.errors] == [2, 4]
    with pytest.raises(CommentError) as caught:
        read_comments(source)
    assert caught.value.line == 2


FRAGMENTS = """
kernel N=3 x : f8 [ N , N+1 ] over ( block row * col cyclic 2 none ) on mesh = order F halo 1
trip prob 0.3 cost us ignore - file start ADV201 $ ' é 1e9 ** / #
"""


@given(st.lists(st.sampled_from(FRAGMENTS.split()), max_size=14).map(" ".join))
@example("x : f8 [ N ] over ( row ) on mesh ( row = 2 ) order")
def test_any_text_is_read_or_refused_at_a_place_within_it(text: str) -> None:
    comment = f"# advise: {text}"
    try:
        directives = parse_comment(comment, 7, 3)
    except CommentError as error:
        assert error.line == 7
        assert 4 <= error.column <= 4 + len(comment)
        assert error.message
        assert "\n" not in error.message
    else:
        assert directives
        assert all(a.span.end_column <= b.column for a, b in pairwise(directives))
        assert directives[-1].span.end_column <= 3 + len(comment)


def blocks(source: str) -> list[tuple[tuple[str, ...], int, int]]:
    return [
        (block.suppression.codes, block.first_line, block.last_line)
        for block in suppressed_blocks(read_comments(source))
    ]


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        ("# advise: ignore-start[ADV201]\n", 1, "ignore-start[ADV201] without ignore-end[ADV201]"),
        ("x\n# advise: ignore-end\n", 2, "ignore-end without ignore-start"),
        (
            "# advise: ignore-start[ADV1]\n# advise: ignore-end[ADV2]\n",
            2,
            "ignore-end[ADV2] without ignore-start[ADV2]",
        ),
    ],
)
def test_a_block_without_partner_is_refused(source: str, line: int, says: str) -> None:
    with pytest.raises(CommentError) as caught:
        blocks(source)
    assert (caught.value.line, caught.value.column, caught.value.message) == (line, 1, says)
