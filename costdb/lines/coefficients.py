"""The lines model's numbers in a machine profile, as symbols of a price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from costdb.estimate import Domain, Missing, Priced, Term
from costdb.expr import (
    ONE,
    Expr,
    conditional,
    less,
    less_equal,
    num,
    sym,
)
from costdb.lines.symbolic import by_pitch, magnitude, region_line_bounds
from costdb.machines import Json, Machine, MachineError
from costdb.profile_parts import Grade, grades, grades_of, interval_of, lacking
from costdb.quantity import Provenance, Quantity
from costdb.records import dataclass, field, replace
from costdb.work import Region


@dataclass(frozen=True, slots=True)
class Marshalling:
    """The copies between a region and a contiguous buffer, on either side of a message.

    Attributes
    ----------
    staged : Expr
        1 where there are any: the region is more than one run.
    loops : Expr
        Inner loops of one copy.
    strided : Expr
        Elements that are copied one by one, at a stride.
    bytes : Expr
        Of all elements.
    lines : Expr
        Touched, the mean of their bounds where the start is unknown.
    """

    staged: Expr
    loops: Expr
    strided: Expr
    bytes: Expr
    lines: Expr


def elements_of(region: Region) -> Expr:
    """Return the number of elements of a region."""
    elements = num(1)
    for count in region.counts:
        elements = elements * count
    return elements


def bytes_of(region: Region) -> Expr:
    """Return the bytes of a region's elements, without what lies between them."""
    return elements_of(region) * region.itemsize_bytes


def marshalling_of(region: Region, line_bytes: int) -> Marshalling:
    """Return what staging a region takes.

    Where the structure of sizes does not show that a dimension goes on where the one inside it
    ends, it is taken not to.
    """
    run, outer = _run(region)
    runs = ONE
    for count, _ in outer:
        runs = runs * count
    single = less_equal(run, region.itemsize_bytes)
    inner = outer[0][0] if outer else ONE
    lower, upper = region_line_bounds(region, line_bytes)
    return Marshalling(
        staged=less(1, runs),
        loops=conditional(single, _product(outer[1:]), runs),
        strided=conditional(single, _product(outer[1:]) * inner, 0),
        bytes=bytes_of(region),
        lines=(lower + upper) / 2,
    )


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


def _product(dimensions: list[tuple[Expr, Expr]]) -> Expr:
    product = ONE
    for count, _ in dimensions:
        product = product * count
    return product


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

    @property
    def name(self) -> str:
        """The place as a name, its numbers as pieces counted from 1."""
        return ".".join(f"piece{key + 1}" if isinstance(key, int) else key for key in self.place)


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
    """Yield what one message that carries `region` takes of each coefficient."""
    size = bytes_of(region)
    yield Amount("start-up", ("alpha_us",), ONE)
    for number, above in enumerate(by.protocols):
        yield Amount("start-up", ("protocols", number, "extra_us"), less(above, size))
    for number, grade in enumerate(by.bytes):
        yield Amount("bytes", ("bytes", number, "beta_us_per_byte"), grade.part(size))
    copies = marshalling_of(region, by.line_bytes)
    staged = copies.staged
    yield Amount("staging", ("staging", "call_us"), staged)
    yield Amount("staging", ("staging", "loop_us"), staged * copies.loops)
    yield Amount("staging", ("staging", "element_us"), staged * copies.strided)
    yield Amount("staging", ("staging", "copy_us_per_byte"), staged * copies.bytes)
    for number, grade in enumerate(by.lines):
        units = staged * (grade.part(copies.lines * by.line_bytes) / by.line_bytes)
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
SLACK_QUANTITY = Quantity(
    0.5,
    0.0,
    1.0,
    "1",
    Provenance.DERIVED,
    "where between its bounds the number of lines lies: their mean, as the published model takes",
)

_UNIT_SUFFIXES = ("_us_per_byte", "_us_per_line", "_us_per_operation", "_us")


@dataclass(slots=True)
class Bill:
    """A price under construction: its terms, the coefficients they use, what was lacking.

    Attributes
    ----------
    machine : Machine
        Where coefficients come from.
    terms : list of Term
        Named parts so far.
    coefficients : dict of str to Quantity
        Numbers used so far, by symbol.
    absent : list of str
        Places in the profile that were asked for and hold nothing.
    domains : list of Domain
        Ranges that the calibration covered.
    model : str
        What terms of measured steps are told to be of.
    """

    machine: Machine
    terms: list[Term] = field(default_factory=list)
    coefficients: dict[str, Quantity] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    domains: list[Domain] = field(default_factory=list)
    model: str = MODEL

    def charge(self, label: str, section: str, key: str, amount: Expr) -> None:
        """Add `amount` times the coefficient ``lines.<section>.<key>`` as a term."""
        if amount == num(0):
            return
        residual = self._residual(section)
        self.terms.append(Term(label, MODEL, amount * self.coefficient(section, key) * residual))

    def charge_messages(self, times: Expr, region: Region) -> None:
        """Add `times` messages that carry a region: start-up, bytes and lines."""
        if times == num(0):
            return
        size = bytes_of(region)
        # Nothing is sent where there is nobody to send to, so nothing is out of range there.
        sent = conditional(less_equal(1, times), size, self._lowest("message_bytes"))
        self.within("message_bytes", sent)
        if is_graded(self.machine.section(MODEL, "message")):
            self._charge_graded(times, region)
            return
        for label, key, amount in (
            ("start-up", "alpha_us", num(1)),
            ("bytes", "beta_us_per_byte", size),
            ("lines", "gamma_us_per_line", self.lines(region)),
        ):
            each = amount * self.coefficient("message", key) * self._residual("message")
            if each != num(0):
                self.terms.append(Term(label, MODEL, times * each))

    def charge_step(
        self,
        label: str,
        times: Expr,
        path: tuple[str, ...],
        size: Expr,
        residual: tuple[str, ...] = (),
    ) -> None:
        """Add `times` a step that takes a call, and each byte by grade of the size."""
        each = self._stated(self.machine.quantity(*path, "call_us"), *path, "call_us")
        pieces = grades(self.machine, *path, "pieces") if size != num(0) else ()
        if size != num(0) and not pieces:
            self._lacks(".".join((*path, "pieces")))
        for number, piece in enumerate(pieces):
            rate = piece.quantities.get("us_per_byte")
            symbol = self._stated(rate, *path, f"piece{number + 1}")
            each = each + piece.part(size) * symbol
        time = times * each
        if residual and (stated := self.machine.quantity(*residual)) is not None:
            time = time * self._stated(stated, *residual)
        if time != num(0):
            self.terms.append(Term(label, self.model, time))

    def _stated(self, quantity: Quantity | None, *path: str) -> Expr:
        """Return the symbol of what stands at a path, and note it, or that it is absent."""
        symbol = _without_unit(".".join(path))
        if quantity is None:
            self._lacks(".".join(path))
            return num(0)
        self.coefficients[symbol] = quantity
        return sym(symbol)

    def charge_staging(self, times: Expr, region: Region) -> None:
        """Add `times` the copies to and from a buffer, without the message between them."""
        if is_graded(self.machine.section(MODEL, "message")) and not self._states_no_line():
            self._charge_graded(times, region, only="staging")

    def charge_each(self, label: str, amount: Expr, *path: str) -> None:
        """Add `amount` times the coefficient that the profile states at a path."""
        if amount == num(0):
            return
        time = amount * self._stated(self.machine.quantity(*path), *path)
        if time != num(0):
            self.terms.append(Term(label, self.model, time))

    def correct_by(self, *path: str) -> None:
        """Multiply all terms so far by the factor at a path, where the profile states one."""
        stated = self.machine.quantity(*path)
        if stated is not None:
            self.correct(".".join(path), stated)

    def correct(self, symbol: str, factor: Quantity) -> None:
        """Multiply all terms so far by a factor, say of what is derived from something else."""
        self.coefficients[symbol] = factor
        self.terms = [
            replace(term, microseconds=term.microseconds * sym(symbol)) for term in self.terms
        ]

    def lines(self, region: Region) -> Expr:
        """Return the lines that a region touches, `lines.slack` of the way between bounds."""
        if self._states_no_line():
            self._lacks("hardware.cache_line_bytes")
            return num(0)
        lower, upper = region_line_bounds(region, self.machine.cache_line_bytes)
        if lower == upper:
            return lower
        self.coefficients[SLACK] = SLACK_QUANTITY
        return lower + sym(SLACK) * (upper - lower)

    def coefficient(self, section: str, key: str) -> Expr:
        """Return the symbol of a coefficient, and note its quantity or its absence."""
        quantity = self.machine.quantity(MODEL, section, key)
        symbol = f"{MODEL}.{section}.{_without_unit(key)}"
        if quantity is None:
            self._lacks(f"{MODEL}.{section}.{key}")
        else:
            self.coefficients[symbol] = quantity
        return sym(symbol)

    def within(self, what: str, size: Expr) -> None:
        """Note that `size` should lie in the range that the profile states for `what`."""
        calibrated = self._range(what)
        if calibrated is not None:
            self.domains.append(Domain(what.replace("_", " "), size, *calibrated))

    def within_section(self, section: str, what: str, size: Expr, label: str) -> None:
        """Note that `size`, where above 0, should lie in the range stated in another section."""
        calibrated = interval_of(self.machine, section, "range", what)
        if calibrated is not None:
            inside = conditional(less(0, size), size, calibrated[0])
            self.domains.append(Domain(label, inside, *calibrated))

    def total(self) -> Priced | Missing:
        """Return the sum of all terms, or what the profile lacks for it."""
        if self.absent:
            return lacking(self.machine, ", ".join(self.absent))
        total = sum((term.microseconds for term in self.terms), num(0))
        return Priced(total, tuple(self.terms), self.coefficients, tuple(self.domains))

    def _states_no_line(self) -> bool:
        places = ("hardware", MODEL)
        return all(self.machine.quantity(place, "cache_line_bytes") is None for place in places)

    def _lacks(self, place: str) -> None:
        if place not in self.absent:
            self.absent.append(place)

    def _residual(self, section: str) -> Expr:
        """Return the factor whose interval holds the calibration's residuals, if it has one."""
        if self.machine.quantity(MODEL, section, "residual") is None:
            return num(1)
        return self.coefficient(section, "residual")

    def _charge_graded(self, times: Expr, region: Region, only: str = "") -> None:
        """Add messages priced by grades, amounts of one label as one term."""
        if self._states_no_line():
            self._lacks("hardware.cache_line_bytes")
            return
        together: dict[str, Expr] = {}
        for amount in amounts(region, scale_in(self.machine)):
            if amount.units == num(0) or (only and amount.place[0] != only):
                continue
            quantity = self.machine.quantity(*SECTION, *amount.place)
            if quantity is None:
                self._lacks(".".join(map(str, (MODEL, "message", *amount.place))))
                continue
            symbol = _without_unit(f"{MODEL}.message.{amount.name}")
            self.coefficients[symbol] = quantity
            so_far = together.get(amount.label, num(0))
            together[amount.label] = so_far + amount.units * sym(symbol)
        residual = self._residual("message")
        for label, each in together.items():
            self.terms.append(Term(label, MODEL, times * each * residual))

    def _lowest(self, what: str) -> float:
        calibrated = self._range(what)
        return 0.0 if calibrated is None else calibrated[0]

    def _range(self, what: str) -> tuple[float, float] | None:
        return interval_of(self.machine, MODEL, "range", what)


def _without_unit(key: str) -> str:
    for suffix in _UNIT_SUFFIXES:
        if key.endswith(suffix):
            return key.removesuffix(suffix)
    return key
