"""ADV502: rows added one by one give what scans across the storage order gave, bit for bit."""

from __future__ import annotations

from tests.transforms.generated.loop_programs import program
from tests.transforms.generated.scan_programs import ARRAYS, offered


def test_another_range_is_no_range() -> None:
    (only,) = offered(program(["range = 3", "b[...] = np.cumsum(a, axis=0)"], ARRAYS, "f8"))
    assert not only.edits()
