"""The page about annotations: every example is read, and says what the page claims."""

import re
import runpy
from pathlib import Path

import pytest

import advisor
from advisor import Block, Cyclic, Dist
from advisor.distribution import ArraySpec, spec_of_dist
from advisor.frontend.comments import read_comments
from advisor.frontend.directives import (
    AnyDirective,
    ArrayComment,
    KernelComment,
    suppressed_blocks,
)
from tests.advisor.ownership import local_indices

PAGE = Path(advisor.__file__).resolve().parent.parent / "docs" / "annotations.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def block_with(text: str) -> str:
    (found,) = (block for block in blocks() if text in block)
    return found


def array_comments(block: str) -> dict[str, ArraySpec]:
    found = [each for each in read_comments(block) if isinstance(each, ArrayComment)]
    return {each.spec.name: each.spec for each in found}


def test_every_python_example_runs_and_its_comments_are_read(tmp_path: Path) -> None:
    directives: list[AnyDirective] = []
    for number, block in enumerate(blocks()):
        file = tmp_path / f"example_{number}.py"
        file.write_text(block, encoding="utf-8")
        runpy.run_path(str(file))
        found = read_comments(block)
        suppressed_blocks(found)
        directives += found
    kinds = {type(directive).__name__ for directive in directives}
    assert kinds == {
        *("KernelComment", "ArrayComment", "Suppression"),
        *("Trip", "Probability", "StatedCost"),
    }


def test_the_first_example_says_the_same_in_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "typed.py"
    file.write_text(block_with("@kernel(N=1000, b=3)"), encoding="utf-8")
    function = runpy.run_path(str(file))["box_sum"]
    (dist,) = function.__annotations__["image"].__metadata__
    commented = block_with("# advise: kernel N=1000 b=3")
    assert array_comments(commented) == {"image": spec_of_dist("image", dist, "i4")}
    (sizes,) = (each for each in read_comments(commented) if isinstance(each, KernelComment))
    assert dict(sizes.sizes) == function.__advise__


def test_the_list_of_distributions_says_the_same_in_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "typed.py"
    file.write_text(block_with("columns_first = Dist"), encoding="utf-8")
    dists = {k: v for k, v in runpy.run_path(str(file)).items() if isinstance(v, Dist)}
    comments = array_comments(block_with("def many"))
    assert len(comments) == 6
    assert comments == {
        name: spec_of_dist(name, dist, comments[name].dtype) for name, dist in dists.items()
    }


@pytest.mark.parametrize("dim", [Block("row"), Cyclic("row"), Cyclic("row", k=2)])
def test_the_table_of_owners_is_what_ownership_computes(dim: Block | Cyclic) -> None:
    (row,) = (
        line
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith("| `" + repr(dim).replace("'", '"') + "` | 0")
    )
    cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
    (mapping,) = spec_of_dist("x", Dist(10, dim, on=advisor.Mesh(row=4))).dims
    assert cells == [" ".join(map(str, local_indices(rank, 10, 4, mapping))) for rank in range(4)]
