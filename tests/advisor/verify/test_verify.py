"""``advise verify``: runs a kernel and its rewrites, and holds predictions against the clock."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from advisor.cli.app import main
from advisor.verify.cases import ArrayInput, Case, Variant
from advisor.verify.running import Measured
from advisor.verify.verdict import Verdict, in_words
from costdb.evaluate import Estimate, Seconds
from costdb.quantity import Provenance
from tests.advisor.verify.commented_kernel import box_sum_text
from tests.costdb.made_up import HEADING, quantities

SCHEMA = json.loads((files("advisor") / "report" / "verification.schema.json").read_text())
KERNEL = box_sum_text(60, 4)
RATES = {"call_us": 0.4, "element_us": 0.0002, "line_us": {"beyond": 0.001}}


def profile(rates: dict[str, object]) -> dict[str, object]:
    classes = ("view", "copy", "fill", "binary", "scan", "scan_across")
    return {
        **{**HEADING, "name": "here"},
        "hardware": quantities({"cache_line_bytes": 64}, "byte"),
        "arrays": {
            "levels": quantities({"b32768": 32768}, "byte"),
            "rates": {key: {"int32": quantities(rates)} for key in classes},
        },
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "here.json").write_text(json.dumps(profile(RATES)))
    return tmp_path


def test_kernels_and_their_rewrites_are_run_and_compared(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["verify", "kernel.py", "--machine", "here.json", "--repeat", "1", "-D", "Q=3"]
    code = main(asked)
    out, err = capsys.readouterr()
    assert code == 0, out + err
    assert "running the code of kernel.py" in err
    assert "-D Q changes nothing" in err
    lines = out.splitlines()
    assert lines[0].split() == [
        "kernel", "rule", "result", "predicted", "measured", "ratio", "inside", "decision"
    ]  # fmt: skip
    assert lines[1].startswith("kernel.py:box_sum  as written  equal")
    assert "ADV201" in lines[2] and "equal" in lines[2]
    assert "median error of predicted times" in out
    from costdb.store.database import reading
    from tests.stored import evidence_on

    with reading() as connection:
        found = evidence_on(connection, "here")
    assert {(one.kernel, one.code) for one in found} == {("box_sum", "ADV201")}
    assert all(one.measured.low <= one.measured.mid <= one.measured.high for one in found)


def test_what_runs_here_is_no_evidence_on_a_machine_of_the_studies(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "kernel.py", "--machine", "t3e", "--repeat", "1"]) == 0
    out, err = capsys.readouterr()
    assert "times are of this machine, predictions of t3e" in err
    assert "ADV201" in out
    assert not (folder / "data" / "advise.sqlite3").exists()
    main(["kernel.py", "--machine", "t3e"])
    assert "measured   on" not in capsys.readouterr().out


def test_the_document_keeps_to_its_schema_and_the_store_and_the_machine_tell_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["machine", "import", "here.json"]) == 0
    asked = ["verify", "kernel.py", "--repeat", "1", "--output-format", "json", "-o", "out.json"]
    assert main(asked) == 0
    document = json.loads((folder / "out.json").read_text())
    jsonschema.validate(document, SCHEMA)
    (kernel,) = document["kernels"]
    assert [variant["rule"] for variant in kernel["variants"]] == ["", "ADV201"]
    assert kernel["sizes"] == {"N": 60, "b": 4} and document["summary"]["judged"] == 2
    capsys.readouterr()
    assert main(["machine", "show", "here", "--output-format", "json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)["machine"]["results"]
    assert (kept["command"], kept["subject"], kept["outdated"]) == ("verify", "kernel.py", False)
    assert kept["found"] == document
    assert main(["machine", "show", "here"]) == 0
    assert "verify kernel.py  median error of predicted times" in capsys.readouterr().out


def test_code_that_fails_is_told_of_and_changes_the_exit_code(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "kernel.py").write_text(KERNEL.replace("    return", "    image[999]\n    return"))
    assert main(["verify", "kernel.py", "--machine", "here.json", "--repeat", "1"]) == 1
    assert "IndexError" in capsys.readouterr().out


def test_kernels_without_sizes_are_left_out_of_all_and_refused_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.py").write_text(KERNEL.replace("N=60 b=4", "b=4"))
    assert main(["verify", "other.py", "--machine", "here.json"]) == 2
    assert "pass -D NAME=VALUE" in capsys.readouterr().err
    assert main(["verify", "other.py", "--machine", "here.json", "--repeat", "1", "-D", "N=9"]) == 0
    assert "equal" in capsys.readouterr().out
    assert main(["verify", ".", "--all", "--machine", "here.json", "--repeat", "1"]) == 0
    out, err = capsys.readouterr()
    assert "other.py: kernel `box_sum`: 'N' has no value" in err and "kernel.py:box_sum" in out


def test_a_page_shows_every_variant_predicted_and_measured(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["verify", "kernel.py", "--machine", "here.json", "--repeat", "1"]
    for output_format in ("html", "markdown"):
        assert main([*run, "--output-format", output_format, "-o", "page"]) == 0
        page = (folder / "page").read_text()
        assert "box_sum, as written" in page.replace("\\_", "_")
        assert "box_sum, ADV201" in page.replace("\\_", "_")
        assert "pairs more than 10 % apart ranked right" in page


def test_arguments_may_be_any_numbers_and_sizes_may_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "# advise: kernel N=9\n# advise: x: f8[N]\ndef scaled(x, a):\n    return x * a\n"
    (folder / "scaled.py").write_text(text)
    run = ["verify", "scaled.py", "--machine", "here.json", "--repeat", "1"]
    assert main([*run, "-D", "a=-0.5"]) == 0
    assert "scaled" in capsys.readouterr().out
    for wrong in ("2.5", "-3", "0"):
        assert main([*run, "-D", "a=1", "-D", f"N={wrong}"]) == 2
        said = "scaled.py:3:5: size N of kernel `scaled` must be a whole number of at least 1"
        assert f"{said}, not {wrong} (-D)" in capsys.readouterr().err


def verdict(predicted_s: float, measured_s: float, half_s: float = 0.1) -> Verdict:
    low, mid, high = (Seconds(predicted_s + d * half_s) for d in (-1, 0, 1))
    estimate = Estimate(low, mid, high, (), Provenance.MEASURED, True)
    variant = Variant("ADV999", "otherwise", "", True, None, estimate)
    case = Case("k.py", "k", {}, (ArrayInput("x", (1,), "float64", 1),), (variant,))
    return Verdict(case, variant, Measured(measured_s, measured_s, measured_s, True))


def test_what_it_says_in_all_counts_misses() -> None:
    words = in_words([[verdict(1.0, 1.05), verdict(2.0, 4.0)], [verdict(1.0, 0.8)]])
    assert words == [
        "median error of predicted times 25%, of 3 variants",
        "inside the interval 1 of 3, median half-width 10%",
        "pairs more than 10 % apart ranked right: 1 of 1",
    ]


def test_built_programs_are_run_on_ranks_and_kept_as_evidence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["verify", "kernel.py", "--machine", "here.json", "--repeat", "1", "-D", "Q=3"]
    assert main([*asked, "-P", "2", "--output-format", "json"]) == 0
    out, _ = capsys.readouterr()
    document = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    alone, built = document["kernels"]
    assert (alone["ranks"], built["ranks"]) == (1, 2)
    assert built["variants"][0]["rule"] == "" and len(built["variants"]) > 1
    for one in built["variants"]:
        assert one["equal"] and not one["failure"]
        assert one["measured"]["median_s"] > 0
