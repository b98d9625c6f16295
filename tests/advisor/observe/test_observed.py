"""What a run showed binds what annotations would have said, in the front end, store and cache."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.cli.app import main
from advisor.codec import decode, encode
from advisor.engine import FileResult, Options, check_source
from advisor.frontend.kernels import read_kernels
from advisor.ir.statements import Store, Unknown, Unrolled, walk
from advisor.observed import (
    FUNCTION,
    SEEN,
    Observations,
    Seen,
    SeenArray,
    SeenLoop,
    SeenNumber,
    by_signature,
)
from costdb.expr import num, sym
from costdb.store.database import (
    add_observations,
    forget_observations,
    writing,
)
from costdb.store.place import store_path

ROWS = """\
import numpy as np


def scale(a, out, factor):
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = factor * a[i, j]
"""

MARKED = """\
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row="P")


class Image:
    @kernel(N=10, b=3)
    def smooth(
        self,
        image: Annotated[NDArray[np.float64], Dist("N + 1", "N", Block("row"), None, on=mesh)],
        b: int,
    ):
        moved = image.copy()
        for _ in range(b - 1):
            moved[1:, :] = moved[:-1, :]
        return moved
"""


def scale(layout: str, shape: tuple[int, int] | None = (4096, 512), **more: object) -> Seen:
    arrays = tuple(SeenArray(name, "float64", 2, layout, shape, None) for name in ("a", "out"))
    return Seen("scale", 4, "numba", arrays, (SeenNumber("factor", "float64"),), **more)


def rests_on_nothing(result: FileResult) -> bool:
    """Return whether no finding rests on a run: what is given is assumed, and sizes are open."""
    told = [finding.evidence.remarks[0] for finding in result.findings]
    predicted = [finding.prediction for finding in result.findings]
    return all("assumed" in one for one in told) and not any(predicted)


def check(source: str, *observed: Seen) -> FileResult:
    options = Options("t3e", {}, (), (), None, observed=observed)
    return check_source("f.py", source, options)


def test_only_the_layout_that_was_compiled_makes_a_walk_by_rows_wrong() -> None:
    found = check(ROWS, scale("F"))
    assert "ADV501" in {f.code for f in found.findings}
    for finding in found.findings:
        assert {(a.name, a.value, a.origin) for a in finding.assumptions} == {
            ("n", 4096, "observed"),
            ("m", 512, "observed"),
        }
        assert finding.fix is None or finding.fix.applicability == "display"
    plain = check(ROWS, scale("C"))
    assert (plain.findings, plain.remarks) == ((), ())
    assert rests_on_nothing(check(ROWS))


def test_strides_that_a_type_does_not_tell_are_named_as_the_reason() -> None:
    found = check(ROWS, scale("A"))
    assert not found.findings
    (remark,) = found.remarks
    assert "`a` came with strides that its type does not tell" in remark.message


def test_arrays_of_any_strides_are_read_where_python_runs_the_text_and_none_is_stored_to() -> None:
    seen = replace(scale("A"), source="call")
    (reason,) = {one.reason for one in check(ROWS, seen).coverage.not_understood}
    assert reason == "`out` shares its memory with an array of other strides"
    reading = ROWS.replace("out[i, j] = factor * a[i, j]", "factor += a[i, j] * out[i, j]")
    read = check(f"{reading}    return factor\n", seen)
    assert not read.coverage.not_understood


def test_several_signatures_are_each_advised_on_and_told_once() -> None:
    both = check(ROWS, scale("C"), scale("F"), scale("F", (64, 64)))
    alone = check(ROWS, scale("F"))
    assert both.findings == alone.findings


def test_a_run_goes_over_annotations_and_ranks_over_the_mesh() -> None:
    seen = Seen(
        "Image.smooth",
        12,
        "call",
        (SeenArray("image", "float32", 2, "F", (4097, 4096)),),
        (SeenNumber("b", "int64", 7),),
        ranks=16,
    )
    (kernel,) = read_kernels("f.py", MARKED, [seen])
    assert {n: (b.value, b.origin) for n, b in kernel.sizes.items()} == {
        "N": (4096, "observed on 16 ranks"),
        "b": (7, "observed on 16 ranks"),
        "P": (16, "observed on 16 ranks"),
    }
    array = kernel.arrays["image"]
    assert (array.dtype, array.spec.order) == ("float32", "F")
    assert array.spec.dims == read_kernels("f.py", MARKED)[0].arrays["image"].spec.dims


def test_sizes_that_arguments_disagree_on_stay_as_the_source_says() -> None:
    seen = Seen("Image.smooth", 12, "call", (SeenArray("image", "float64", 2, "C", (41, 50)),))
    (kernel,) = read_kernels("f.py", MARKED, [seen])
    assert (kernel.sizes["N"].value, kernel.sizes["N"].origin) == (10, "")


def test_a_function_of_another_name_or_parameters_is_left_alone() -> None:
    assert read_kernels("f.py", MARKED, [replace(scale("F"), function="other")])
    assert rests_on_nothing(check(ROWS, replace(scale("F"), function="Image.scale")))
    assert rests_on_nothing(check(ROWS.replace("out", "result"), scale("F")))


def test_documents_keep_everything_and_signatures_keep_the_heaviest() -> None:
    loops = (SeenLoop(3, 2, "static"),)
    many = [
        scale("C"), scale("C", (9, 9)), scale("C", (9, 10)), scale("F", None, ranks=4),
        scale("F", (2, 2), calls=3, loops=loops), replace(scale("C"), function="A.g"),
    ]  # fmt: skip
    assert [decode(Seen, json.loads(json.dumps(encode(one)))) for one in many] == many
    kept = by_signature(many)
    assert {one.typed for one in kept} == {one.typed for one in many}
    assert len(kept) == len({one.typed for one in kept})
    for one in kept:
        assert one.weight == max(other.weight for other in many if other.typed == one.typed)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


def keep(path: Path, *observed: Seen) -> None:
    with writing() as connection:
        add_observations(
            connection,
            "p.py",
            FUNCTION,
            [(str(path), seen.function, {SEEN: encode(seen)}) for seen in observed],
        )


def test_a_later_run_replaces_what_it_saw_and_nothing_else(data: Path) -> None:
    known = Observations()
    file, other = data / "f.py", data / "g.py"
    assert known.of_file(str(file)) == ()
    keep(file, scale("C"), scale("F"))
    keep(other, scale("C"))
    assert known.of_file(str(file)) == (scale("C"), scale("F"))
    keep(file, scale("F", (8, 8)))
    assert known.of_file(str(file)) == (scale("F", (8, 8)),)
    assert known.of_file(str(other)) == (scale("C"),)
    with writing() as connection:
        assert forget_observations(connection) == 2
    assert known.of_file(str(file)) == known.of_file(str(other)) == ()


def test_the_command_line_knows_the_sizes_of_the_last_run(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(data)
    file = data / "f.py"
    file.write_text(ROWS)

    def advise(*more: str) -> str:
        assert main([str(file), "--machine", "t3e", *more]) in (0, 1)
        return capsys.readouterr().out

    assert "no time is predicted" in advise()
    keep(file, scale("F", ranks=16))
    first = advise("--select", "ADV501")
    assert "observed: m=512, n=4096 on 16 ranks" in " ".join(first.split())
    assert advise("--select", "ADV501") == first
    assert "n=64" in advise("-D", "n=64")
    assert "no time is predicted" in advise("--isolated")
    keep(file, scale("C"))
    assert "ADV" not in advise()


def test_the_store_is_where_the_platform_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from platformdirs import user_data_dir

    monkeypatch.delenv("ADVISE_DATA_DIR", raising=False)
    for home in ("", " ", "/somewhere"):
        monkeypatch.setenv("XDG_DATA_HOME", home)
        assert str(store_path().parent) == user_data_dir("kernel-advisor", appauthor=False)


PRODUCTS = """\
import numpy as np


def step(a, x, m, y, n):
    y[:] = a @ x
    x += a.T @ y * m
    for i in range(n):
        a[i, 0] = a[0, i] = x[i]
    return a[:n] @ x
"""


def test_equal_extents_that_were_seen_are_one_size() -> None:
    """Products of arrays are read, and edits still hold for shapes that nobody saw."""
    shapes = {"a": (30, 20), "x": (20,), "y": (30,), "m": (1,)}
    arrays = tuple(
        SeenArray(name, "float64", len(shape), "C", shape, None) for name, shape in shapes.items()
    )
    seen = Seen("step", 4, "call", arrays, (SeenNumber("n", "int64", 20),))
    (kernel,) = read_kernels("c.py", PRODUCTS, (seen,))
    assert not [one for one in walk(kernel.body) if isinstance(one, Unknown)]
    rows, columns = kernel.extents("a")
    assert (rows,) == kernel.extents("y") and (columns,) == kernel.extents("x")
    # a parameter that counts as many is that size, and what is broadcast has none
    assert columns == sym("n") and kernel.extents("m") == (num(1),)
    assert {name: size.value for name, size in kernel.sizes.items()} == {"a.axis0": 30, "n": 20}
    assert kernel.general is not None
    general = kernel.general(None)
    assert len({*general.extents("a"), *general.extents("x"), *general.extents("y")}) == 4
    # what is assigned twice in one statement is edited by no rule
    (both,) = [one for one in walk(kernel.body) if isinstance(one, Unrolled)]
    assert [one.array for one in both.body if isinstance(one, Store)] == ["a", "a"]
