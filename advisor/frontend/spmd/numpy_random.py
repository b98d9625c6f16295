"""Random numbers: functions of ``numpy.random``, and methods of its generators."""

from __future__ import annotations

from advisor.frontend.spmd.numpy_arguments import (
    Arguments,
    stated_dtype,
    unknown_function,
)
from advisor.frontend.spmd.numpy_created import array_of_nothing
from advisor.frontend.spmd.numpy_rearranged import copied_array
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, External, Nothing, Number, Sequence, Value
from advisor.ir.spmd.memory import Origin
from advisor.ir.spmd.steps import Allocate
from advisor.source import Span
from costdb.expr import Expr

_WITH_SIZE_AT = {
    0: "random random_sample ranf sample standard_cauchy standard_exponential standard_normal",
    1: "chisquare exponential geometric logseries pareto poisson power rayleigh standard_gamma"
    " standard_t weibull zipf",
    2: "beta binomial f gamma gumbel integers laplace logistic lognormal negative_binomial"
    " noncentral_chisquare normal randint random_integers uniform vonmises wald",
    3: "hypergeometric noncentral_f triangular",
}
SIZE_AT = {name: place for place, names in _WITH_SIZE_AT.items() for name in names.split()}
"""The place of ``size`` among the arguments, by the name of a distribution."""

INTEGERS = frozenset(
    [
        "binomial",
        "geometric",
        "hypergeometric",
        "integers",
        "logseries",
        "negative_binomial",
        "poisson",
        "randint",
        "random_integers",
        "zipf",
    ]
)
TYPED = frozenset(
    ["integers", "randint", "random", "standard_exponential", "standard_gamma", "standard_normal"]
)
"""Those that take ``dtype``, behind ``size``."""


def random(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function of ``numpy.random`` gives, by its bare name."""
    match name:
        case "default_rng" | "RandomState":
            return External("numpy.random")
        case "seed":
            return Nothing()
        case "rand" | "randn":
            return _of_extents(arguments, run, span)
        case "permutation" | "shuffle":
            return _in_other_order(name, arguments, run, span)
    place = SIZE_AT.get(name)
    if place is None or arguments.starred or arguments.keyword("out") is not None:
        return unknown_function(name, arguments, run, span)
    size = arguments.at(place, "size")
    kind = "int64" if name in INTEGERS else "float64"
    dtype = stated_dtype(arguments, place + 1, kind) if name in TYPED else kind
    if size is not None and not isinstance(size, Nothing):
        return _array(run, span, dtype, run.numbers(size, "size"))
    given = [*arguments.values(), *(one.value for one in arguments.keywords.values())]
    if any(isinstance(value, Array | Sequence) for value in given):
        return unknown_function(name, arguments, run, span)  # an array of their shape
    return Number(None, "int" if name in INTEGERS else "float", varies=True)


def _of_extents(arguments: Arguments, run: Run, span: Span) -> Value:
    extents = arguments.values()
    if arguments.starred:
        return _array(run, span, "float64", None)
    if not extents:
        return Number(None, "float", varies=True)
    return _array(
        run, span, "float64", run.numbers(Sequence(tuple(extents), is_list=False), "size")
    )


def _in_other_order(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if name == "shuffle":
        return Nothing()
    if isinstance(first, Number):
        return array_of_nothing(run, span, "int64", None if first.expr is None else (first.expr,))
    if isinstance(first, Array):
        return copied_array(first.view, run, span, first.view.order)
    return unknown_function(name, arguments, run, span)


def _array(run: Run, span: Span, dtype: str | None, shape: tuple[Expr, ...] | None) -> Value:
    view = run.fresh(run.text_of(span), dtype, shape, Origin.NEW, span)
    run.emit(Allocate(view.buffer, span))
    return Array(view)
