"""A baseline as a file: the same for the same findings, in whatever order they were found."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from advisor.baseline import read_baseline, sift, to_text
from tests.advisor.report.report_samples import SHIFTS


def test_the_order_of_findings_is_nothing(tmp_path: Path) -> None:
    found = [
        replace(SHIFTS, path=path, code=code, fingerprint=digit * 24)
        for path in ("b.py", "a.py")
        for code in ("ADV201", "ADV101")
        for digit in "20"
    ]
    file = tmp_path / "known.json"
    written = to_text(found, str(file))
    for seed in range(5):
        assert to_text(random.Random(seed).sample(found, len(found)), str(file)) == written
    file.write_text(written)
    baseline = read_baseline(str(file))
    assert list(baseline.entries) == sorted(baseline.entries)
    sifted = sift(found, baseline, ())
    assert (sifted.new, sifted.known, sifted.stale) == ((), len(found), ())
