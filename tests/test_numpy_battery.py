"""No call of NumPy is silent: it is priced, or named as not priced, in kernels and in programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from benchmarks import numpy_battery
from benchmarks.numpy_battery import forms, in_kernel, in_program, is_free
from costdb.machines import load_machine
from tests.decision_corpus import CALIBRATED, FROZEN

MACHINE = load_machine(str(FROZEN / f"{CALIBRATED}.json"))


@pytest.mark.parametrize("look", [in_program, in_kernel])
def test_every_function_and_method_is_priced_or_named(look: Any) -> None:
    """With one set of operands each; the command tries two, all keywords and more arrays."""
    methods_again = ("r = v.", "r = i.")
    made = dict.fromkeys(forms(1, ("",)))
    every = tuple(form for form in made if not form.startswith(methods_again))
    assert len(every) > 350
    called = {form.partition("(")[0].removeprefix("r = ") for form in every}
    missing = [name for name in numpy_battery.functions() if name not in called]
    # functions of functions, strings, files and dates
    assert len(missing) < 40, missing
    assert not silent(every, look)


@pytest.mark.parametrize("look", [in_program, in_kernel])
def test_keywords_are_not_silent(look: Any) -> None:
    given = ("out=o", "where=m", "axis=0", "dtype=np.float32", "keepdims=True")
    every = dict.fromkeys(form for form in forms(1, given) if sum(map(ord, form)) % 8 == 0)
    assert len(every) > 50
    assert not silent(every, look)


def silent(every: Iterable[str], look: Any) -> list[str]:
    told = [form for form in every if look(form, MACHINE)[0] == "silent"]
    return [form for form in told if not is_free(form)]


def test_factors_of_a_product_are_priced_too() -> None:
    for look in (in_program, in_kernel):
        (_, plain), (_, scaled), (_, added) = (
            look(form, MACHINE) for form in ("r = a @ v", "r = 2.5 * a @ v", "r = (a + a) @ v")
        )
        assert min(scaled, added) > 1.3 * plain


def test_a_square_is_no_transcendental() -> None:
    for look in (in_program, in_kernel):
        assert look("r = a ** 2", MACHINE)[1] < 0.5 * look("r = np.sin(a)", MACHINE)[1]
