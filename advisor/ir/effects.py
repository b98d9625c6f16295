"""What functions and methods of Python's, NumPy's and mpi4py's own do to what they are given."""

from __future__ import annotations

import ast
from enum import Enum

from advisor.numpy_table import ELEMENTWISE, PARAMETERS, ROWS


class Deed(Enum):
    """What a call does."""

    COMPUTES = "it computes a value, and that is all"
    NOTHING = "it changes nothing that it is given"
    DRAWS = "it draws random numbers"
    CHANGES = "it changes what it is called on, and may keep what it is given"
    WRITES = "it may change what it is given"
    SENDS = "it sends and receives what it is given"
    ANYTHING = "it runs code that nobody knows"


OBJECT = "object"
"""The kind of what may be anything but an array or a number."""


KINDS: dict[type, str] = {
    ast.List: "list", ast.ListComp: "list", ast.Tuple: "tuple", ast.Dict: "dict",
    ast.DictComp: "dict", ast.Set: "set", ast.SetComp: "set", ast.JoinedStr: "str",
    ast.Lambda: "function", ast.GeneratorExp: "function",
}  # fmt: skip
"""Kinds of objects that expressions make, by their types."""
MAKERS = {name: name for name in ("list", "tuple", "dict", "set", "str")} | {
    "sorted": "list", "map": "function", "filter": "function"
}  # fmt: skip
OF_NUMBERS = ("time.", "math.", "mpi4py.MPI.Wtime")
"""How the names of functions begin that give numbers, and look at no array."""
HOLDERS = frozenset({"list", "tuple", "dict", "set", OBJECT})
"""Kinds of what holds other objects, or may."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ASKED = {
    "tree": _words("query"),
    "curve": frozenset({""}),
    "field": frozenset({""}),
    "joint": _words("pdf logpdf cdf"),
    "distribution": _words("pmf logpmf pdf logpdf cdf logcdf sf logsf ppf isf"),
}
"""What objects of SciPy only compute as they are asked, by their kind: methods, or a call."""
_MADE = (
    ("tree", "spatial.KDTree spatial.cKDTree"),
    ("curve", "interpolate.interp1d interpolate.CubicSpline interpolate.PchipInterpolator"),
    ("curve", "interpolate.Akima1DInterpolator interpolate.make_interp_spline"),
    ("curve", "interpolate.UnivariateSpline interpolate.InterpolatedUnivariateSpline"),
    ("field", "interpolate.RegularGridInterpolator interpolate.LinearNDInterpolator"),
    ("field", "interpolate.NearestNDInterpolator interpolate.CloughTocher2DInterpolator"),
    ("joint", "stats.multivariate_normal stats.multivariate_t"),
    ("distribution", "stats.norm stats.t stats.chi2 stats.f stats.gamma stats.beta stats.expon"),
    ("distribution", "stats.lognorm stats.uniform stats.poisson stats.binom stats.nbinom"),
    ("distribution", "stats.geom stats.laplace stats.logistic stats.cauchy stats.weibull_min"),
)
MADE_KINDS = {f"scipy.{name}": kind for kind, names in _MADE for name in names.split()}
"""Kinds of what classes of SciPy make, and functions that stand for some."""
BY_ROWS = _words("ks_2samp kurtosis mannwhitneyu skew ttest_1samp ttest_ind ttest_rel wilcoxon")
"""Functions of ``scipy.stats`` that take an axis and all rows at once."""


PURE = _words(
    "abs all any bool callable chr complex dict divmod enumerate float format frozenset hasattr"
    " hash hex id int isinstance issubclass len list max min ord pow range repr round set slice"
    " sorted str sum tuple type zip"
)
"""Builtins that compute a value, unless what they are given has code of its own."""
BUILTINS = PURE | _words("input iter open print reversed")
"""Those that change nothing."""
THROUGH = _words("all any frozenset set sorted sum")
"""Those that go through all of what they are given."""
HOLDING = _words(
    "dict enumerate frozenset iter list max min reversed set slice sorted sum tuple zip"
)
"""Those whose results may lead to what they are given."""

MODULES = _words(
    "numpy numpy.linalg numpy.fft numpy.lib.stride_tricks math cmath scipy.linalg scipy.special"
    " scipy.fft scipy.signal scipy.ndimage scipy.sparse scipy.sparse.linalg scipy.spatial.distance"
)
"""Modules whose functions compute a value of what they are given."""
_QUIET = _words("time datetime zlib hashlib re json random")
"""Others whose functions change nothing."""
_IMPURE = _words(
    "apply_along_axis apply_over_axes copyto fill_diagonal fromfile frompyfunc fromfunction"
    " fromiter genfromtxt load loadtxt memmap nditer piecewise place put put_along_axis putmask"
    " save savetxt savez savez_compressed set_printoptions seterr vectorize errstate"
    " generic_filter generic_filter1d LowLevelCallable LinearOperator aslinearoperator bicg"
    " bicgstab cg cgs eigs eigsh expm_multiply gcrotmk gmres lgmres lobpcg lsmr lsqr minres"
    " onenormest qmr rand random random_array save_npz load_npz svds tfqmr"
)
"""Functions of `MODULES` that change what they are given, or more, or run other code."""
WRITING = _words("at copyto fill_diagonal place put put_along_axis putmask")
"""Those that change what they are given, and do nothing else."""
_CALLING = _words(
    "apply_along_axis apply_over_axes fromfunction frompyfunc generic_filter generic_filter1d"
    " piecewise vectorize"
)
MAKING = _words(
    "arange array asarray empty empty_like eye full full_like identity linspace ones ones_like"
    " zeros zeros_like"
)
"""Those that take little more than the memory for what they make."""
SHARING = _words(
    "array_split as_strided asanyarray asarray asarray_chkfinite asfortranarray ascontiguousarray"
    " asmatrix atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to conj diag diagonal"
    " dsplit einsum expand_dims flip fliplr flipud from_dlpack frombuffer hsplit imag ix_"
    " matrix_transpose moveaxis nan_to_num permute_dims ravel real real_if_close require reshape"
    " rollaxis rot90 sliding_window_view split squeeze swapaxes transpose trim_zeros unstack view"
    " vsplit matrix_power block_diag bmat bsr_array bsr_matrix coo_array coo_matrix csc_array"
    " csc_matrix csr_array csr_matrix dia_array dia_matrix diags diags_array tocoo tocsc tocsr"
)
"""Those, and methods, whose results may lead to what they are given."""

REDUCING = _words("all any argmax argmin astype conj copy dot item max mean min prod std sum var")
METHODS = REDUCING | _words(
    "argsort clip conjugate cumprod cumsum diagonal flatten index nonzero ptp ravel repeat reshape"
    " round searchsorted squeeze swapaxes take toarray tobytes tocoo tocsc tocsr todense tolist"
    " trace transpose view"
)
"""Methods of arrays, sparse ones too, and lists that change nothing."""
DRAWS = _words(
    "exponential gamma integers lognormal normal permutation poisson random standard_normal uniform"
)
"""Methods that little else than NumPy's generators of random numbers has."""
GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState"})
"""What makes these; of a name that may be another generator, or None, nobody knows which."""
CHANGING = _words(
    "add append appendleft byteswap clear discard extend fill insert itemset partition pop popitem"
    " popleft put remove resize reverse setdefault setfield setflags sort update"
)
"""Methods of arrays, lists, dictionaries and sets that change what they are called on."""
MESSAGES = _words(
    "send ssend bsend rsend recv sendrecv bcast reduce allreduce scan exscan gather gatherv scatter"
    " scatterv allgather allgatherv alltoall alltoallv alltoallw reduce_scatter barrier get_rank"
    " get_size"
)
"""Methods of mpi4py that have done all they do when they return, in lower case."""
ALIKE = _words("allreduce allgather")
"""Those that give the same where all ranks give the same."""


_PLACES = {
    name: place
    for place, names in (
        (1, "acos acosh asin asinh atan atanh bitwise_count bitwise_invert fix frexp isnat"),
        (1, "isneginf isposinf modf spacing"),
        (2, "amax amin around atan2 bitwise_left_shift bitwise_right_shift choose concat divmod"),
        (2, "float_power ldexp matmul matvec nextafter outer vecdot vecmat"),
        (3, "compress nancumprod nancumsum take"),
        (4, "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn"),
        (5, "trace busday_count"),
    )
    for name in names.split()
}
"""Where functions are told to write, of those of which the tables of arguments do not say it."""


def of_library(full: str, call: ast.Call, runs: bool) -> Deed:
    """Return what a function does that is imported, and may call code that it is given."""
    module, _, name = full.rpartition(".")
    if runs or name in _CALLING:
        return Deed.ANYTHING
    if full in GENERATORS and isinstance(next(iter(call.args), None), ast.List | ast.BinOp):
        return Deed.DRAWS
    if module == "scipy.stats" and name in BY_ROWS:
        return Deed.COMPUTES
    if kind := MADE_KINDS.get(module):
        return of_method(name, kind, call, runs)
    if module == "numpy.random" and name.islower() and name not in ("shuffle", "default_rng"):
        return Deed.DRAWS
    if module in MODULES or full.startswith("numpy.") or full == "random.shuffle":
        computes = module in MODULES and name not in _IMPURE
        return Deed.COMPUTES if computes and not _writes(name, call, 0) else Deed.WRITES
    return Deed.NOTHING if full.partition(".")[0] in _QUIET else Deed.ANYTHING


def of_builtin(name: str, call: ast.Call, runs: bool) -> Deed:
    """Return what a builtin does."""
    if runs or name not in BUILTINS:
        return Deed.ANYTHING
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return Deed.COMPUTES if name in PURE and not starred else Deed.NOTHING


def of_method(name: str, kind: str, call: ast.Call, runs: bool) -> Deed:
    """Return what a method does of an object that is of some kind; empty where nobody knows it."""
    if runs or kind in (OBJECT, "function"):
        return Deed.ANYTHING
    if kind in ASKED:
        return Deed.COMPUTES if name in ASKED[kind] else Deed.ANYTHING
    if kind == "generator" or name in DRAWS:
        written = any(one.arg == "out" for one in call.keywords)
        return Deed.DRAWS if name in DRAWS and not written else Deed.WRITES
    if name == "shuffle":
        return Deed.WRITES
    if name in CHANGING:
        return Deed.CHANGES
    if kind not in ("", "array"):
        return Deed.COMPUTES
    if name in METHODS:
        return Deed.WRITES if _writes(name, call, 1) else Deed.COMPUTES
    return Deed.WRITES if kind else Deed.ANYTHING


def _writes(name: str, call: ast.Call, first: int) -> bool:
    """Return whether a call may say where to write, given the place of its first argument."""
    row = ROWS.get(ELEMENTWISE.get(name, name))
    operands = _PLACES.get(name, 99 if row is None else row.operands)
    known = name in PARAMETERS and name not in _PLACES
    names = PARAMETERS[name] if known else ("x",) * operands + ("out",)
    refused = [one for one in call.keywords if getattr(one.value, "value", None) is False]
    kept = {one.arg for one in refused if (one.arg or "").startswith("overwrite")}
    used = [one.arg or "out" for one in call.keywords if one.arg not in kept]
    used += names[first : first + len(call.args)]
    # SciPy's are told so that they may overwrite what they are given
    used += ["out" for one in call.args if getattr(one, "value", 0) is True]
    if any(isinstance(one, ast.Starred) for one in call.args):
        return True
    return any(one in ("out", "output", "copy") or one.startswith("overwrite") for one in used)
