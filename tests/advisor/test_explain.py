"""``advise explain``: everything behind a finding, and formulas that mean what they say."""

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.cli.app import main
from advisor.cli.commands.explain import judged_in
from advisor.engine import Options
from advisor.report.explanation import MOST_LINES, cut_short, equation, share, text
from advisor.report.style import Style
from costdb.expr import (
    Expr,
    ceil_div,
    conditional,
    evaluate,
    free_symbols,
    less,
    maximum,
    num,
    parse,
    substitute,
    summation,
    sym,
    to_text,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "box_sum.py"

# --- names for what occurs again ----------------------------------------------------------


def _combined(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    two = st.tuples(parts, parts)
    return st.one_of(
        two.map(lambda p: p[0] + p[1]),
        two.map(lambda p: p[0] * p[1]),
        two.map(lambda p: p[0] - p[1]),
        two.map(lambda p: maximum(*p)),
        two.map(lambda p: ceil_div(p[0], num(3))),
        two.map(lambda p: conditional(less(p[0], p[1]), p[0], p[1] * 2)),
        two.map(lambda p: summation("k", num(1), num(3), p[0] * sym("k") + p[1])),
    )


_EXPRESSIONS = st.recursive(
    st.sampled_from((sym("N"), sym("M"), sym("q1"), num(2), num(5))), _combined, max_leaves=10
)


def _put_back(formula: Expr, definitions: dict[str, Expr]) -> Expr:
    while names := free_symbols(formula) & definitions.keys():
        formula = substitute(formula, {name: definitions[name] for name in names})
    return formula


@given(st.lists(_EXPRESSIONS, min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_shared_formulas_have_the_same_values(formulas: list[Expr]) -> None:
    shown, definitions = share(formulas)
    point = {"N": 7, "M": 4, "q1": 3}
    for formula, short in zip(formulas, shown, strict=True):
        assert evaluate(_put_back(short, dict(definitions)), point) == evaluate(formula, point)
    names = [name for name, _ in definitions]
    assert len(set(names)) == len(names)
    assert not set(names) & {"k"}.union(*map(free_symbols, formulas))
    for place, (_, formula) in enumerate(definitions):
        assert not free_symbols(formula) & set(names[place:]), "a definition comes too late"


def test_what_occurs_again_is_named_once() -> None:
    part = ceil_div(sym("rows") + 17, sym("ranks"))
    shown, definitions = share([part * 2 + part**2, conditional(less(part, 9), part, 0)])
    assert definitions == [("q1", part)]
    assert [to_text(formula) for formula in shown] == [
        "q1*2 + q1**2",
        "if(q1 < 9, q1, 0)",
    ]


def test_wrapped_lines_read_back() -> None:
    generator = random.Random(7)
    formula = num(0)
    for number in range(40):
        formula = formula + sym(f"size_{number}") * generator.randint(2, 99)
    lines = equation("total", formula, Style(width=60))
    assert len(lines) > 5 and max(map(len, lines)) <= 60
    assert parse(" ".join(lines).split("=", 1)[1]) == formula


# --- the command --------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVISE_MACHINE", "t3e")
    path = tmp_path / "k.py"
    path.write_text(EXAMPLE.read_text())
    return path


def test_every_term_coefficient_and_crossover_is_shown(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (judged,) = judged_in("k.py", kernel.read_text(), Options("t3e", {}, ("ADV201",), (), 1.05))[:1]
    line = judged.finding.span.start_line
    shown = {}
    for option in ("", "--formulas"):
        assert main(["explain", f"k.py:{line}", *filter(None, [option])]) == 0
        shown[option] = capsys.readouterr().out
    flat = {option: " ".join(text.split()) for option, text in shown.items()}
    for term in judged.finding.evidence.terms:
        assert f"\n  {term.label} " in shown[""]
        sides = (term.before_s is not None) + (term.after_s is not None)
        formulas = flat["--formulas"].partition("formulas, in microseconds")[2]
        assert len(re.findall(rf"(?<!scan ){re.escape(term.label)} \[", formulas)) == sides
    for said in flat.values():
        for name in {*judged.before.coefficients, *judged.after.coefficients}:
            assert f"{name} = " in said
        for crossover in judged.finding.crossovers:
            assert f"{crossover.variable}: flips at" in said
        for alternative in judged.finding.alternatives:
            assert alternative.title in said
        for assumption in judged.finding.assumptions:
            assert f"{assumption.name} = {assumption.value} ({assumption.origin})" in said
        assert "estimated" in said and "published" in said
    assert " ".join(judged.finding.evidence.facts[-1].split()) in flat["--formulas"]
    assert "formulas" not in shown[""] or "cut short" in shown[""]


def test_an_explanation_takes_sixty_lines_at_most() -> None:
    counted = 0
    for name in ("box_sum", "adi", "jacobi", "mpi/box_sum", "mpi/jacobi"):
        path = EXAMPLE.parent / f"{name}.py"
        source = path.read_text()
        judged = judged_in(str(path), source, Options("t3e", {}, (), (), 1.0))
        for line in {one.finding.span.start_line for one in judged}:
            here = [one for one in judged if one.finding.span.start_line == line]
            shown = text(here, source, Style())
            assert len(shown.splitlines()) <= MOST_LINES
            assert len(text(here, source, Style(), formulas=True)) > len(shown)
            counted += 1
    assert counted > 5


@given(st.lists(st.lists(st.just("line"), max_size=80), min_size=1, max_size=6), st.integers(2, 60))
def test_what_is_cut_short_says_so(parts: list[list[str]], most: int) -> None:
    cut = [list(part) for part in parts]
    cut_short(cut, most)
    lines = [line for part in cut for line in part]
    if sum(map(len, parts)) <= most:
        assert cut == parts
    else:
        assert len(lines) <= most
        assert "--formulas" in lines[-1]


def test_json_formulas_evaluate_to_the_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "k.py:35", "--output-format", "json", "-D", "N=512"]) == 0
    document = json.loads(capsys.readouterr().out)
    (finding,) = (one for one in document["findings"] if one["code"] == "ADV201")
    point = {one["name"]: one["value"] for one in finding["coefficients"]}
    point |= {one["name"]: one["value"] for one in finding["assumptions"]}
    assert point["N"] == 512
    for side in ("before", "after"):
        formula = finding["formulas"][side]
        whole = evaluate(parse(formula["microseconds"]), point)
        assert float(whole) * 1e-6 == pytest.approx(finding["prediction"][f"{side}_s"], rel=1e-6)
        terms = sum(evaluate(parse(term["microseconds"]), point) for term in formula["terms"])
        assert float(terms) == pytest.approx(float(whole), rel=1e-6)


def test_a_suppressed_finding_can_be_explained(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.write_text("# advise: ignore-file\n" + kernel.read_text())
    assert main(["k.py", "--no-cache"]) == 0
    assert main(["explain", "k.py:36"]) == 0
    assert "ADV201" in capsys.readouterr().out
