"""What a sampled program may call: functions that only compute on what they are given.

Nothing here reads or writes files, keeps state outside its arguments or takes code as text.
A function without a row is not called; whatever needs it is not sampled, and is named.
"""

from __future__ import annotations

from typing import Final

_NUMPY: Final = """
abs absolute acos acosh add all allclose amax amin angle any append arange arccos arccosh arcsin
arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array
array_equal array_split asanyarray asarray ascontiguousarray asfortranarray asin asinh astype
atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett bincount bitwise_and
bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor blackman block broadcast_arrays broadcast_shapes broadcast_to cbrt ceil choose clip
column_stack compress concat concatenate conj conjugate convolve copy copysign copyto corrcoef
correlate cos cosh count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad
degrees delete diag diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod
dot dsplit dstack ediff1d einsum empty empty_like equal exp exp2 expand_dims expm1 extract eye
fabs fill_diagonal fix flatnonzero flip fliplr flipud float_power floor floor_divide fmax fmin
fmod frexp full full_like gcd geomspace gradient greater greater_equal hamming hanning heaviside
histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity imag
indices inner insert interp intersect1d invert isclose iscomplexobj isfinite isin isinf isnan
isneginf isposinf isreal isrealobj isscalar issubdtype ix_ kaiser kron lcm ldexp left_shift less
less_equal lexsort linspace log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
logical_or logical_xor logspace mask_indices matmul matrix_transpose matvec max maximum mean
median meshgrid min minimum mod modf moveaxis multiply nan_to_num nanargmax nanargmin nancumprod
nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar
ndarray ndim negative nextafter nonzero not_equal ones ones_like outer packbits pad partition
percentile permute_dims place poly polyadd polyder polydiv polyfit polyint polymul polysub
polyval positive pow power prod promote_types ptp put put_along_axis putmask quantile rad2deg
radians ravel ravel_multi_index real reciprocal remainder repeat reshape resize result_type
right_shift rint roll rollaxis roots rot90 round row_stack searchsorted select setdiff1d setxor1d
shape shares_memory sign signbit sin sinc sinh size sort sort_complex spacing split sqrt square
squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace
transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu triu_indices
triu_indices_from true_divide trunc union1d unique unpackbits unravel_index unstack unwrap vander
var vdot vecdot vecmat vsplit vstack where zeros zeros_like
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp float16 float32 float64 complex64
complex128 bool_ single double longdouble csingle cdouble intc uintc int_ uint dtype finfo iinfo
fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn
fft.ifftshift fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn
lib.stride_tricks.sliding_window_view
linalg.cholesky linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh
linalg.eigvals linalg.eigvalsh linalg.inv linalg.lstsq linalg.matmul linalg.matrix_norm
linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.multi_dot linalg.norm
linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals
linalg.tensordot linalg.tensorinv linalg.tensorsolve linalg.trace linalg.vecdot linalg.vector_norm
random.beta random.binomial random.choice random.default_rng random.exponential random.gamma
random.normal random.permutation random.poisson random.rand random.randint random.randn
random.random random.random_sample random.seed random.shuffle random.standard_normal random.uniform
random.RandomState frombuffer
"""

_OTHERS: Final = """
math.acos math.acosh math.asin math.asinh math.atan math.atan2 math.atanh math.ceil math.comb
math.copysign math.cos math.cosh math.degrees math.dist math.erf math.erfc math.exp math.expm1
math.fabs math.factorial math.floor math.fmod math.fsum math.gamma math.gcd math.hypot math.inf
math.isclose math.isfinite math.isinf math.isnan math.isqrt math.ldexp math.lgamma math.log
math.log10 math.log1p math.log2 math.modf math.perm math.pi math.e math.tau math.nan math.pow
math.prod math.radians math.remainder math.sin math.sinh math.sqrt math.tan math.tanh math.trunc
time.perf_counter time.time time.process_time time.monotonic itertools.product
itertools.combinations itertools.permutations itertools.chain itertools.islice
itertools.accumulate random.choice random.gauss random.randint random.random random.randrange
random.sample random.seed random.shuffle random.uniform copy.copy copy.deepcopy
functools.reduce operator.add operator.mul numba.prange scipy.fft.fft
scipy.fft.fft2 scipy.fft.fftn scipy.fft.ifft scipy.fft.ifft2 scipy.fft.ifftn scipy.fft.rfft
scipy.fft.rfft2 scipy.fft.rfftn scipy.fft.irfft scipy.fft.irfft2 scipy.fft.irfftn scipy.fft.dct
scipy.fft.idct scipy.fft.dst scipy.fft.idst scipy.fft.dctn scipy.fft.idctn scipy.fft.fftfreq
scipy.fft.rfftfreq scipy.fft.fftshift scipy.fft.ifftshift scipy.fft.next_fast_len
scipy.linalg.cho_factor scipy.linalg.cho_solve scipy.linalg.cholesky scipy.linalg.det
scipy.linalg.eig scipy.linalg.eigh scipy.linalg.eigvals scipy.linalg.eigvalsh scipy.linalg.expm
scipy.linalg.hankel scipy.linalg.inv scipy.linalg.lstsq scipy.linalg.lu scipy.linalg.lu_factor
scipy.linalg.lu_solve scipy.linalg.norm scipy.linalg.pinv scipy.linalg.qr scipy.linalg.schur
scipy.linalg.solve scipy.linalg.solve_banded scipy.linalg.solve_triangular scipy.linalg.svd
scipy.linalg.toeplitz scipy.ndimage.binary_dilation scipy.ndimage.binary_erosion
scipy.ndimage.convolve scipy.ndimage.convolve1d scipy.ndimage.correlate scipy.ndimage.correlate1d
scipy.ndimage.gaussian_filter scipy.ndimage.gaussian_filter1d scipy.ndimage.label
scipy.ndimage.laplace scipy.ndimage.map_coordinates scipy.ndimage.maximum_filter
scipy.ndimage.mean scipy.ndimage.median_filter scipy.ndimage.minimum_filter scipy.ndimage.rotate
scipy.ndimage.shift scipy.ndimage.sobel scipy.ndimage.sum scipy.ndimage.uniform_filter
scipy.ndimage.uniform_filter1d scipy.ndimage.zoom scipy.signal.convolve scipy.signal.convolve2d
scipy.signal.correlate scipy.signal.correlate2d scipy.signal.fftconvolve scipy.signal.filtfilt
scipy.signal.hilbert scipy.signal.lfilter scipy.signal.medfilt scipy.signal.oaconvolve
scipy.signal.resample scipy.signal.sosfilt scipy.sparse.coo_array scipy.sparse.coo_matrix
scipy.sparse.csc_array scipy.sparse.csc_matrix scipy.sparse.csr_array scipy.sparse.csr_matrix
scipy.sparse.diags scipy.sparse.eye scipy.sparse.kron scipy.sparse.random
scipy.sparse.random_array scipy.spatial.distance.cdist scipy.spatial.distance.pdist
scipy.spatial.distance.squareform scipy.special.binom scipy.special.comb scipy.special.erf
scipy.special.erfc scipy.special.expit scipy.special.factorial scipy.special.gamma
scipy.special.gammaln scipy.special.jv scipy.special.logsumexp scipy.special.softmax
scipy.special.xlogy
"""

_MPI: Final = """
COMM_WORLD COMM_SELF COMM_NULL PROC_NULL ANY_SOURCE ANY_TAG IN_PLACE UNDEFINED BOTTOM ROOT
REQUEST_NULL INFO_NULL COMM_TYPE_SHARED ORDER_C ORDER_F ORDER_FORTRAN LOCK_SHARED LOCK_EXCLUSIVE
MODE_NOCHECK MODE_NOPUT MODE_NOPRECEDE MODE_NOSTORE MODE_NOSUCCEED
SUM PROD MAX MIN LAND LOR LXOR BAND BOR BXOR MAXLOC MINLOC REPLACE NO_OP
BYTE CHAR BOOL C_BOOL SHORT INT LONG LONG_LONG FLOAT DOUBLE LONG_DOUBLE UNSIGNED UNSIGNED_CHAR
UNSIGNED_INT UNSIGNED_LONG INT8_T INT16_T INT32_T INT64_T UINT8_T UINT16_T UINT32_T UINT64_T
REAL REAL4 REAL8 INTEGER INTEGER4 INTEGER8 COMPLEX DOUBLE_COMPLEX C_FLOAT_COMPLEX
C_DOUBLE_COMPLEX COMPLEX8 COMPLEX16 DOUBLE_INT FLOAT_INT AINT
Comm Intracomm Cartcomm Datatype Request Prequest Status Win Op Group
Status Wtime Wtick Compute_dims Get_processor_name Is_initialized Is_finalized Query_thread
Request.Waitall Request.waitall Request.Waitany Request.waitany Request.Testall Request.testall
Prequest.Startall Win.Allocate Win.Create Win.Allocate_shared Datatype.Create_vector
"""

CALLS: Final = frozenset(
    {f"numpy.{name}" for name in _NUMPY.split()}
    | set(_OTHERS.split())
    | {f"mpi4py.MPI.{name}" for name in _MPI.split()}
)
"""Dotted names of functions; types of elements are among them."""

WITH_FUNCTIONS: Final = frozenset(
    {"numpy.fromfunction", "numpy.apply_along_axis", "numpy.vectorize", "numpy.piecewise"}
)
"""Those that call what they are given, which must be a function of the same file."""

_VALUES: Final = """
pi e euler_gamma inf nan newaxis mgrid ogrid r_ c_ s_ floating integer number
"""
_BUILTINS: Final = """
abs all any bool complex dict divmod enumerate float frozenset int isinstance iter len list map
max min next pow range reversed round set slice sorted sum tuple zip ArithmeticError IndexError
RuntimeError ValueError ZeroDivisionError
"""
_MEMBERS: Final = """
T all any argmax argmin argpartition argsort astype base choose clip compress conj conjugate copy
cumprod cumsum diagonal dot dtype fill flat flatten imag item itemsize mT max mean min nbytes ndim
nonzero partition prod put ravel real repeat reshape resize round searchsorted shape size sort
squeeze std strides sum swapaxes take tolist trace transpose var view eps tiny kind name
is_integer bit_length append extend pop insert remove count index reverse clear keys values items
get update add discard join tocsr tocsc tocoo toarray todense data indices indptr row col nnz
multiply setdiag beta binomial choice exponential gamma integers normal permutation permuted poisson
random rand randint randn random_sample shuffle standard_normal uniform
"""

_WAITING: Final = """
send recv sendrecv Send Recv Sendrecv Sendrecv_replace Ssend Bsend Rsend ssend bsend
isend irecv Isend Irecv Issend issend Send_init Recv_init Start Startall
bcast Bcast scatter Scatter Scatterv gather Gather Gatherv allgather Allgather Allgatherv
reduce Reduce allreduce Allreduce scan Scan exscan Exscan Reduce_scatter Reduce_scatter_block
alltoall Alltoall Alltoallv Alltoallw barrier Barrier Ibcast Iscatter Igather Iallgather Ireduce
Iallreduce Ialltoall Ialltoallv Iallgatherv Ibarrier Neighbor_alltoall Neighbor_allgather
Neighbor_alltoallv Neighbor_allgatherv neighbor_alltoall neighbor_allgather
wait Wait waitall Waitall waitany Waitany test Test probe Probe iprobe Iprobe
Put Get Accumulate Get_accumulate Fetch_and_op Fence Lock Unlock Lock_all Unlock_all Flush
Flush_all Post Complete
"""
TALKING: Final = frozenset(_WAITING.split())
"""Methods by which ranks send to each other or wait for each other."""

OF_RANK: Final = frozenset({"Get_rank", "rank", "coords", "Get_coords", "Get_cart_rank"})
"""What gives each rank another value."""

_OF_RANKS: Final = """
Get_rank Get_size rank Split Split_type Dup Clone Free Commit Create_cart Get_coords Get_cart_rank
Get_topo Get_dim Shift Sub coords dims dim periods topo Create_vector Create_contiguous
Create_subarray Create_indexed Create_indexed_block Create_hvector Create_struct Create_resized
Get_extent Get_size Set_name Get_name Get_group Incl Excl Create Create_group Get_source Get_tag
Get_count Get_elements source tag count tomemory Shared_query Cancel
"""
MPI_MEMBERS: Final = TALKING | frozenset(_OF_RANKS.split())
"""What communicators, requests, datatypes and windows have; of files that import mpi4py."""

VALUES: Final = frozenset(f"numpy.{name}" for name in _VALUES.split())
"""Names of NumPy that are no functions."""

COMPILERS: Final = frozenset(
    {"numba.njit", "numba.jit", "numba.core.decorators.njit", "advisor.compiler.advised_njit"}
)
"""Decorators that compile a function; what is compiled is one piece, and runs whole."""

COMPILER_OPTIONS: Final = frozenset(
    ("parallel", "fastmath", "nogil", "boundscheck", "error_model", "nopython", "forceobj")
)

MARKS: Final = frozenset({"advisor.kernel", "advisor.annotations.kernel"})
"""Decorators that change nothing."""

OPERATORS: Final = frozenset(
    f"__{name}__"
    for name in (
        *("init", "call", "len", "getitem", "setitem", "iter", "next", "contains", "bool"),
        *("neg", "abs", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("radd", "rsub", "rmul", "rtruediv", "iadd", "isub", "imul", "itruediv"),
        *("eq", "ne", "lt", "le", "gt", "ge"),
    )
)
"""Methods that a class of the file may define; none may be asked for by its name."""

OF_CLASSES: Final = frozenset({"property", "staticmethod", "classmethod"})
"""Decorators of methods."""

UFUNC_METHODS: Final = frozenset({"accumulate", "at", "outer", "reduce", "reduceat"})

BUILTINS: Final = frozenset(_BUILTINS.split())

MEMBERS: Final = frozenset(_MEMBERS.split())
"""Attributes and methods of arrays, numbers, containers, sparse matrices and generators."""
