"""``advise choose``: every allowed choice once, fastest first, however the values are named."""

from pathlib import Path

import pytest

from advisor.cli.subjects import parse_over
from advisor.config.files import CommandError
from advisor.report.style import duration
from tests.advisor.cli.commands import EXAMPLES, KERNEL, Program

REPAIR = str(EXAMPLES / "models" / "machine_repair.pam")
PSTSWM = str(EXAMPLES / "pstswm" / "pstswm.toml")
SORTS = str(EXAMPLES / "sorts" / "sorts.toml")
ON_PARAGON = ("choose", PSTSWM, "--machine", "paragon")
FIXED = ("-D", "problem=T42", "-D", "algorithm=TH")


# --- the published choices ----------------------------------------------------------------


def test_the_best_mesh(program: Program) -> None:
    fixed = ("-D", "problem=T42", "-D", "algorithm=TH")
    found = program.json(*ON_PARAGON, *fixed, "--over", "PX,PY", "--where", "PX*PY == 64")
    assert found["choices"][0]["bindings"] == {"PX": 16, "PY": 4}
    assert found["given"] == {"problem": "T42", "algorithm": "TH"}
    meshes = [tuple(choice["bindings"].values()) for choice in found["choices"]]
    # PY may be at most half the 64 latitudes, so 1 x 64 is not allowed.
    assert sorted(meshes) == [(2, 32), (4, 16), (8, 8), (16, 4), (32, 2), (64, 1)]
    times = [choice["seconds"]["mid"] for choice in found["choices"]]
    assert times == sorted(times)


def test_the_best_of_each_algorithm(program: Program) -> None:
    options = ("-D", "problem=T42", "--over", "algorithm,PX,PY", "--where", "PX*PY == 64")
    everything = program.json(*ON_PARAGON, *options)
    best = program.json(*ON_PARAGON, *options, "--best-per", "algorithm")
    assert {c["bindings"]["algorithm"] for c in best["choices"]} == {
        "DH",
        "DR",
        "DT",
        "TH",
        "TR",
        "TT",
    }
    assert best["considered"] == len(everything["choices"]) == 36
    for choice in best["choices"]:
        rivals = [
            c["seconds"]["mid"]
            for c in everything["choices"]
            if c["bindings"]["algorithm"] == choice["bindings"]["algorithm"]
        ]
        assert choice["seconds"]["mid"] == min(rivals)
    ended = program(*ON_PARAGON, *options, "--best-per", "algorithm")
    assert "6 of 36 choices" in ended.out


def test_a_distribution_is_chosen_by_its_flag(program: Program) -> None:
    # Blocks of finished columns leave their owners idle; cyclic columns keep all busy.
    Path("columns.pam").write_text(
        "numeric parameter N\nnumeric parameter P\nnumeric parameter cyclic = 1\n"
        "resource cpu(p) = fcfs(p, 1)\n"
        "process main = seq (k = 1, N) par (j = k, N)\n"
        "    if (cyclic == 1) use(cpu(j mod P), 1) else use(cpu((j - 1) div ceil(N/P)), 1)\n"
    )
    options = ("-D", "N=16", "-D", "P=4", "--over", "cyclic=0,1")
    found = program.json("choose", "columns.pam", *options)["choices"]
    seconds = {choice["bindings"]["cyclic"]: choice["seconds"]["mid"] for choice in found}
    left = [16 - k + 1 for k in range(1, 17)]
    assert seconds == {
        0: sum(min(columns, 4) for columns in left),
        1: sum(-(-columns // 4) for columns in left),
    }


# --- models and kernels, whose parameters have no bounds of their own -----------------------


def test_the_mesh_of_a_kernel(program: Program) -> None:
    Path("kernel.py").write_text(KERNEL)
    options = ("--machine", "t3e", "-D", "N=1024")
    over = ("--over", "PX,PY", "--where", "PX*PY == 16")
    found = program.json("choose", "kernel.py", *options, *over)["choices"]
    meshes = [(choice["bindings"]["PX"], choice["bindings"]["PY"]) for choice in found]
    assert sorted(meshes) == [(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)]
    for choice, (px, py) in zip(found, meshes, strict=True):
        mesh = ("-D", f"PX={px}", "-D", f"PY={py}")
        alone = program.json("predict", "kernel.py", *options, *mesh)
        assert alone["seconds"] == choice["seconds"]
    # Blocks are of equal size, and where rows are not divided, none is sent.
    assert meshes[0] == (1, 16)


def test_built_programs_are_ranked_by_what_they_do(program: Program) -> None:
    Path("kernel.py").write_text(KERNEL)
    given = ("kernel.py", "--machine", "t3e", "-D", "N=1024", "-D", "PY=1", "--over", "PX=1,4")
    work, built = (
        {one["bindings"]["PX"]: one["seconds"]["mid"] for one in found["choices"]}
        for found in (program.json("choose", *given), program.json("choose", *given, "--built"))
    )
    # a block is copied to have room for its neighbours' rows, and back
    assert all(built[ranks] > 2 * work[ranks] for ranks in work)
    Path("kernel.py").write_text(KERNEL.replace("image[1:, :] = image[:-1, :]", "print(image)"))
    ended = program("choose", *given, "--built")
    assert ended.code == 2 and "kernel.py:14: not built: " in ended.err


# --- what --over means --------------------------------------------------------------------


def test_over_names_values_and_ranges() -> None:
    assert parse_over(["PX,PY"]) == {"PX": None, "PY": None}
    assert parse_over(["a,PX=1,2,4,b=TH,DH", "P=3..5,8,8"]) == {
        "a": None,
        "PX": (1, 2, 4),
        "b": ("TH", "DH"),
        "P": (3, 4, 5, 8),
    }
    assert parse_over([" PX = 1 , 2 "]) == {"PX": (1, 2)}
    assert parse_over(["t=0.5,1e3"]) == {"t": (0.5, 1000)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected NAME"),
        ("PX,", "expected NAME"),
        ("=1", "expected NAME"),
        ("PX=", "a value is missing"),
        ("PX=1,,2", "a value is missing"),
        ("PX=4..1", "the range 4..1 is empty"),
        ("PX=1..1000000", "1..1000000 is more than 100000 values"),
        ("PX=1..999999999999999999", "more than 100000 values"),
        ("PX,PX=1", "PX is named twice"),
        ("t=1e999", "1e999 is too large"),
    ],
)
def test_a_malformed_over_is_refused(text: str, said: str) -> None:
    with pytest.raises(CommandError) as refusal:
        parse_over([text])
    assert said in str(refusal.value)


# --- text ---------------------------------------------------------------------------------


def test_text_compares_with_the_best(program: Program) -> None:
    fixed = ("-D", "problem=T42", "-D", "algorithm=TH")
    ended = program(*ON_PARAGON, *fixed, "--over", "PX,PY", "--where", "PX*PY == 64")
    lines = ended.out.splitlines()
    assert lines[1] == "with problem=T42 algorithm=TH"
    assert lines[3].split() == ["PX", "PY", "low", "s", "mid", "s", "high", "s", "to", "best"]
    assert lines[4].split()[:2] == ["16", "4"] and lines[4].endswith("1.00x")
    assert len(lines) == 10
    exact = program("choose", REPAIR, "-D", "N=10", "--over", "P=100,404")
    assert exact.out.splitlines()[3].split() == ["P", "mid", "s", "to", "best"]
    assert exact.out.splitlines()[5].endswith("4.00x")


def test_extrapolated_choices_say_so(program: Program) -> None:
    sobel = str(EXAMPLES / "pgas" / "sobel.toml")
    ended = program("choose", sobel, "--machine", "bupc", "--over", "T=8,16")
    rows = {line.split()[0]: line for line in ended.out.splitlines()[3:]}
    assert rows["16"].endswith("extrapolated")
    assert not rows["8"].endswith("extrapolated")


# --- wrong use ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([PSTSWM, "-m", "paragon"], "--over is missing: name the parameters"),
        ([PSTSWM, "-m", "paragon", "--over", "PX,PZ"], "no parameter PZ: nearest are"),
        ([PSTSWM, "-m", "paragon", "--over", "PX"], "algorithm is not chosen"),
        ([REPAIR, "--over", "P", "-D", "P=3"], "P is fixed, so not to be chosen"),
        ([REPAIR, "--over", "P", "-D", "N=3"], "Say so, as --over P=1..64"),
        ([REPAIR, "--over", "P", "-D", "N=3", "--where", "P > 3"], "Say so, as --over P=1..64"),
        ([REPAIR, "--over", "P=1,2"], "N is not bound"),
        ([REPAIR, "--over", "P=1,2", "-D", "N=2", "--where", "P == 3"], "meets the condition"),
        ([REPAIR, "--over", "P=1,2", "-D", "N=2", "--where", "p == 1"], "p is not a number here"),
        ([REPAIR, "--over", "P=1,2", "-D", "N=2", "--where", "P/0 == 1"], "division by zero"),
        ([REPAIR, "--over", "P=1,2", "-D", "N=2", "--where", "1/(P - 1)"], "division by zero"),
        ([REPAIR, "--over", "P=a,b", "-D", "N=2"], "P = a is not a number"),
        ([REPAIR, "--over", "P=1..400,N=1..400"], "more than 100000 combinations"),
        ([REPAIR, "--over", "P=1", "--best-per", "N"], "--best-per N: not among those of --over"),
        ([REPAIR, "--over", "P=1", "--top", "0"], "--top"),
        ([SORTS, "-m", "t3e", "-D", "n=9", "--over", "algorithm,p"], "no prices of threads"),
    ],
)
def test_wrong_use_costs_one_line(program: Program, arguments: list[str], said: str) -> None:
    assert said in program.refusal("choose", *arguments)


# --- values that are left out --------------------------------------------------------------


def test_values_that_are_refused_are_told(program: Program) -> None:
    Path("kernel.py").write_text(KERNEL)
    base = ("choose", "kernel.py", "--machine", "t3e", "-D", "PX=2", "-D", "PY=2")
    ended = program(*base, "--over", "N=2.5,300,400")
    assert ended.code == 0 and "2.5" not in ended.out
    assert "N = 2.5 must be a whole number of at least 1: left out" in ended.err
    assert ended.err.count("\n") == 1
    assert program(*base, "--over", "N=300,400").err == ""
    ended = program(*ON_PARAGON, *FIXED, "--over", "PX=3,4,8,PY=4")
    assert "PX = 3 must be a power of two: left out" in ended.err


def test_machines_side_by_side_are_what_each_predicts(program: Program) -> None:
    Path("k.py").write_text(KERNEL)
    size = ("-D", "PX=4", "-D", "PY=4")
    found = program.json("choose", "k.py", *size, "--over", "machine=t3e,sp2")["choices"]
    assert [one["bindings"] for one in found] == [{"machine": "t3e"}, {"machine": "sp2"}]
    for one in found:
        alone = program.json("predict", "k.py", *size, "--machine", one["bindings"]["machine"])
        assert one["seconds"] == alone["seconds"]
    over = ("--over", "machine=t3e,sp2,powerchallenge,N=100,1000")
    ended = program("choose", "k.py", *size, *over, "--output-format", "markdown")
    assert "no price on powerchallenge" in ended.err
    assert [line.count("|") for line in ended.out.splitlines() if line.startswith("|")] == [4] * 6
    assert program.refusal("choose", "k.py", "--over", "machine=t3")


def test_words_of_a_description_may_be_chosen_beside_machines(program: Program) -> None:
    mesh = (*FIXED[:2], "-D", "PX=4", "-D", "PY=4", "--over", "algorithm=TH,DH")
    both = program.json("choose", PSTSWM, *mesh, "--over", "machine=paragon")["choices"]
    alone = program.json(*ON_PARAGON, *mesh)["choices"]
    assert [one["seconds"] for one in both] == [one["seconds"] for one in alone]


def test_a_page_shows_each_choice_with_its_time(program: Program) -> None:
    Path("k.py").write_text(KERNEL)
    asked = ("choose", "k.py", "-D", "PX=4", "-D", "PY=4", "--over", "machine=t3e,sp2")
    ended = program(*asked, "--output-format", "html", "-o", "page.html")
    assert (ended.code, ended.out) == (0, "")
    page = Path("page.html").read_text()
    for one in program.json(*asked)["choices"]:
        assert duration(one["seconds"]["mid"]) in page
