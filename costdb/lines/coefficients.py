"""The lines model's numbers in a machine profile, as symbols of a price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from costdb.estimate import Domain, Missing, Priced, Term
from costdb.expr import ONE, ZERO, Expr, conditional, less, less_equal, num, sym
from costdb.expr.nodes import multiply
from costdb.lines.symbolic import by_pitch, magnitude, region_line_bounds
from costdb.machines import Json, Machine, MachineError
from costdb.profile_parts import Grade, grades, grades_of, interval_of, lacking
from costdb.quantity import Quantity, anywhere
from costdb.records import dataclass, field, replace
from costdb.work import Region


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
    message = machine.section(*SECTION)
    where = f"{machine.origin}: /{'/'.join(SECTION)}"
    return Scale(
        machine.cache_line_bytes,
        tuple(_protocols(message.get("protocols", []), f"{where}/protocols")),
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


def _protocols(stated: Json, where: str) -> Iterator[float]:
    if not isinstance(stated, list):
        raise MachineError(f"{where}: expected a list")
    for number, protocol in enumerate(stated):
        above = protocol.get("above_bytes") if isinstance(protocol, dict) else None
        if isinstance(above, bool) or not isinstance(above, int | float):
            raise MachineError(f"{where}/{number}/above_bytes: expected a number")
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
