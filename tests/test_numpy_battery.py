"""No call of NumPy is silent: it is priced, or named as not priced, in kernels and in programs."""

from __future__ import annotations

import pytest

from benchmarks import numpy_battery
from benchmarks.numpy_battery import forms, in_kernel, in_program, is_free
from costdb.machines import load_machine
from tests.decision_corpus import CALIBRATED, FROZEN

MACHINE = load_machine(str(FROZEN / f"{CALIBRATED}.json"))
FORMS = tuple(dict.fromkeys(forms()))
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_every_form_is_priced_or_named(part: int) -> None:
    silent = [
        (form, look.__name__)
        for number, form in enumerate(FORMS)
        if number % PARTS == part
        for look in (in_program, in_kernel)
        if look(form, MACHINE)[0] == "silent" and not is_free(form)
    ]
    assert not silent


def test_the_battery_is_all_of_numpy() -> None:
    called = {form.partition("(")[0].removeprefix("r = ") for form in FORMS}
    assert len(FORMS) > 1500
    missing = [name for name in numpy_battery.functions() if name not in called]
    # functions of functions, strings, files and dates
    assert len(missing) < 40, missing


@pytest.mark.parametrize(
    "statement",
    [
        "np.cumsum(a, axis=0, out=o)", "a.sort()", "r = np.fft.fft2(a)", "r = a[m]",
        "r = np.median(a)", "r = np.sort(a)", "r = np.mgrid[0:N, 0:N]", "r = np.tri(N)",
        "r = np.add(v, w, where=m)", "r = sorted(v)", "a @= b",
    ],
)  # fmt: skip
def test_what_was_silent_is_priced_or_named_in_a_program(statement: str) -> None:
    assert in_program(statement, MACHINE)[0] in ("priced", "named")


def test_factors_of_a_product_are_priced_too() -> None:
    for look in (in_program, in_kernel):
        (_, plain), (_, scaled), (_, added) = (
            look(form, MACHINE) for form in ("r = a @ v", "r = 2.5 * a @ v", "r = (a + a) @ v")
        )
        assert min(scaled, added) > 1.3 * plain


def test_a_square_is_no_transcendental() -> None:
    for look in (in_program, in_kernel):
        assert look("r = a ** 2", MACHINE)[1] < 0.5 * look("r = np.sin(a)", MACHINE)[1]
