"""Element loops as people write them are raised, and come to the same, or are left alone.

None was written for a rule. They are in ``cases/loops/elements.txt``, each below its name and
whether it is ``raised`` or ``left``: recurrences, an end that hangs on what is computed, functions
of what an iteration binds. Above a function stands what its arguments are.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Unknown, walk
from advisor.source import apply_edits
from costdb.expr import evaluate, free_symbols
from tests.transforms.case_files import CASES, sections
from transforms.loops import raised, vectorise
from transforms.loops.array_statements import IF_NOT_EMPTY

HEAD = "import math\n\nimport numpy as np\n\n\n"
PARTS = [(*head.split(": "), text) for head, text in sections(CASES / "loops" / "elements.txt")]
SOURCES = {name: HEAD + text for name, _, text in PARTS}
LEFT = {name for name, verdict, _ in PARTS if verdict == "left"}
RULES = (vectorise.TRANSFORM, raised.TRANSFORM)
NUMBERS = {"w": 2, "maxiter": 3, "k": 7}


def kernel_of(source: str) -> Kernel:
    """Return the kernel behind what it calls."""
    return read_kernels("program.py", source)[-1]


def called(source: str, kernel: Kernel, size: int) -> list[Any] | None:
    """Return what a function gives and leaves in its arguments; None where it fails."""
    random, names = np.random.default_rng(size), dict[str, Any]()
    exec(compile(source, "program.py", "exec"), names)
    function = names[kernel.name]
    symbols = sorted(
        {s for a in kernel.arrays.values() for e in a.extents for s in free_symbols(e)}
    )
    sizes = {name: size + number for number, name in enumerate(symbols)} | {"D": 3, "C": 3}
    given: dict[str, Any] = {}
    for name in function.__code__.co_varnames[: function.__code__.co_argcount]:
        array = kernel.arrays.get(name)
        if array is None:
            given[name] = NUMBERS.get(name, 0.5)
            continue
        shape = [int(evaluate(extent, sizes)) for extent in array.extents]
        whole = array.dtype == "int64"
        given[name] = random.integers(0, 2, shape) if whole else random.standard_normal(shape)
    with np.errstate(all="ignore"):
        try:
            result = function(**given)
        except (IndexError, ValueError, ZeroDivisionError):
            return None
    return [*given.values(), result]


@pytest.mark.parametrize("name", SOURCES)
def test_every_rewrite_comes_to_the_same(name: str) -> None:
    original = SOURCES[name]
    kernel = kernel_of(original)
    offered = [one for rule in RULES for one in rule.propose(kernel)]
    edited = [(one, one.edits()) for one in offered if one.edits()]
    assert bool(edited) == (name not in LEFT), [one.title for one in offered]
    for proposal, edits in edited:
        source, legality = apply_edits(original, edits), proposal.legality
        for size in (0, 1, 2, 5, 12):
            if size < 5 and IF_NOT_EMPTY in legality.argument:
                continue
            before = called(original, kernel, size)
            if before is None:
                continue
            after = called(source, kernel, size)
            assert after is not None, (size, source)
            exact = legality.applicability is Applicability.SAFE or "bit" in legality.argument
            for one, other in zip(before, after, strict=True):
                if exact:
                    assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), proposal.title
                elif one is not None:
                    np.testing.assert_allclose(other, one, 1e-9, 1e-9, err_msg=proposal.title)


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in LEFT])
def test_nothing_is_left_to_say_of_what_was_raised(name: str) -> None:
    kernel = kernel_of(SOURCES[name])
    first = next(one for rule in RULES for one in rule.propose(kernel) if one.edits())
    again = kernel_of(apply_edits(SOURCES[name], first.edits()))
    assert not [one for one in walk(again.body) if isinstance(one, Unknown)]


UNSEEN = """\
def unseen(*arrays):
    for array in arrays:
        array += array.dtype.type(1)
    return arrays


"""


def interrupted(name: str) -> list[str]:
    """Return a program's function with a call that nobody understands before each statement."""
    source = SOURCES[name]
    kernel, lines = kernel_of(source), source.splitlines(keepends=True)
    function = ast.parse(source).body[-1]
    assert isinstance(function, ast.FunctionDef)
    arrays = ", ".join(n.arg for n in function.args.args if n.arg in kernel.arrays)
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node is not function and arrays:
            if lines[node.lineno - 1][: node.col_offset].strip():
                continue
            call = f"{' ' * node.col_offset}unseen({arrays})\n"
            body = [*lines[: node.lineno - 1], call, *lines[node.lineno - 1 :]]
            if not lines[node.lineno - 1].lstrip().startswith(("elif", "else")):
                found.append("".join(body).replace(HEAD, HEAD + UNSEEN, 1))
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_not_understood_stays_where_it_is(name: str) -> None:
    places = interrupted(name)
    # the first place, and one in the middle
    for source in [places[place] for place in sorted({0, len(places) // 2})]:
        kernel = kernel_of(source)
        assert any(isinstance(statement, Unknown) for statement in walk(kernel.body)), source
        offered = [(one, one.edits()) for rule in RULES for one in rule.propose(kernel)]
        for proposal, edits in offered:
            if not edits or IF_NOT_EMPTY in proposal.legality.argument:
                continue
            before = called(source, kernel, 6)
            if before is None:
                continue
            edited = apply_edits(source, edits)
            after = called(edited, kernel, 6)
            assert after is not None, edited
            for one, other in zip(before, after, strict=True):
                if one is not None:
                    np.testing.assert_allclose(other, one, 1e-9, 1e-9, err_msg=edited)
