"""The lines model's numbers in a machine profile, as symbols of a price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from costdb.evaluate import Domain, Missing, Priced, Term
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    conditional,
    floor_div,
    free_symbols,
    gcd,
    less,
    less_equal,
    maximum,
    minimum,
    num,
    sym,
)
from costdb.expr.nodes import Num, multiply, split_coefficient
from costdb.expr.polynomials import Facts
from costdb.machines import Json, Machine
from costdb.profile_parts import Grade, grades, grades_of, interval_of, lacking
from costdb.quantity import Quantity, anywhere
from costdb.records import dataclass, field, replace
from costdb.work import Region

# --- symbolic -------------------------------------------------------------------------------------
# Closed-form bounds on the distinct cache lines of a strided block of memory.
#
# Dimensions are sorted by pitch. One whose neighbours leave less than a line between them touches
# every line from first to last, so that it is one contiguous run; one that goes on where the one
# inside it ends joins it. Where a comparison of two symbolic sizes decides (does a row pitch leave
# a whole line free?), the closed form holds both answers in a conditional; where the structure of
# the sizes settles it, only the right one.
#
# With ``L`` the line, ``g = gcd(pitch, L)`` and ``q = L/g``, runs of `w` bytes a `pitch` apart each
# touch ``ceil(w/L)`` lines, and one more when they straddle a boundary. Of `q` consecutive runs,
# which start at all residues congruent modulo `g`, exactly ``((w-1) mod L + r) div g`` straddle
# one, where ``r = start mod g``: for ``r = 0`` this is the published count ``q + ceil(w/g) - 1``
# for `q` rows. The two bounds follow from the extremes of `r`, which alignment limits to ``g -
# alignment``.
#
# Symbols stand for whole numbers that are not negative.


Bounds = tuple[Expr, Expr]
_Dimensions = list[tuple[Expr, Expr]]


@lru_cache(maxsize=1024)
def region_line_bounds(region: Region, line_bytes: int) -> Bounds:
    """Return lower and upper bounds on the distinct lines that a region touches.

    Both hold for every start that the element's size allows; of one run, and of equally spaced
    runs, some start attains each.

    Parameters
    ----------
    region : Region
    line_bytes : int
        Size of a cache line.
    """
    # a slice that begins behind its end holds nothing
    if any(less_equal(count, 0) == ONE for count in region.counts):
        return ZERO, ZERO
    aligned = gcd(region.itemsize_bytes, line_bytes)
    dimensions: _Dimensions = []
    for count, pitch in zip(region.counts, region.pitches_bytes, strict=True):
        if count == ONE or pitch == ZERO:
            continue
        # Offsets along any dimension keep the addresses aligned to its pitch at best.
        aligned = _common_divisor(pitch, aligned)
        dimensions.append((count, magnitude(pitch)))
    block = _Block(num(line_bytes), aligned)
    lower, upper = block.bounds(num(region.itemsize_bytes), by_pitch(dimensions))
    unknown = [count for count in dict.fromkeys(region.counts) if not isinstance(count, Num)]
    if unknown:
        filled = less(0, minimum(*unknown))
        return conditional(filled, lower, 0), conditional(filled, upper, 0)
    return lower, upper


@dataclass(frozen=True, slots=True)
class _Block:
    """Bounds for blocks in memory with the same line and alignment."""

    line: Expr
    aligned: Expr

    def bounds(self, run: Expr, dimensions: _Dimensions) -> Bounds:
        """Bound the lines of a run repeated along dimensions of growing pitch."""
        if not dimensions:
            return self._one_run(run)
        (count, pitch), outer = dimensions[0], dimensions[1:]
        # Less than a line lies between neighbours: every line from first to last is touched.
        dense = less(pitch, run + self.line)
        if dense == ONE:
            return self.bounds(_repeated(run, count, pitch), outer)
        sparse = self._nested(run, dimensions)
        if dense == ZERO:
            return sparse
        merged = self.bounds(_repeated(run, count, pitch), outer)
        return conditional(dense, merged[0], sparse[0]), conditional(dense, merged[1], sparse[1])

    def _one_run(self, run: Expr) -> Bounds:
        farthest = self.line - self.aligned
        return ceil_div(run, self.line), floor_div(farthest + run - 1, self.line) + 1

    def _nested(self, run: Expr, dimensions: _Dimensions) -> Bounds:
        """Bound runs that leave at least a line between them, in outer dimensions too."""
        (count, pitch), *outer = _join_continued(dimensions)
        lower, upper = self._runs(run, count, pitch)
        span = _repeated(run, count, pitch)
        for times, stride in outer:
            apart = less_equal(count * pitch, stride)
            if apart == ONE:
                lower, upper = times * lower, times * upper
            else:
                clear = less_equal(span + self.line - 1, stride)
                ordered = less_equal(span, stride)
                # Neighbours may share one line where they come close, any where they interleave.
                close = conditional(ordered, times * (lower - 1) + 1, lower)
                lower = conditional(apart, times * lower, conditional(clear, times * lower, close))
                whole = self._one_run(_repeated(span, times, stride))[1]
                upper = conditional(apart, times * upper, minimum(times * upper, whole))
            span = _repeated(span, times, stride)
            count, pitch = times, stride
        return lower, upper

    def _runs(self, run: Expr, count: Expr, pitch: Expr) -> Bounds:
        """Bound equally spaced runs that share no line."""
        line = self.line
        if less_equal(run, self.aligned) == ONE:
            # Within one aligned unit, a run cannot straddle a boundary.
            return count, count
        common = _common_divisor(pitch, line)
        period = line / common if isinstance(common, Num) else floor_div(line, common)
        beyond = _remainder(run - 1, line)
        fewest = count * ceil_div(run, line)
        groups = count if period == ONE else floor_div(count, period)
        left = ZERO if period == ONE else count % period
        least = floor_div(beyond, common)
        most = floor_div(beyond + common - self.aligned, common)
        lower = fewest + groups * least + maximum(0, left + least - period)
        upper = fewest + groups * most + minimum(left, most)
        return lower, upper


def _repeated(run: Expr, count: Expr, pitch: Expr) -> Expr:
    """Return the bytes from first to last of `count` runs."""
    return count * run if pitch == run else run + (count - 1) * pitch


def by_pitch(dimensions: _Dimensions) -> _Dimensions:
    """Sort by pitch; where only sizes can tell, exchange neighbours by conditionals."""
    ordered = list(dimensions)
    for end in range(len(ordered) - 1, 0, -1):
        for i in range(end):
            (count_a, pitch_a), (count_b, pitch_b) = ordered[i], ordered[i + 1]
            if _certainly_at_most(pitch_a, pitch_b):
                continue
            if _certainly_at_most(pitch_b, pitch_a):
                ordered[i], ordered[i + 1] = ordered[i + 1], ordered[i]
                continue
            sorted_already = less_equal(pitch_a, pitch_b)
            ordered[i] = (
                conditional(sorted_already, count_a, count_b),
                minimum(pitch_a, pitch_b),
            )
            ordered[i + 1] = (
                conditional(sorted_already, count_b, count_a),
                maximum(pitch_a, pitch_b),
            )
    return ordered


def _join_continued(dimensions: _Dimensions) -> _Dimensions:
    """Join dimensions that go on exactly where the one inside them ends."""
    joined = dimensions[:1]
    for count, pitch in dimensions[1:]:
        inner_count, inner_pitch = joined[-1]
        if pitch == inner_count * inner_pitch:
            joined[-1] = (count * inner_count, inner_pitch)
        else:
            joined.append((count, pitch))
    return joined


def _is_multiple(size: Expr, unit: Expr) -> bool:
    ratio = size / unit
    return ratio.is_whole(free_symbols(ratio))


def _certainly_at_most(small: Expr, large: Expr) -> bool:
    return less_equal(small, large) == ONE or (
        # A multiple that is zero visits nothing new, so its place in the order is free.
        _is_multiple(large, small) and _is_nonnegative(large / small)
    )


def _common_divisor(size: Expr, unit: Expr) -> Expr:
    if isinstance(unit, Num) and _is_multiple(size, unit):
        return unit
    return gcd(size, unit)


def _remainder(size: Expr, unit: Expr) -> Expr:
    return ZERO if _is_multiple(size, unit) else size % unit


def magnitude(pitch: Expr) -> Expr:
    """Return the absolute value of a pitch, without a maximum where its sign is known."""
    coefficient, rest = split_coefficient(pitch)
    if isinstance(pitch, Num):
        return pitch if pitch.value >= 0 else -pitch
    if _is_nonnegative(rest):
        return -pitch if coefficient < 0 else pitch
    return maximum(pitch, -pitch)


def _is_nonnegative(size: Expr) -> bool:
    """Tell whether a size cannot be negative, as no symbol is."""
    return Facts(nonnegative=free_symbols(size)).proves_at_least(size, ZERO)


# --- coefficients ---------------------------------------------------------------------------------


def elements_of(region: Region) -> Expr:
    """Return the number of elements of a region."""
    return multiply(region.counts)


def bytes_of(region: Region) -> Expr:
    """Return the bytes of a region's elements, without what lies between them."""
    return elements_of(region) * region.itemsize_bytes


def _run(region: Region) -> tuple[Expr, list[tuple[Expr, Expr]]]:
    """Return the bytes of a contiguous run, and the dimensions outside it, smallest pitch first."""
    dimensions = [
        (count, magnitude(pitch))
        for count, pitch in zip(region.counts, region.pitches_bytes, strict=True)
        if count != ONE
    ]
    run: Expr = num(region.itemsize_bytes)
    outer: list[tuple[Expr, Expr]] = []
    for count, pitch in by_pitch(dimensions):
        if pitch == run and not outer:
            run = run * count
        elif outer and pitch == outer[-1][0] * outer[-1][1]:
            outer[-1] = (outer[-1][0] * count, outer[-1][1])
        else:
            outer.append((count, pitch))
    return run, outer


# Messages priced by grades: one formula with which a profile is read, and to which it is fitted.
#
# On machines with caches and message protocols one line through all sizes fits none of them. Here
# bytes are priced by grade of the message's size (:mod:`costdb.profile_parts`), a protocol adds a
# step above the size where it takes over, and where the region is staged the copies cost a call,
# their loops, their strided elements, their bytes, and the lines touched, by grade of the bytes
# that these lines fill. All coefficients are at least 0, so the price never falls when the
# message grows.
#
# The formula is a sum of amounts, each with the place of its coefficient in a profile's
# ``lines.message``: pricing multiplies them by what stands there, a calibration by what it fits.

Place = tuple[str | int, ...]
SECTION = ("lines", "message")


@dataclass(frozen=True, slots=True)
class Amount:
    """So many units of a coefficient.

    Attributes
    ----------
    label : str
        The term of the price that it belongs to.
    place : tuple of str or int
        Of the coefficient, within ``lines.message``.
    units : Expr
    """

    label: str
    place: Place
    units: Expr


@dataclass(frozen=True, slots=True)
class Scale:
    """Where grades end and protocols begin: all of the formula but its coefficients.

    Attributes
    ----------
    line_bytes : int
    protocols : tuple of float
        Bytes above which each costs extra.
    bytes, lines : tuple of Grade
        By bytes of the message, and by bytes that the lines fill.
    """

    line_bytes: int
    protocols: tuple[float, ...]
    bytes: tuple[Grade, ...]
    lines: tuple[Grade, ...]


def scale(
    line_bytes: int,
    protocols: Sequence[float],
    byte_limits: Sequence[float],
    line_limits: Sequence[float],
) -> Scale:
    """Return the scale with these limits; the last grade has none."""
    return Scale(
        line_bytes,
        tuple(protocols),
        tuple(grades_of(byte_limits)),
        tuple(grades_of(line_limits)),
    )


def is_graded(message: Mapping[str, Json]) -> bool:
    """Tell whether a profile's ``lines.message`` is of this form."""
    return "bytes" in message


def scale_in(machine: Machine) -> Scale:
    """Return the scale that a profile states.

    Raises
    ------
    MachineError
        It is malformed.
    """
    return Scale(
        machine.cache_line_bytes,
        tuple(_protocols(machine)),
        grades(machine, *SECTION, "bytes"),
        grades(machine, *SECTION, "staging", "lines"),
    )


def amounts(region: Region, by: Scale) -> Iterator[Amount]:
    """Yield what one message that carries `region` takes of each coefficient.

    Where the region is more than one run it is copied to a buffer and from one: in inner loops, of
    elements at a stride one by one. Of the lines touched it is the mean of their bounds, as nobody
    knows where the region starts.
    """
    size = bytes_of(region)
    yield Amount("start-up", ("alpha_us",), ONE)
    for number, above in enumerate(by.protocols):
        yield Amount("start-up", ("protocols", number, "extra_us"), less(above, size))
    for number, grade in enumerate(by.bytes):
        yield Amount("bytes", ("bytes", number, "beta_us_per_byte"), grade.part(size))
    run, outer = _run(region)
    staged = less(1, multiply(count for count, _ in outer))
    single = less_equal(run, region.itemsize_bytes)
    around = multiply(count for count, _ in outer[1:])
    inner = outer[0][0] if outer else ONE
    for key, units in (
        ("call_us", ONE),
        ("loop_us", conditional(single, around, around * inner)),
        ("element_us", conditional(single, around * inner, 0)),
        ("copy_us_per_byte", size),
    ):
        yield Amount("staging", ("staging", key), staged * units)
    lower, upper = region_line_bounds(region, by.line_bytes)
    filled = (lower + upper) / 2 * by.line_bytes
    for number, grade in enumerate(by.lines):
        units = staged * (grade.part(filled) / by.line_bytes)
        yield Amount("lines", ("staging", "lines", number, "gamma_us_per_line"), units)


def _protocols(machine: Machine) -> Iterator[float]:
    stated, path = machine.section(*SECTION).get("protocols", []), (*SECTION, "protocols")
    if not isinstance(stated, list):
        raise machine.refuse("expected a list", *path)
    for number, protocol in enumerate(stated):
        above = protocol.get("above_bytes") if isinstance(protocol, dict) else None
        if isinstance(above, bool) or not isinstance(above, int | float):
            raise machine.refuse("expected a number", *path, number, "above_bytes")
        yield above


MODEL = "lines"

SLACK = "lines.slack"
SLACK_QUANTITY = anywhere(
    "where between its bounds the number of lines lies: their mean, as the published model takes"
)

_UNIT_SUFFIXES = ("_us_per_byte", "_us_per_line", "_us_per_operation", "_us")


@dataclass(slots=True)
class Bill:
    """A price under construction: its terms, the coefficients they use, what was lacking.

    Attributes
    ----------
    machine : Machine
    model : str
        Whose price it is, where it is not that of lines.
    """

    machine: Machine
    model: str = MODEL
    terms: list[Term] = field(default_factory=list)
    coefficients: dict[str, Quantity] = field(default_factory=dict)
    absent: dict[str, None] = field(default_factory=dict)
    domains: list[Domain] = field(default_factory=list)

    def stated(self, *path: str | int, name: str = "") -> Expr:
        """Return the symbol of what the profile states at a path, and note it, or its absence."""
        quantity = self.machine.quantity(*path)
        if quantity is None:
            self.absent[name or ".".join(map(str, path))] = None
            return ZERO
        parts = (f"piece{key + 1}" if isinstance(key, int) else key for key in path)
        symbol = _without_unit(name or ".".join(parts))
        self.coefficients[symbol] = quantity
        return sym(symbol)

    def factor(self, *path: str) -> Expr:
        """Return the symbol of a factor at a path, 1 where the profile states none."""
        return ONE if self.machine.quantity(*path) is None else self.stated(*path)

    def add(self, label: str, time: Expr) -> None:
        """Add a term, if it is any time."""
        if time != ZERO:
            self.terms.append(Term(label, self.model, time))

    def correct(self, factor: Expr) -> None:
        """Multiply all terms so far."""
        self.terms = [replace(one, microseconds=one.microseconds * factor) for one in self.terms]

    def charge(self, label: str, section: str, key: str, amount: Expr) -> None:
        """Add `amount` times the coefficient ``lines.<section>.<key>`` as a term."""
        if amount != ZERO:
            residual = self.factor(MODEL, section, "residual")
            self.add(label, amount * self.stated(MODEL, section, key) * residual)

    def charge_messages(self, times: Expr, region: Region) -> None:
        """Add `times` messages that carry a region: start-up, bytes and lines."""
        if times == ZERO:
            return
        size = bytes_of(region)
        # Nothing is sent where there is nobody to send to, so nothing is out of range there.
        self.within(size, MODEL, "message_bytes", happens=less_equal(1, times))
        if is_graded(self.machine.section(*SECTION)):
            self._charge_graded(times, region)
            return
        self.charge("start-up", "message", "alpha_us", times)
        self.charge("bytes", "message", "beta_us_per_byte", times * size)
        self.charge("lines", "message", "gamma_us_per_line", times * self.lines(region))

    def charge_step(
        self,
        label: str,
        times: Expr,
        path: tuple[str, ...],
        size: Expr,
        residual: tuple[str, ...] = (),
    ) -> None:
        """Add `times` a step that takes a call, and each byte by grade of the size."""
        each = self.stated(*path, "call_us")
        where = ".".join(path)
        pieces = grades(self.machine, *path, "pieces") if size != ZERO else ()
        if size != ZERO and not pieces:
            self.absent[f"{where}.pieces"] = None
        for number, piece in enumerate(pieces):
            rate = self.stated(
                *path, "pieces", number, "us_per_byte", name=f"{where}.piece{number + 1}"
            )
            each = each + piece.part(size) * rate
        self.add(label, times * each * (self.factor(*residual) if residual else ONE))

    def charge_staging(self, times: Expr, region: Region) -> None:
        """Add `times` the copies to and from a buffer, without the message between them."""
        if is_graded(self.machine.section(*SECTION)) and not self._states_no_line():
            self._charge_graded(times, region, only="staging")

    def lines(self, region: Region) -> Expr:
        """Return the lines that a region touches, `lines.slack` of the way between bounds."""
        if self._states_no_line():
            self.absent["hardware.cache_line_bytes"] = None
            return ZERO
        lower, upper = region_line_bounds(region, self.machine.cache_line_bytes)
        if lower == upper:
            return lower
        self.coefficients[SLACK] = SLACK_QUANTITY
        return lower + sym(SLACK) * (upper - lower)

    def within(
        self, size: Expr, section: str, what: str, label: str = "", happens: Expr = ONE
    ) -> None:
        """Note that `size` should, where it happens, lie in the range that a section states."""
        calibrated = interval_of(self.machine, section, "range", what)
        if calibrated is not None:
            inside = conditional(happens, size, calibrated[0])
            self.domains.append(Domain(label or what.replace("_", " "), inside, *calibrated))

    def total(self) -> Priced | Missing:
        """Return the sum of all terms, or what the profile lacks for it."""
        if self.absent:
            return lacking(self.machine, ", ".join(self.absent))
        total = sum((term.microseconds for term in self.terms), ZERO)
        return Priced(total, tuple(self.terms), self.coefficients, tuple(self.domains))

    def _states_no_line(self) -> bool:
        places = ("hardware", MODEL)
        return all(self.machine.quantity(place, "cache_line_bytes") is None for place in places)

    def _charge_graded(self, times: Expr, region: Region, only: str = "") -> None:
        """Add messages priced by grades, amounts of one label as one term."""
        if self._states_no_line():
            self.absent["hardware.cache_line_bytes"] = None
            return
        together: dict[str, Expr] = {}
        for amount in amounts(region, scale_in(self.machine)):
            if amount.units != ZERO and only in ("", amount.place[0]):
                each = amount.units * self.stated(*SECTION, *amount.place)
                together[amount.label] = together.get(amount.label, ZERO) + each
        residual = self.factor(*SECTION, "residual")
        for label, each in together.items():
            self.add(label, times * each * residual)


def _without_unit(key: str) -> str:
    for suffix in _UNIT_SUFFIXES:
        if key.endswith(suffix):
            return key.removesuffix(suffix)
    return key
