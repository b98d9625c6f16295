"""A rule that stands in a group of kernels that hold some part has nothing to say of others."""

from __future__ import annotations

from pathlib import Path

from advisor.engine import Options, seen_functions
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.source import SourceProblem
from advisor.transform_registry import Installed, held, program_transforms, transforms
from tests.transforms.loops.test_element_programs import SOURCES

ROOT = Path(__file__).parent.parent.parent
PLACES = ("examples", "tests/data/kernels")
FILES = sorted(file for place in PLACES for file in (ROOT / place).rglob("*.py"))


def kernels() -> list[Kernel]:
    found: list[Kernel] = []
    sources = {str(file): file.read_text() for file in FILES} | SOURCES
    for name, source in sources.items():
        try:
            seen = seen_functions(name, source, Options("t3e", {}, (), (), None))
            found += read_kernels(name, source, seen)
        except SourceProblem:
            continue
    return found


def test_entries_are_named_by_code() -> None:
    for rule in (*transforms(), *program_transforms()):
        assert isinstance(rule, Installed)
        assert rule.entry == rule.rule.code


def test_a_rule_that_is_not_imported_would_have_said_nothing() -> None:
    read = kernels()
    bound = [rule for rule in transforms() if isinstance(rule, Installed) and rule.needs]
    assert len(read) > 60 and len(bound) > 5
    for rule in bound:
        others = [one for one in read if rule.needs.isdisjoint(held(one))]
        assert 0 < len(others) < len(read)
        for kernel in others:
            assert not list(rule.rule.propose(kernel)), (rule.code, kernel.name)
