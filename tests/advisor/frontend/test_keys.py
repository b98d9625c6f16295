"""What a name has under a key is read like an attribute, and told and edited as a key."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from advisor.cli.commands.explain import judged_in
from advisor.cli.common import parse_bindings
from advisor.engine import Options, check_source
from advisor.finding import Applicability, Verdict
from advisor.frontend.spmd.called import called
from advisor.source import KEY, apply_edits

PROGRAM = """
    import numpy as np

    def total(r, w):
        s = 0.0
        for i in range(len(r["stars"])):
            s += r["stars"][i] * w[i]
        return s

    def step(d, dt):
        out = np.zeros(d["u"].shape)
        for i in range(d["u"].shape[0]):
            out[i] = d["u"][i] + dt * d["v"][i] * d["n"]
        d["u"][:] = out
        return out

    GIVEN = {"n": 4000, "w": 0.5}

    def scaled(x):
        out = np.zeros(GIVEN["n"])
        for i in range(GIVEN["n"]):
            out[i] = x[i] * GIVEN["w"]
        return out

    def main():
        p = {"u": np.arange(3000.0), "v": np.ones(3000), "n": 3}
        r = np.ones(5000, dtype=[("stars", float), ("user", int)])
        return step(p, 0.1), p["u"], total(r, np.arange(5000.0)), scaled(np.arange(4000.0))

    RESULT = main()
"""


def run(source: str) -> Any:
    names = dict[str, Any]()
    exec(compile(source, "program.py", "exec"), names)
    return names["RESULT"]


def test_dictionaries_and_records_hold_arrays() -> None:
    source = dedent(PROGRAM)
    sizes = parse_bindings(['r["stars"].axis0=5000'])
    options = Options("node2026", sizes, (), (), None)
    result = check_source("program.py", source, options)
    assert KEY not in repr((result.findings, result.coverage))
    explained = [one.finding for one in judged_in("program.py", source, options)]
    assert explained and KEY not in repr(explained)
    fixes = {one.kernel: one.fix for one in result.findings if one.fix is not None}
    assert fixes.keys() == {"total", "step", "scaled"}
    assert all(one.prediction is not None for one in result.findings if one.kernel in fixes)
    edited = apply_edits(source, [edit for fix in fixes.values() for edit in fix.edits])
    assert 'd["u"] + dt * d["v"]' in edited and "for i" not in edited
    for before, after in zip(run(source), run(edited), strict=True):
        np.testing.assert_allclose(after, before, 1e-13)


@pytest.mark.parametrize(
    "change", ['d[k] = d["u"] + 1', "d.update(u=d['v'])", "e = d; e['u'] = d['v'] * 2"]
)
def test_what_another_key_may_change_is_computed_again(change: str) -> None:
    source = dedent(f"""
        import numpy as np

        # advise: kernel
        def f(d, names):
            s = 0.0
            for k in names:
                s += np.exp(d["u"]).sum()
                {change}
            return s
    """)
    result = check_source("program.py", source, Options("node2026", {}, (), (), None))
    assert not [one for one in result.findings if one.code == "ADV506"]


def test_what_an_object_gives_for_a_key_is_not_its_attribute() -> None:
    source = dedent("""
        import numpy as np

        class Box:
            def __init__(self):
                self.u = np.zeros((4, 5))

            def __getitem__(self, key):
                return self.u.ravel()

        def total(box, w):
            s = 0.0
            for i in range(len(w)):
                s += box["u"][i] * w[i]
            return s

        print(total(Box(), np.ones(20)))
    """)
    (seen,) = (one for one in called("f.py", source) if one.function == "total")
    assert [one.name for one in seen.arrays] == ["w"]


def test_what_a_finding_is_worth_is_one_of_the_known_words() -> None:
    source = dedent("""
        import numpy as np

        def total(d, n):
            s = 0.0
            for i in range(n):
                s += d["u"][i] * d["v"][i]
            return s

        print(total({"u": np.ones(5000), "v": np.ones(5000)}, 5000))
    """)
    (found,) = check_source("program.py", source, Options("node2026", {}, (), (), None)).findings
    assert found.fix is not None and found.fix.applicability in [*Applicability]
    assert any(found.verdict is one for one in Verdict)
    assert any(found.fix.applicability is one for one in Applicability)
