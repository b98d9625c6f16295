"""What reads a property calls a method: it is read, told and edited so."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.finding import Finding
from advisor.source import PROPERTY, apply_edits, properties_read

PROGRAM = """
    import numpy as np

    class Box:
        def __init__(self, n, m):
            self.n = n
            self.f = np.arange(1.0, n * m + 1).reshape(n, m)
            self.w = np.linspace(0.1, 1.0, n)

        @property
        def count(self):
            return len(self.w)

        @property
        def half(self):
            return self.count // 2

        @property
        def density(self):
            return self.f.sum(axis=0)

        @property
        def gain(self):
            made = np.zeros(self.f.shape[1])
            for q in range(self.n):
                made += self.w[q] * self.f[q]
            return made / self.density

        def total(self):
            t = 0.0
            for j in range(self.f.shape[1]):
                t += self.density[j] * self.w[0]
            return t

        def scaled(self):
            out = np.zeros(self.count)
            for i in range(self.half):
                out[i] = self.w[i] * 2.0
            return out

        def twice(self):
            return self.gain * 2.0 + self.gain.max()

        def relaxed(self):
            for q in range(self.n):
                self.f[q] += 0.1 * (self.w[q] * self.density - self.f[q])
            return self.f

        def spread(self):
            for q in range(self.n):
                for j in range(self.f.shape[1]):
                    self.f[q, j] = self.f[q, j] + self.w[q] * self.density[j] * 1e-9
            return self.f

    class Owner:
        def __init__(self, box):
            self.box = box

        def sums(self):
            t = 0.0
            for i in range(self.box.n):
                t += self.box.density.max() * self.box.w[i]
            return t

        def changed(self):
            t = 0.0
            for i in range(self.box.n):
                self.box.f[i] += 1.0
                t += self.box.density.max()
            return t

    def main():
        box = Box(40, 30)
        owner = Owner(box)
        return [
            box.total(), box.scaled(), box.twice(), box.relaxed().copy(), box.spread().copy(),
            owner.sums(), owner.changed(),
        ]

    RESULT = main()
"""
OF_PROPERTIES = re.compile(r"\.(count|half|density|gain)\b(?!\()")


def found(source: str) -> tuple[Finding, ...]:
    result = check_source("program.py", source, Options("node2026", {}, (), (), None))
    assert PROPERTY not in repr((result.findings, result.coverage))
    return result.findings


def run(source: str) -> Any:
    names = dict[str, Any]()
    exec(compile(source, "program.py", "exec"), names)
    return names["RESULT"]


def test_properties_are_read_as_methods_are() -> None:
    source = dedent(PROGRAM)
    called = OF_PROPERTIES.sub(r".\1()", source.replace("@property", "# method"))
    told, of_calls = found(source), found(called)
    assert [(one.code, one.span.start_line, one.prediction) for one in told] == [
        (one.code, one.span.start_line, one.prediction) for one in of_calls
    ]
    assert {one.kernel for one in told} >= {"total", "scaled", "gain", "sums"}
    # what a property is computed of changes in their loops
    assert not {"relaxed", "spread", "changed"} & {one.kernel for one in told}


def test_edits_keep_what_programs_with_properties_compute() -> None:
    source = dedent(PROGRAM)
    before, fixes = run(source), [one.fix for one in found(source) if one.fix is not None]
    assert len(fixes) > 3
    for fix in fixes:
        edited = apply_edits(source, fix.edits)
        assert PROPERTY not in edited and edited != source
        for one, other in zip(before, run(edited), strict=True):
            np.testing.assert_allclose(other, one, 1e-12)


@pytest.mark.parametrize(
    "more",
    [
        "size_of: int = 3",
        "def set(self, x):\n            self.size_of = x",
        "@size_of.setter\n        def size_of(self, x):\n            self.x = x",
        "def call(self, other):\n            return other.size_of()",
    ],
)
def test_a_name_that_may_be_something_else_is_an_attribute(more: str) -> None:
    source = dedent(f"""
        class Box:
            @property
            def size_of(self):
                return self.x

            {more}

            def use(self):
                return self.size_of + 1
    """).replace("\n        ", "\n    ")
    assert not properties_read(source)


def test_of_modules_and_of_arrays_nothing_is_a_property() -> None:
    source = dedent("""
        import numpy as np

        class Box:
            @property
            def pi(self):
                return 3.0

            @property
            def shape(self):
                return self.x.shape

            def use(self):
                return np.pi * self.pi + self.shape[0]
    """)
    assert not properties_read(source)
