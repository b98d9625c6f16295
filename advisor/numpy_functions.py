"""NumPy's functions without an operation of their own, as data: a line for each.

A line has the name, the parameters in NumPy's order, the shapes, the element type, and how long
it takes. Shapes are written as signatures: ``nn nm -> n m`` takes a square matrix and one with as
many rows; ``...`` is any shape, of which several are broadcast; a form in brackets holds where a
parameter has that value. Results are separated by commas, extents by blanks. ``along`` reduces an
axis, ``last`` keeps the shape. The tests ask NumPy whether each line is right.

What it takes is a class of cost and how many times as much; where there is none, no model has it,
and only measuring tells.
"""

from __future__ import annotations

import re
from typing import Final

from costdb.records import dataclass

_ROWS = """
linalg.inv; a; nn -> n n | bnn -> b n n | bcnn -> b c n n; float; products 3
linalg.pinv; a rcond; mn -> n m; float; products 25
linalg.solve; a b; nn n -> n | nn nm -> n m; float; products 0.6
linalg.det; a; nn -> | bnn -> b | bcnn -> b c; float; products 0.6
linalg.slogdet; a; nn -> ,; float, real; products 0.6
linalg.cholesky; a; nn -> n n | bnn -> b n n | bcnn -> b c n n; float; products 0.6
linalg.eigvalsh; a UPLO; nn -> n | bnn -> b n | bcnn -> b c n; real; products 5
linalg.eigh; a UPLO; nn -> n, n n; real, float; products 12
linalg.svdvals; x; mn -> min(m,n); real; products 9
linalg.svd; a full_matrices compute_uv; mn -> m m, min(m,n), n n
    | [full_matrices=False] mn -> m min(m,n), min(m,n), min(m,n) n
    | [compute_uv=False] mn -> min(m,n); float, real, float; products 9
linalg.qr; a mode; mn -> m min(m,n), min(m,n) n | [mode='reduced'] mn -> m min(m,n), min(m,n) n
    | [mode='complete'] mn -> m m, m n | [mode='r'] mn -> min(m,n) n; float, float; products 6
linalg.lstsq; a b rcond; mn m -> n, , , min(m,n) | mn mk -> n k, , , min(m,n)
    ; float, unknown, int32, real; products 12
linalg.matrix_rank; A tol; mn ->; int64; products 7
linalg.cond; x p; mn ->; real; products 7
linalg.matrix_power; a n; nn -> n n; same
linalg.tensorinv; a ind; nnnn -> n n n n; float
trace; a offset; mn ->; sum; views 1
diagonal; a offset; mn -> min(m,n); same; views 1
diag; v; n -> n n | mn -> min(m,n); same; fill 1
tril triu; m k; mn -> m n; same; where 1
kron; a b; m n -> m*n | mn pq -> m*p n*q; promoted; fill 2
cross; a b; n n -> n | mn mn -> m n | n mn -> m n | mn n -> m n; promoted; binary 4
tensordot; a b axes; mn np -> m p | [axes=1] mn np -> m p | [axes=1] mn n -> m
    | [axes=2] mn mn ->; promoted
interp; x xp fp left right period; ... n n -> ...; float64
polyfit; x y deg; n n -> deg+1 | n nm -> deg+1 m; double
polyval; p x; n ... -> ...; promoted
roots; p; n -> n-1; complex128
convolve; a v mode; m n -> m+n-1 | [mode='full'] m n -> m+n-1 | [mode='same'] m n -> max(m,n)
    | [mode='valid'] m n -> max(m,n)-min(m,n)+1; promoted
correlate; a v mode; m n -> max(m,n)-min(m,n)+1 | [mode='valid'] m n -> max(m,n)-min(m,n)+1
    | [mode='full'] m n -> m+n-1 | [mode='same'] m n -> max(m,n); promoted
cov; m y rowvar bias ddof; mn -> m m | n -> | n n -> 2 2 | [rowvar=False] mn -> n n; double
    ; products 1
corrcoef; x y rowvar; mn -> m m | n -> | n n -> 2 2 | [rowvar=False] mn -> n n; double; calls 100
histogram; a bins range density weights; ... -> bins, bins+1; int64, float64
digitize; x bins right; ... n -> ...; int64; take 200
searchsorted; a v side sorter; n ... -> ...; int64; take 200
argsort; a axis kind; last; int64; sort 3
argpartition; a kth axis kind; last; int64; partition 1
partition; a kth axis kind; last; same; partition 1
percentile quantile nanpercentile nanquantile; a q axis out overwrite_input method keepdims
    ; along; mean; partition 1
nanmedian; a axis out overwrite_input keepdims; along; mean; partition 1
nanstd nanvar; a axis dtype out ddof keepdims; along; spread
nanargmax nanargmin; a axis out keepdims; along; int64
repeat; a repeats; ... -> count*repeats; same; copy 1
append; arr values; m n -> m+n | m . -> m+1; joined; copy 1
insert; arr obj values; n -> n+1; same; copy 1
delete; arr obj; n -> n-1; same; copy 1
nan_to_num; x copy nan posinf neginf; ... -> ...; same
isclose; a b rtol atol equal_nan; ... ... -> ...; bool
allclose; a b rtol atol equal_nan; ... ... ->; bool
array_equal array_equiv; a1 a2; any any ->; bool
isin; element test_elements assume_unique invert; ... any -> ...; bool
gradient; f; n -> n; float
trapezoid; y x dx; n -> | n n ->; float
ediff1d; ary; n -> n-1; same
unwrap; p discont axis; last; float
sinc i0; x; ... -> ...; float
fliplr flipud; m; mn -> m n; same; views 1
rot90; m k; mn -> n m | [k=1] mn -> n m | [k=2] mn -> m n | [k=3] mn -> n m | [k=-1] mn -> n m
    ; same; views 1
tri; N; -> N N; float64
vander; x N increasing; n -> n N; wide
hanning hamming; M; -> M; float64; circular 1
blackman bartlett; M; -> M; float64
kaiser; M beta; -> M; float64
logspace geomspace; start stop num; -> num; float64
fft.fftfreq; n d; -> n; float64; fill 1
fft.rfftfreq; n d; -> n//2+1; float64; fill 1
fft.fftshift fft.ifftshift; x axes; last; same; copy 1
meshgrid; x y indexing; m n -> n m, n m | [indexing='ij'] m n -> m n, m n
    | [indexing='xy'] m n -> n m, n m; same, same; copy 2
ravel; a; ... -> count; same; views 1
builtins.sorted; x; n -> n; same; python 0
builtins.sum; x; n ->; same; python 1
builtins.max builtins.min; x; n ->; same; python 1
scipy.linalg.inv; a; nn -> n n; float; products 3
scipy.linalg.solve; a b; nn n -> n | nn nm -> n m; float; products 0.6
scipy.linalg.det; a; nn ->; float; products 0.6
scipy.linalg.expm; A; nn -> n n; float
scipy.linalg.cholesky; a lower; nn -> n n; float; products 0.6
scipy.ndimage.uniform_filter scipy.ndimage.median_filter; input size mode; ... -> ...; same
scipy.ndimage.gaussian_filter; input sigma mode; ... -> ...; same
scipy.ndimage.sobel scipy.ndimage.laplace; input axis mode; ... -> ...; same
scipy.signal.fftconvolve scipy.signal.convolve; in1 in2 mode; m n -> m+n-1
    | mn pq -> m+p-1 n+q-1 | [mode='full'] m n -> m+n-1 | [mode='same'] m n -> m
    | [mode='same'] mn pq -> m n; promoted
scipy.signal.lfilter; b a x; m n ... -> ...; float64
scipy.signal.medfilt; volume kernel_size; ... -> ...; same
scipy.special.erf scipy.special.erfc scipy.special.gamma scipy.special.gammaln; x; ... -> ...
    ; float
scipy.special.expit scipy.special.j0 scipy.special.j1; x; ... -> ...; float
"""


@dataclass(frozen=True, slots=True)
class Form:
    """Shapes that a function is given, and those of its results.

    Attributes
    ----------
    operands : tuple of str
        For each a letter for every dimension, ``.`` for a number, ``...`` for any shape, ``any``
        for one that nothing follows from.
    results : tuple of tuple of str
        Extents as formulas of these letters and of parameters.
    where : tuple of str
        A parameter and its value, where it holds for that one only.
    """

    operands: tuple[str, ...]
    results: tuple[tuple[str, ...], ...]
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function that only computes on what it is given.

    Attributes
    ----------
    parameters : tuple of str
    rule : str
        ``along``, ``last``, or nothing where there are forms.
    forms : tuple of Form
    dtypes : tuple of str
        The rules for the element types of its results.
    cost : tuple of str
        A class and how many times as much, or nothing.
    """

    parameters: tuple[str, ...]
    rule: str
    forms: tuple[Form, ...]
    dtypes: tuple[str, ...]
    cost: tuple[str, ...]

    @property
    def shaping(self) -> frozenset[str]:
        """Parameters by which forms differ."""
        return frozenset(form.where[0] for form in self.forms if form.where)


_FORM = re.compile(r"(?:\[(\w+)=(\S+)\] )?(.*?) ?->(.*)")


def _form(text: str) -> Form:
    found = _FORM.fullmatch(text.strip())
    assert found is not None, text
    name, value, operands, results = found.groups()
    made = tuple(tuple(one.split()) for one in re.split(r",(?![^()]*\))", results))
    return Form(tuple(operands.split()), made, (name, value) if name else ())


def _functions() -> dict[str, Function]:
    found: dict[str, Function] = {}
    for line in _ROWS.strip().replace("\n    ", " ").splitlines():
        names, parameters, shapes, dtypes, *cost = (part.strip() for part in line.split(";"))
        rule = shapes if shapes in ("along", "last") else ""
        forms = () if rule else tuple(map(_form, shapes.split("|")))
        kinds = tuple(one.strip() for one in dtypes.split(","))
        price = tuple(cost[0].split()) if cost else ()
        for name in names.split():
            found[name] = Function(tuple(parameters.split()), rule, forms, kinds, price)
    return found


FUNCTIONS: Final = _functions()

_OTHERS: Final = {
    **dict.fromkeys(("concatenate", "hstack", "vstack", "stack", "column_stack"), ("copy", "1")),
    **dict.fromkeys(("fft.rfft", "fft.irfft"), ("fft", "0.6")),
    **{"array": ("fill", "1"), "round": ("copy", "4")},
    **dict.fromkeys(("reshape", "real", "imag", "list"), ("views", "1")),
    **dict.fromkeys(("flatnonzero", "argwhere"), ("copy", "1")),
    **{"indices": ("fill", "2"), "mgrid": ("fill", "4"), "unique": ("sort", "1")},
    "apply_along_axis": ("each", "8"),
    # with vectors besides values it has several results
    "linalg.svd[0]": ("products", "25"),
    "scipy.linalg.lu_solve": ("products", "0"),
    # of NumPy's two kinds of generators the older ones take up to twice as long
    **dict.fromkeys(("random.random", "random.rand", "random.uniform"), ("fill", "30")),
    **dict.fromkeys(("random.integers", "random.randint"), ("fill", "40")),
    **dict.fromkeys(("random.normal", "random.standard_normal", "random.randn"), ("fill", "100")),
    **{"random.exponential": ("fill", "60"), "random.permutation": ("fill", "100")},
    **{"random.lognormal": ("fill", "150"), "random.gamma": ("fill", "200")},
}
"""What takes part in other rules: what is joined, rows of lists, transforms of real numbers, known
factors, and random numbers."""


def cost_of(name: str) -> tuple[str, ...] | None:
    """Return a class of cost and how many times as much; None where no model has it.

    The first result of several stands for the call, the others cost nothing.
    """
    base, _, number = name.partition("[")
    if number not in ("", "0]"):
        return ()
    row = FUNCTIONS.get(base)
    return _OTHERS.get(name) or (row.cost if row is not None else _OTHERS.get(base)) or None


def spelled(name: str) -> str:
    """Return what a function is called where it is told of."""
    base = name.partition("[")[0].removeprefix("builtins.")
    return base if "scipy." in base or base != name.partition("[")[0] else f"np.{base}"


# Random numbers: functions of ``numpy.random``, and methods of its generators.

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

_INTEGERS = (
    "binomial geometric hypergeometric integers logseries negative_binomial poisson randint"
    " random_integers zipf"
)
INTEGERS = frozenset(_INTEGERS.split())
_TYPED = "integers randint random standard_exponential standard_gamma standard_normal"
TYPED = frozenset(_TYPED.split())
"""Those that take ``dtype``, behind ``size``."""
