"""Random expressions over whole numbers, for properties of the expression language."""

from fractions import Fraction

from hypothesis import strategies as st

from costdb.expr import (
    Expr,
    ceil_div,
    conditional,
    equal,
    floor_div,
    gcd,
    less,
    less_equal,
    maximum,
    maximum_over,
    minimum,
    num,
    summation,
    sym,
)

NAMES = ("N", "P", "m.k")
whole = st.integers(-6, 9)
constants = st.one_of(
    whole, st.fractions(min_value=-3, max_value=3, max_denominator=8), st.just(Fraction(101, 10))
)
leaves = st.one_of(constants.map(num), st.sampled_from(NAMES).map(sym))
divisors = st.one_of(st.integers(1, 7).map(num), st.sampled_from(NAMES).map(sym))


def _compound(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pairs = st.tuples(parts, parts)
    triples = st.tuples(parts, parts, parts)
    bounds = st.tuples(
        st.integers(-2, 3), st.one_of(whole.map(num), st.sampled_from(NAMES).map(sym))
    )
    return st.one_of(
        pairs.map(lambda ab: ab[0] + ab[1]),
        pairs.map(lambda ab: ab[0] - ab[1]),
        pairs.map(lambda ab: ab[0] * ab[1]),
        st.tuples(parts, divisors).map(lambda ab: ab[0] / ab[1]),
        st.tuples(parts, divisors).map(lambda ab: floor_div(*ab)),
        st.tuples(parts, divisors).map(lambda ab: ceil_div(*ab)),
        st.tuples(parts, divisors).map(lambda ab: ab[0] % ab[1]),
        st.tuples(parts, st.integers(0, 3)).map(lambda ab: ab[0] ** ab[1]),
        triples.map(lambda abc: maximum(*abc)),
        pairs.map(lambda ab: minimum(*ab)),
        pairs.map(lambda ab: less(*ab)),
        pairs.map(lambda ab: less_equal(*ab)),
        pairs.map(lambda ab: equal(*ab)),
        st.tuples(divisors, divisors).map(lambda ab: gcd(*ab)),
        triples.map(lambda abc: conditional(*abc)),
        st.tuples(bounds, parts).map(lambda b: summation("i", *b[0], b[1] * sym("i"))),
        st.tuples(bounds, parts).map(lambda b: maximum_over("i", *b[0], b[1] + sym("i"))),
    )


expressions = st.recursive(leaves, _compound, max_leaves=8)
bindings = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(-5, 9)))
