"""Generated programs by the rules that rewrite them, and what is checked of each rewrite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.finding import Applicability
from advisor.ir.kernel import Proposal, Transform
from advisor.source import apply_edits
from advisor.transform_registry import program_transforms, transforms
from tests.transforms.checks import (
    Rewrite,
    check_square,
    check_text,
    comments,
    differences,
    only_kernel,
    without_places,
)
from tests.transforms.generated import many_windows as many
from tests.transforms.generated.distributed_programs import Distributed, distributed
from tests.transforms.generated.gather_programs import Placed, check_rewrites, counting, gathering
from tests.transforms.generated.loop_programs import Program, equal_bits, nests, results, rewritten
from tests.transforms.generated.message_programs import Exchanging
from tests.transforms.generated.recurrence_programs import recurrences
from tests.transforms.generated.running_programs import check_running, running
from tests.transforms.generated.scan_programs import check_scans, scanning
from tests.transforms.generated.split_programs import conditioned
from tests.transforms.generated.sum_programs import sums
from tests.transforms.generated.triangle_programs import triangles
from tests.transforms.generated.window_programs import programs
from tests.transforms.spmd_running import proposals as program_proposals
from tests.transforms.spmd_running import rewritten as rewritten_program
from tests.transforms.spmd_running import run_side_by_side
from transforms.loops.array_statements import IF_NOT_EMPTY

SIZES = (0, 3, 5, 8)
SWEPT = ((0, 5), (1, 2), (3, 1), (9, 4), (13, 7), (4, 0))
CHECKED = 2
"""Rewrites of one program by one rule that are checked; where it offers more, the seed chooses."""

CLOSE = 1e-12
"""Tolerance, in relation to sums of numbers below 1, of rewrites that say they reorder sums."""


@dataclass(frozen=True)
class Family:
    """One kind of generated program.

    Attributes
    ----------
    name : str
    programs : strategy
    check : callable
        Takes a program and a seed for its arguments; raises AssertionError where something does
        not hold, and returns how many rewrites of which rule were checked. None at all where
        nothing is proposed; hypothesis then draws another program.
    """

    name: str
    programs: st.SearchStrategy[Any]
    check: Callable[[Any, int], Counter[str]]


def rule(code: str) -> Transform:
    """Return the rule with a code, among those about kernels."""
    return next(one for one in transforms() if one.code == code)


def _windows(made: Any, seed: int) -> Counter[str]:
    many.check_program(made, seed)
    return Counter({"ADV201": 1})


def _sweeps(source: str, seed: int) -> Counter[str]:
    found = _rewrites(source, rule("ADV202"))
    assume(found)
    generator = np.random.default_rng(seed)
    for one in found[:3]:
        check_text(one)
        check_square(one)
        arrays = len(one.kernel.arrays)
        cases = [[generator.uniform(-1, 1, shape) for _ in range(arrays)] for shape in SWEPT]
        assert list(differences(one, cases, slack=0)) == [], one.rewritten
        assert not list(rule("ADV202").propose(only_kernel(one.rewritten))), one.rewritten
    return Counter({"ADV202": 1})


def _references(code: str) -> Callable[[Placed, int], Counter[str]]:
    """Return a check of references to places that only the data know."""

    def check(made: Placed, seed: int) -> Counter[str]:
        check_rewrites(made, rule(code), seed % 2**32)
        return Counter({code: 1})

    return check


def _rewrites(source: str, transform: Transform) -> list[Rewrite]:
    kernel = only_kernel(source)
    made = [(one, one.edits()) for one in transform.propose(kernel)]
    return [
        Rewrite(source, kernel, one, apply_edits(source, edits)) for one, edits in made if edits
    ]


def check_loops(
    codes: Sequence[str], *, read_again: bool = True
) -> Callable[[Program, int], Counter[str]]:
    """Return a check of loop nests by rules that rewrite loops, and of what is read of these."""

    def check(made: Program, seed: int) -> Counter[str]:
        found = Counter[str]()
        for code in codes:
            for proposal in rule(code).propose(made.kernel):
                if proposal.edits():
                    _check_loop(made, proposal, seed, read_again=read_again)
                    found[code] = 1
        assume(found)
        return found

    return check


def _triangles(made: Program, seed: int) -> Counter[str]:
    """Check what is left of loops around triangles that go the other way."""
    found = [
        one
        for one in rule("ADV504").propose(made.kernel)
        if "`j` by array statements within the loop over `i`" in one.title
    ]
    assume(found)
    try:
        results(made.source, made, SIZES[-1], seed)
    except IndexError:
        # what is wrong as it is written may be so in another way
        assume(False)
    for one in found:
        _check_loop(made, one, seed, read_again=False)
    return Counter({"ADV504": 1})


def _check_loop(made: Program, proposal: Proposal, seed: int, *, read_again: bool) -> None:
    source = rewritten(made, proposal)
    legality = proposal.legality
    assert legality.applicability is not Applicability.DISPLAY
    apart = "overlap" in legality.argument and "round" not in legality.argument
    exact = legality.applicability is Applicability.SAFE or apart
    for size in SIZES[-1:] if IF_NOT_EMPTY in legality.argument else SIZES:
        before = results(made.source, made, size, seed)
        after = results(source, made, size, seed)
        if exact or made.dtype.startswith("i"):
            assert equal_bits(before, after), source
        else:
            for one, other in zip(before, after, strict=True):
                np.testing.assert_allclose(other, one, CLOSE, CLOSE, err_msg=source)
    if not read_again:
        return
    again = only_kernel(source)
    found, wanted = again, proposal.variant
    if " within " in proposal.title:
        # loops that stay are numbered otherwise where those around them are gone
        found, wanted = (one.with_body(without_places(one.body)) for one in (found, wanted))
    assert lower(found) == lower(wanted), source
    assert re.findall("#.*", source) == re.findall("#.*", made.source), source
    assert re.search(r"\bfor\b", source) or not list(rule("ADV401").propose(again)), source


def _places(made: Distributed, seed: int) -> Counter[str]:
    """Check rewrites of distributions: no result changes, and what is written is the variant."""
    found = Counter[str]()
    for code in ("ADV101", "ADV102", "ADV103", "ADV104"):
        transform = rule(code)
        offered = _rewrites(made.source, transform)
        for turn in range(min(CHECKED, len(offered))):
            _check_place(made, offered[(seed + turn) % len(offered)], transform, seed)
            found[code] = 1
    assume(found)
    return found


def _check_place(made: Distributed, one: Rewrite, transform: Transform, seed: int) -> None:
    again, variant = only_kernel(one.rewritten), one.proposal.variant
    for name, array in variant.arrays.items():
        assert again.arrays[name].spec == array.spec, one.rewritten
    check_square(one)
    assert _work(again) == _work(variant), one.rewritten
    if made.in_comments:  # the edit is within one
        assert _free(one.source) == _free(one.rewritten), one.rewritten
    else:
        check_text(one)
    for other in transform.propose(again):
        assert other.variant.arrays != again.arrays or other.variant.body != again.body
    generator = np.random.default_rng(seed)
    for size in SIZES:
        arrays = [
            (100 * generator.uniform(-1, 1, (size, size))).astype(array.dtype)
            for array in one.kernel.arrays.values()
        ]
        assert list(differences(one, [[*arrays, size]], slack=0)) == [], one.rewritten


def _work(kernel: Any) -> object:
    try:
        return lower(kernel)
    except Unpriced as unknown:
        return unknown.reason


def _free(source: str) -> Counter[str]:
    kept = comments(source)
    return Counter({text: n for text, n in kept.items() if "advise:" not in text})


def _running(made: Program, seed: int) -> Counter[str]:
    rewrites = check_running(made, seed)
    assume(rewrites)
    return Counter({"ADV401": rewrites})


def _scans(made: Program, seed: int) -> Counter[str]:
    rewrites = check_scans(made, seed)
    assume(rewrites)
    return Counter({"ADV502": rewrites})


FAMILIES = (
    Family("sums over windows", programs(), _windows),
    Family("sweeps", recurrences(), _sweeps),
    Family(
        "nests of whole numbers",
        st.integers(1, 3).flatmap(lambda depth: nests(depth, statements=2)),
        check_loops(("ADV401", "ADV501")),
    ),
    Family("conditions on indices", conditioned(), check_loops(("ADV401",), read_again=False)),
    Family("nests of floats", nests(2, dtype="f8"), check_loops(("ADV401", "ADV501"))),
    Family(
        "accumulating loops",
        st.sampled_from(["i8", "i4", "f8"]).flatmap(sums),
        check_loops(("ADV401",)),
    ),
    Family("triangles", triangles(), _triangles),
    Family("gathers", gathering(), _references("ADV402")),
    Family("counts", counting(), _references("ADV403")),
    Family("distributions", distributed(), _places),
    Family("running sums", running(), _running),
    Family("scans across rows", scanning(), _scans),
)


def check_exchanges(folder: Path, made: Sequence[Exchanging], ranks: int) -> Counter[str]:
    """Rewrite SPMD programs, and run them as they were and as they are, on real ranks.

    Raises
    ------
    AssertionError
        Nothing is proposed, something is left to propose, a comment is lost, or a rank returns
        something else.
    """
    rules = {one.code: one for one in program_transforms()}
    runs: dict[str, tuple[str, str, float]] = {}
    checked = Counter[str]()
    for number, one in enumerate(made):
        source, offered = one.source, program_proposals(one.source, rules[one.code])
        assert offered, one.source
        for _ in range(3):
            source = rewritten_program(source, offered)
            offered = program_proposals(source, rules[one.code])
            if not offered:
                break
        assert not offered, source
        assert source != one.source
        assert comments(source) == comments(one.source), source
        runs[f"p{number}"] = (one.source, source, one.tolerance)
        checked[one.code] += 1
    told = run_side_by_side(folder, runs, ranks)
    for name, (_, after, _) in runs.items():
        assert told.get(name) == "same", f"{told.get(name)}\n{after}"
    return checked
