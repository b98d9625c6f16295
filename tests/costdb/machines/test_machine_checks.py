"""What a profile may state: names, sizes of cache lines, and which numbers may be negative."""

from __future__ import annotations

import pytest

from costdb.machines.checks import is_line_size, is_machine_name, may_be_negative


def test_cache_lines_have_powers_of_two_from_8_to_4096_bytes() -> None:
    assert [size for size in range(10_000) if is_line_size(size)] == [
        8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096,
    ]  # fmt: skip
    assert not is_line_size(64.5)


@pytest.mark.parametrize("name", ["t3e", "t", "3e", "a.b", "a_b-c"])
def test_machines_are_named_by_small_letters_and_figures(name: str) -> None:
    assert is_machine_name(name)


@pytest.mark.parametrize("name", ["", ".a", "-a", "_a", "T3e", "a b", "a/b", "ä"])
def test_what_could_be_an_option_a_path_or_another_name_is_no_name(name: str) -> None:
    assert not is_machine_name(name)


@pytest.mark.parametrize(
    ("place", "unit", "may"),
    [
        ("/lines/message/L", "us", True),
        ("/lines/message/intercept_us", "us", True),
        ("/lines/message/slack_us", "us", True),
        ("/smp/good/curvature", "us/element^2", True),
        ("/smp/good/product", "us/byte*line", True),
        ("/lines/message/alpha_us", "us", False),
        ("/lines/message/beta_us_per_byte", "us/byte", False),
        ("/L/alpha_us", "us", False),
        ("/lines/Large", "us", False),
    ],
)
def test_intercepts_and_curvatures_alone_may_be_negative(place: str, unit: str, may: bool) -> None:
    assert may_be_negative(place, unit) is may
