"""``advise predict``: what it says of every kind of file, and what it asks for."""

from pathlib import Path

import pytest

from tests.advisor.cli.commands import EXAMPLES, KERNEL, Program

REPAIR = str(EXAMPLES / "models" / "machine_repair.pam")
PSTSWM = str(EXAMPLES / "pstswm" / "pstswm.toml")
SORTS = str(EXAMPLES / "sorts" / "sorts.toml")
MESH = ("-D", "problem=T42", "-D", "algorithm=TH", "-D", "PX=16", "-D", "PY=4")
SEVERAL = f"""{KERNEL}

@kernel(N=1000)
def doubled(
    image: Annotated[NDArray[np.int32], Dist("N", "N", Block("row"), Block("col"), on=mesh)]
) -> None:
    image[:, :] = image + image
"""


# --- process models -----------------------------------------------------------------------


def test_a_formula_is_read_back_and_gives_the_prediction(program: Program) -> None:
    from costdb.expr import evaluate, free_symbols, parse

    found = program.json("predict", REPAIR, "-D", "P=7", "-D", "N=30")
    formula = parse(found["formula"])
    assert free_symbols(formula) == {"P", "N"}
    for machines in (1, 50, 101, 102, 3000):
        given = ("-D", f"P={machines}", "-D", "N=30")
        seconds = program.json("predict", REPAIR, *given)["seconds"]["mid"]
        assert seconds == pytest.approx(float(evaluate(formula, {"P": machines, "N": 30})))


def test_a_model_may_be_split_into_program_and_machine(program: Program) -> None:
    Path("program.pam").write_text(
        "numeric parameter N\nprocess parameter work(k)\nprocess main = seq (i = 1, N) work(i)\n"
    )
    Path("slow.pam").write_text("process work(k) = delay(2*k)\n")
    Path("fast.pam").write_text("numeric parameter t = 0.5\nprocess work(k) = delay(t)\n")
    slow = program.json("predict", "program.pam", "slow.pam", "-D", "N=10")
    fast = program.json("predict", "program.pam", "fast.pam", "-D", "N=10")
    assert (slow["seconds"]["mid"], fast["seconds"]["mid"]) == (110, 5)
    # A parameter keeps its default unless it is given a value.
    assert fast["bindings"] == {"N": 10, "t": 0.5}
    tuned = program.json("predict", "program.pam", "fast.pam", "-D", "N=10", "-D", "t=.25")
    assert tuned["seconds"]["mid"] == 2.5
    refusal = program.refusal("predict", "program.pam", "fast.pam", "-D", "N=10", "-D", "t=-1")
    assert "t = -1 must not be negative" in refusal


# --- descriptions -------------------------------------------------------------------------


def test_a_size_of_a_word_can_be_replaced(program: Program) -> None:
    usual = program.json("predict", PSTSWM, "--machine", "paragon", *MESH)
    finer = program.json("predict", PSTSWM, "--machine", "paragon", *MESH, "-D", "NVER=32")
    assert finer["bindings"]["NVER"] == 32
    assert 1.8 < finer["seconds"]["mid"] / usual["seconds"]["mid"] < 2.1


def test_the_configuration_may_name_the_machine(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("sobel.toml").write_text((EXAMPLES / "pgas" / "sobel.toml").read_text())
    Path("pyproject.toml").write_text('[tool.advise]\nmachine = "bupc"\n')
    assert program.json("predict", "sobel.toml", "-D", "T=4")["machine"] == "bupc"
    monkeypatch.setenv("ADVISE_MACHINE", "mupc")
    assert program.json("predict", "sobel.toml", "-D", "T=4")["machine"] == "mupc"
    asked = program.json("predict", "sobel.toml", "-D", "T=4", "--machine", "gupc-t3e")
    assert asked["machine"] == "gupc-t3e"
    monkeypatch.delenv("ADVISE_MACHINE")
    Path("pyproject.toml").write_text('[tool.advise]\nmachines = "bupc"\n')
    refusal = program.refusal("predict", "sobel.toml", "-D", "T=4")
    assert "pyproject.toml:2" in refusal and "machines" in refusal


# --- kernels ------------------------------------------------------------------------------


def test_sizes_are_bound_as_they_are_for_findings(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.py").write_text((EXAMPLES / "box_sum.py").read_text())
    (tmp_path / "pyproject.toml").write_text("[tool.advise]\nsizes = { N = 640, other = 3 }\n")

    def bindings(*options: str) -> object:
        return program.json("predict", "k.py", "--machine", "t3e", *options)["bindings"]

    assert bindings() == {"N": 640, "b": 3}
    assert "N = 640: pyproject.toml" in program("predict", "k.py", "--machine", "t3e").out
    monkeypatch.setenv("ADVISE_DEFINE", "N=512 b=5")
    assert bindings() == {"N": 512, "b": 5}
    assert bindings("-D", "N=100") == {"N": 100, "b": 5}
    chosen = program.json("choose", "k.py", "--machine", "t3e", "--over", "b=2,9")
    assert chosen["given"] == {"N": 512}
    assert {one["bindings"]["b"] for one in chosen["choices"]} == {2, 9}
    # a description has parameters of its own
    sorts = str(EXAMPLES / "sorts" / "sorts.toml")
    options = ("--machine", "powerchallenge", "-D", "algorithm=radix", "-D", "n=1e6", "-D", "p=8")
    assert "N" not in program.json("predict", sorts, *options)["bindings"]
    monkeypatch.setenv("ADVISE_DEFINE", "N=x")
    assert "-D N=x: 'x' is not a number" in program.refusal("predict", "k.py", "-m", "t3e")


def test_which_kernel_must_be_said_where_there_are_several(program: Program) -> None:
    Path("kernel.py").write_text(SEVERAL)
    options = ("predict", "kernel.py", "--machine", "t3e")
    assert "holds moved, doubled: choose one with --kernel" in program.refusal(*options)
    refusal = program.refusal(*options, "--kernel", "move")
    assert "kernel.py: there is no kernel move: nearest is moved" in refusal
    Path("plain.py").write_text("x = 1\n")
    assert "there is no kernel: mark" in program.refusal("predict", "plain.py", "--machine", "t3e")


def test_a_kernel_without_a_size_says_which(program: Program) -> None:
    Path("kernel.py").write_text(SEVERAL)
    options = ("predict", "kernel.py", "--machine", "t3e", "--kernel", "moved")
    assert "PY is not bound" in program.refusal(*options, "-D", "PX=4")
    refusal = program.refusal(*options, "-D", "px=4")
    assert "there is no parameter px: nearest" in refusal and "PX" in refusal
    assert "PX = 0 must be a whole number of at least 1" in program.refusal(*options, "-D", "PX=0")


# --- text ---------------------------------------------------------------------------------


def test_text_of_a_model_shows_its_formula_and_no_shares(program: Program) -> None:
    ended = program("predict", REPAIR, "-D", "P=1000", "-D", "N=1000000")
    assert "seconds = max(" in ended.out
    assert "100000000 s" in ended.out
    assert "share" not in ended.out


def test_a_result_can_be_written_to_a_file(program: Program) -> None:
    ended = program("predict", REPAIR, "-D", "P=2", "-D", "N=2", "-o", "result.txt")
    assert (ended.code, ended.out) == (0, "")
    assert "20.2 s" in Path("result.txt").read_text()


# --- wrong use ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([PSTSWM, "-m", "paragon", *MESH[:-2]], "PY is not bound (processors along latitude)"),
        (
            [PSTSWM, "-m", "paragon", *MESH, "-D", "PZ=3"],
            "no parameter PZ: nearest are PX, PY",
        ),
        ([PSTSWM, "-m", "paragon", *MESH, "-D", "PX=12"], "PX = 12 must be a power of two"),
        ([PSTSWM, "-m", "paragon", *MESH, "-D", "PY=64"], "PY = 64 must be at most 32"),
        ([PSTSWM, "-m", "paragon", *MESH, "-D", "PX=1.5"], "PX = '1.5' is not a whole number"),
        ([PSTSWM, "-m", "paragon", *MESH, "-D", "algorithm=XX"], "XX is not one of DH, DR, DT"),
        ([REPAIR, "-D", "P=3"], "N is not bound"),
        ([REPAIR, "-D", "P=3", "-D", "n=3"], "there is no parameter n: nearest is N"),
        ([REPAIR, "-D", "P=-3", "-D", "N=3"], "P = -3 must be a whole number of at least 1"),
        ([REPAIR, "-D", "P=nan", "-D", "N=3"], "P = nan is not a number"),
        ([REPAIR, "-D", "P=1e999", "-D", "N=3"], "P = 1e999 is too large"),
        ([REPAIR, SORTS], "several files make one model only if all are .pam"),
        ([REPAIR, "--kernel", "x"], "--kernel is for Python files"),
        (["data.csv"], "data.csv: expected a process model (.pam)"),
        (["none.toml", "-m", "t3e"], "none.toml: No such file or directory"),
        (["none.py", "-m", "t3e"], "none.py: No such file or directory"),
        (["none.pam"], "none.pam:1:1: cannot be read: No such file"),
        (
            [REPAIR, "--output-format", "xml"],
            "'xml' is not one of 'text', 'json', 'html', 'markdown'",
        ),
        ([], "missing argument"),
    ],
)
def test_wrong_use_costs_one_line(program: Program, arguments: list[str], said: str) -> None:
    assert said in program.refusal("predict", *arguments)


@pytest.mark.parametrize(
    ("arguments", "lacking"),
    [
        ([PSTSWM, "-m", "t3e", *MESH], 'the rate "nonlinear_terms" of pstswm on t3e'),
        ([SORTS, "-m", "t3e", "-D", "algorithm=radix"], 'machine "t3e" has no prices of threads'),
        (
            [str(EXAMPLES / "pgas" / "sobel.toml"), "-m", "paragon"],
            'machine "paragon" has no pgas.rates',
        ),
        ([str(EXAMPLES / "box_sum.py"), "-m", "paragon"], 'machine "paragon" has no lines'),
    ],
)
def test_what_a_machine_lacks_is_named_with_its_remedy(
    program: Program, arguments: list[str], lacking: str
) -> None:
    refusal = program.refusal("predict", *arguments)
    assert refusal.startswith("advise: cannot predict: ")
    assert lacking in refusal
    assert "; remedy: " in refusal


COMPILED = """
import numpy as np
from numba import njit


@njit
def scale(a):
    for i in range(a.shape[0]):
        a[i] *= 2.0


@njit
def uncalled(a):
    for i in range(a.shape[0]):
        a[i] *= 2.0


n = 5000
scale(np.zeros(n))
"""


def test_functions_that_numba_compiles_are_kernels_of_the_calls_in_their_file(
    program: Program,
) -> None:
    Path("c.py").write_text(COMPILED)
    options = ("predict", "c.py", "--machine", "t3e")
    small = program.json(*options, "--kernel", "scale")
    assert small == program.json(*options)
    large = program.json(*options, "-D", "n=50000")
    assert 0 < small["seconds"]["mid"] < large["seconds"]["mid"]
    assert large == program.json(*options, "-D", "a.axis0=50000")
    over = ("choose", *options[1:], "--over", "n=100,200")
    assert "there is no parameter n" in program.refusal(*over)
    assert "there is no kernel uncalled" in program.refusal(*options, "--kernel", "uncalled")
    Path("c.py").write_text(COMPILED.replace("scale(np", "print(np"))
    assert "or say in comments" in program.refusal(*options, "--kernel", "scale")
