"""What ``-D`` gives values to: sizes are whole numbers, and a name that nothing has is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import EXAMPLES, Program

from advisor.cli.common import names_in
from advisor.frontend.kernels import read_kernels
from advisor.ranking.compare import bindable, checked_sizes
from advisor.source import SourceProblem
from tests.advisor.verify.commented_kernel import box_sum_text

BOX_SUM = str(EXAMPLES / "box_sum.py")
RUN = ("--machine", "t3e", "--output-format", "concise", "--no-cache")


def test_nothing_is_told_where_a_file_could_not_be_read_or_none_was_looked_into(
    program: Program,
) -> None:
    Path("bad.py").write_text("# advise: kernel\ndef f(:\n")
    Path("plain.py").write_text("x = 1\n")
    assert "changes nothing" not in program(BOX_SUM, "bad.py", *RUN, "-D", "Q=3").err
    assert program("plain.py", *RUN, "-D", "Q=3").err == ""


@pytest.mark.parametrize("command", [(), ("explain",)])
def test_a_size_is_a_whole_number(program: Program, command: tuple[str, ...]) -> None:
    place = f"{BOX_SUM}:35" if command else BOX_SUM
    ended = program(*command, place, "--machine", "t3e", "-D", "N=2.5")
    assert ended.code == 2
    said = "box_sum.py:20:5: size N of kernel `box_sum` must be a whole number of at least 1"
    assert f"{said}, not 2.5 (-D)\n" in ended.err


def test_a_configured_size_is_named_with_its_file(program: Program) -> None:
    Path("k.py").write_text(box_sum_text(60, 4))
    Path("pyproject.toml").write_text("[tool.advise]\nsizes = { b = 1.5 }\n")
    assert "not 1.5 (pyproject.toml)" in program("k.py", *RUN).err
    Path("pyproject.toml").write_text("[tool.advise]\nsizes = { b = 3.0, N = 50.0 }\n")
    given = program("k.py", *RUN)
    Path("pyproject.toml").write_text("[tool.advise]\nsizes = { b = 3, N = 50 }\n")
    assert (given.err, given.out) == ("", program("k.py", *RUN).out)


def test_predictions_and_choices_ask_for_whole_numbers_too(program: Program) -> None:
    assert "N = 2.5 must be a whole number of at least 1" in program.refusal(
        "predict", BOX_SUM, "--machine", "t3e", "-D", "N=2.5"
    )
    huge = "9" * 30
    assert f"N = {huge} is too large" in program.refusal(
        "predict", BOX_SUM, "--machine", "t3e", "-D", f"N={huge}"
    )


def test_ranks_are_whole_too(program: Program) -> None:
    jacobi = str(EXAMPLES / "mpi" / "jacobi.py")
    ended = program(jacobi, *RUN, "-D", "P=2.5")
    assert ended.code == 2
    assert "jacobi.py:1:1: size P must be a whole number, not 2.5 (-D)" in ended.err


def test_what_only_a_pragma_names_may_be_any_number() -> None:
    text = (
        "# advise: kernel N=9\n# advise: x: f8[N]\ndef f(x):\n"
        "    # advise: cost a*N us\n    x = g(x)\n    return x\n"
    )
    (kernel,) = read_kernels("k.py", text)
    assert bindable(kernel) == {"N", "a"}
    assert checked_sizes("k.py", kernel, {"a": 0.5}).values["a"] == 0.5
    assert checked_sizes("k.py", kernel, {"N": 7.0}).values["N"] == 7
    with pytest.raises(SourceProblem, match="whole number"):
        checked_sizes("k.py", kernel, {"N": 0.5})


def test_explanations_tell_such_names_too(program: Program) -> None:
    Path("k.py").write_text(box_sum_text(60, 4))
    line = program("k.py", *RUN).out.split(":")[1]
    place = ("explain", f"k.py:{line}", "--machine", "t3e")
    plain, known = program(*place), program(*place, "-D", "N=60")
    assert (plain.code, plain.err, known.err) == (0, "", "")
    ended = program(*place, "-D", "Q=3")
    assert (ended.code, ended.out) == (plain.code, plain.out)
    assert ended.err.startswith("advise: -D Q changes nothing: ")


SCALED = """\
import numpy as np


# advise: kernel N=10
# advise: x: f8[N]
def scaled(x, factor: float):
    return x * factor
"""


def test_arguments_of_kernels_are_names_where_they_run() -> None:
    assert names_in("k.py", SCALED) == {"N"}
    assert names_in("k.py", SCALED, arguments=True) == {"N", "x", "factor"}


def test_functions_that_numba_compiles_have_names() -> None:
    source = (
        "import numpy as np\nfrom numba import njit\n\n\n@njit\ndef f(a):\n"
        "    for i in range(a.shape[0]):\n        a[i] += 1\n\n\nn = 90\nf(np.zeros(n))\n"
    )
    assert "n" in names_in("f.py", source)
