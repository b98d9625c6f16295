"""ADV103 over more axes: slabs that become pencils or blocks mean what was proposed."""

from __future__ import annotations

from math import prod

import pytest

from advisor.edits import apply_edits
from advisor.finding import Applicability
from advisor.ir.proposal import Proposal
from tests.transforms.checks import Rewrite, check_square, check_text, only_kernel
from transforms.distributions.entries import factorisations
from transforms.distributions.mesh_shape import spreadings

HEAD = """\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Cyclic, Dist, Mesh, kernel

"""
STEP = """\
def step(u{annotation}):
    u[1:-1, 1:-1, 1:-1] = (
        u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:]
    )
    return u
"""


def in_annotation(dims: str, mesh: str = "Mesh(z=8)") -> str:
    layout = f': Annotated[NDArray[np.float64], Dist("N", "N", "N", {dims}, on={mesh})]'
    return f"{HEAD}@kernel(N=24)\n{STEP.format(annotation=layout)}"


def in_comment(dims: str) -> str:
    head = f"# advise: kernel N=24\n# advise: u: f8[N, N, N] over ({dims}) on mesh(z=8)\n"
    return f"import numpy as np\n\n{head}{STEP.format(annotation='')}"


def offered(source: str) -> list[Proposal]:
    return list(spreadings(only_kernel(source)))


@pytest.mark.parametrize(
    "source",
    [
        in_annotation('Block("z"), None, None'),
        in_annotation('None, "z", None'),
        in_annotation('None, None, Block("z")', "Mesh( z = 8 )"),
        in_comment("block(z), none, None"),
        in_comment("none, z, none"),
    ],
)
def test_rewritten_annotations_are_the_variants(source: str) -> None:
    kernel = only_kernel(source)
    proposals = offered(source)
    # two further axes to choose from, as 2 x 4 and 4 x 2; all three as 2 x 2 x 2
    assert len(proposals) == 2 * 2 + 1
    for proposal in proposals:
        # no result changes, but the program that distributes is another one
        assert proposal.legality.applicability is Applicability.DISPLAY
        found = Rewrite(source, kernel, proposal, apply_edits(source, proposal.edits()))
        again = only_kernel(found.rewritten)
        assert again.arrays["u"].spec == proposal.variant.arrays["u"].spec
        assert prod(n for _, n in again.arrays["u"].spec.mesh.axes) == 8
        if "@kernel" in source:  # else the edit is within a comment
            check_text(found)
        check_square(found)


def test_members_of_a_family_are_its_kernel_at_their_shape() -> None:
    for proposal in offered(in_annotation('Block("z"), None, None')):
        assert proposal.family is not None
        general = dict(proposal.family.kernel.arrays["u"].spec.mesh.axes)
        shape = dict(proposal.variant.arrays["u"].spec.mesh.axes)
        assert {axis: proposal.family.bindings[str(general[axis])] for axis in shape} == shape


@pytest.mark.parametrize(
    "dims, mesh",
    [
        ('Block("z"), None, None', "Mesh(z=1)"),
        ('Block("z"), None, None', 'Mesh(z="P")'),
        ('Block("z"), Block("y"), None', "Mesh(z=4, y=2)"),
        ('Cyclic("z"), None, None', "Mesh(z=8)"),
        ("None, None, None", "Mesh(z=8)"),
    ],
)
def test_nothing_is_offered_where_there_are_no_slabs(dims: str, mesh: str) -> None:
    assert not offered(in_annotation(dims, mesh))


def test_arrays_that_disagree_are_left_alone() -> None:
    source = in_annotation('Block("z"), None, None').replace(
        "on=Mesh(z=8))]):",
        "on=Mesh(z=8))],\n"
        '  v: Annotated[NDArray[np.float64], Dist("N", Block("z"), on=Mesh(z=8))]):',
    )
    assert "v:" in source
    assert not offered(source)


def test_shared_meshes_say_so() -> None:
    source = in_annotation('Block("z"), None, None', "mesh").replace(
        "@kernel", "mesh = Mesh(z=8)\n\n\n@kernel"
    )
    both = source + "\n\n" + source[source.index("@kernel") :].replace("def step", "def again")
    from advisor.frontend.kernels import read_kernels

    one, _ = read_kernels("f.py", both)
    assert all("shared" in p.legality.argument for p in spreadings(one))
    assert not any("shared" in p.legality.argument for p in offered(source))


@pytest.mark.parametrize("number, parts", [(1, 1), (1, 3), (12, 1), (12, 2), (36, 3), (7, 2)])
def test_factorisations_are_all_of_them(number: int, parts: int) -> None:
    def counted(left: int, more: int) -> list[tuple[int, ...]]:
        if more == 0:
            return [()] if left == 1 else []
        divisors = [d for d in range(1, left + 1) if left % d == 0]
        return [(d, *rest) for d in divisors for rest in counted(left // d, more - 1)]

    assert list(factorisations(number, parts)) == counted(number, parts)
