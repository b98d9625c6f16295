"""What stands in methods is read as the same statements in functions are."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.finding import Finding
from advisor.source import apply_edits

CLASSES = """
    from dataclasses import dataclass

    import numpy as np

    class Base:
        def __init__(self, n):
            self.n = n
            self.reset()

        def reset(self):
            self.x = np.linspace(0.0, 1.0, self.n * 3).reshape(self.n, 3)
            self.f = np.zeros((self.n, 3))
            self.total = 0.0

    class Gas(Base):
        def __init__(self, n, width):
            super().__init__(n)
            self.width = width
            self.table = self.filled(self.x[:, 0], self.x[:, 1])

        @staticmethod
        def filled(a, b):
            t = np.zeros((len(a), len(b)))
            for i in range(len(a)):
                for j in range(len(b)):
                    t[i, j] = a[i] * b[j]
            return t

        def forces(self):
            for i in range(self.n):
                for j in range(self.n):
                    d = self.x[i] - self.x[j]
                    self.f[i] += d / ((d * d).sum() + 0.1)

        def added(self):
            for i in range(self.n):
                self.total += self.x[i, 0] * self.x[i, 1]

        def noted(self):
            for i in range(self.n):
                self.total += self.x[i, 0]
                self.note()

        def note(self):
            self.f[0, 0] += self.total

        def moved(self):
            for k in range(5):
                self.x = self.x * 0.5 + 1.0
                for i in range(self.n):
                    self.total += self.x[i, 2]

    @dataclass
    class Body:
        mass: np.ndarray

        def __post_init__(self):
            self.inverse = 1.0 / self.mass

        @classmethod
        def heavy(cls, n):
            return cls(np.arange(1.0, n + 1))

    class Normal:
        def __init__(self, cov):
            self.cov = cov

        def __call__(self, d):
            return d @ np.linalg.inv(self.cov) @ d

    class Owner:
        def __init__(self, n, target):
            self.body = Body.heavy(n)
            self.target = target

        def values(self, points):
            out = np.zeros(len(points))
            for i in range(len(points)):
                out[i] = self.target(points[i])
            return out

        @staticmethod
        def weight(a, b):
            return a * a + 2.0 * b

        def weighted(self):
            out = np.zeros(len(self.body.mass))
            for i in range(len(self.body.mass)):
                out[i] = self.weight(self.body.mass[i], 0.5)
            return out

        def sums(self):
            s = 0.0
            for i in range(len(self.body.mass)):
                s += self.body.mass[i] * self.body.inverse[i]
            return s

    def main():
        gas = Gas(60, 0.1)
        owner = Owner(3000, Normal(np.eye(8) * 2.0))
        gas.forces()
        gas.added()
        gas.noted()
        gas.moved()
        values = owner.values(np.arange(80.0).reshape(10, 8))
        return [gas.x, gas.f, gas.total, gas.table, owner.sums(), values, owner.weighted()]

    RESULT = main()
"""
FUNCTIONS = """
    import numpy as np

    def filled(a, b):
        t = np.zeros((len(a), len(b)))
        for i in range(len(a)):
            for j in range(len(b)):
                t[i, j] = a[i] * b[j]
        return t

    def weight(a, b):
        return a * a + 2.0 * b

    def weighted(mass):
        out = np.zeros(len(mass))
        for i in range(len(mass)):
            out[i] = weight(mass[i], 0.5)
        return out

    def forces(x, f, n):
        for i in range(n):
            for j in range(n):
                d = x[i] - x[j]
                f[i] += d / ((d * d).sum() + 0.1)

    def added(x, n):
        total = 0.0
        for i in range(n):
            total += x[i, 0] * x[i, 1]
        return total

    def moved(x, n):
        total = 0.0
        for k in range(5):
            x = x * 0.5 + 1.0
            for i in range(n):
                total += x[i, 2]
        return x, total

    def sums(mass, inverse):
        s = 0.0
        for i in range(len(mass)):
            s += mass[i] * inverse[i]
        return s

    def main():
        n = 60
        x = np.linspace(0.0, 1.0, n * 3).reshape(n, 3)
        f = np.zeros((n, 3))
        forces(x, f, n)
        added(x, n)
        filled(x[:, 0], x[:, 1])
        mass = np.arange(1.0, 3001.0)
        return [moved(x, n), sums(mass, 1.0 / mass), weighted(mass)]

    RESULT = main()
"""


def found(source: str) -> dict[tuple[str, str], Finding]:
    result = check_source("program.py", source, Options("node2026", {}, (), (), None))
    return {(one.kernel, one.code): one for one in result.findings if one.kernel != "main"}


def run(source: str) -> Any:
    names = dict[str, Any]()
    exec(compile(source, "program.py", "exec"), names)
    return names["RESULT"]


def test_methods_cost_what_functions_do() -> None:
    methods, functions = found(dedent(CLASSES)), found(dedent(FUNCTIONS))
    # of the functions less is told where all has a price, as it saves little of that
    assert methods.keys() >= functions.keys() and len(functions) > 2
    named = {name for name, _ in methods}
    assert named >= {"filled", "weighted", "forces", "added", "moved", "sums"}
    # the object that is called computes the inverse again each time
    assert ("Normal.__call__", "ADV506") in methods
    for key, one in functions.items():
        told, other = methods[key].prediction, one.prediction
        assert told is not None and other is not None
        assert told.speedup == pytest.approx(other.speedup, 0.05), key


def test_edits_of_methods_keep_what_they_compute() -> None:
    source = dedent(CLASSES)
    before = run(source)
    fixes = [one.fix for one in found(source).values() if one.fix is not None]
    assert len(fixes) > 5
    for fix in fixes:
        for made, kept in zip(run(apply_edits(source, fix.edits)), before, strict=True):
            np.testing.assert_allclose(made, kept, 1e-12)
