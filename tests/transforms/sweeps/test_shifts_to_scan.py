"""Window sums by scans over generated programs; many of them: ``generated/many_windows.py``."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.transforms.generated.many_windows import check_program
from tests.transforms.generated.window_programs import Program, programs


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs(), st.integers(0, 2**31))
def test_generated_programs_are_rewritten_right(program: Program, seed: int) -> None:
    check_program(program, seed)
