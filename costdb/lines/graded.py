"""Messages priced by grades: one formula with which a profile is read, and to which it is fitted.

On machines with caches and message protocols one line through all sizes fits none of them. Here
bytes are priced by grade of the message's size (:mod:`costdb.graded`), a protocol adds a step
above the size where it takes over, and where the region is staged (:mod:`costdb.lines.regions`)
the copies cost a call, their loops, their strided elements, their bytes, and the lines touched,
by grade of the bytes that these lines seem to fill. All coefficients are at least 0, so the price
never falls when the message grows.

The formula is a sum of amounts, each with the place of its coefficient in a profile's
``lines.message``: pricing multiplies them by what stands there, a calibration by what it fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from costdb.expr import Expr, less, num
from costdb.graded import Grade, grades, grades_of
from costdb.lines.regions import bytes_of, marshalling_of
from costdb.machines import Json, Machine, MachineError
from costdb.quantity import Quantity
from costdb.work import Region

Place = tuple[str | int, ...]
SECTION = ("lines", "message")
ONE = num(1)


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
    line_bytes, way_bytes : int
        See :func:`costdb.lines.regions.marshalling_of`.
    protocols : tuple of float
        Bytes above which each costs extra.
    bytes, lines : tuple of Grade
        By bytes of the message, and by bytes that the lines seem to fill.
    """

    line_bytes: int
    way_bytes: int
    protocols: tuple[float, ...]
    bytes: tuple[Grade, ...]
    lines: tuple[Grade, ...]


def scale(
    line_bytes: int,
    way_bytes: int,
    protocols: Sequence[float],
    byte_limits: Sequence[float],
    line_limits: Sequence[float],
) -> Scale:
    """Return the scale with these limits; the last grade has none."""
    return Scale(
        line_bytes,
        way_bytes,
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
    way = machine.quantity(*SECTION, "staging", "way_bytes")
    where = f"{machine.origin}: /{'/'.join(SECTION)}"
    if way is None or way.value < 1 or way.value != int(way.value):
        raise MachineError(f"{where}/staging/way_bytes: expected a positive whole number")
    return Scale(
        machine.cache_line_bytes,
        int(way.value),
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
    copies = marshalling_of(region, by.line_bytes, by.way_bytes)
    staged = copies.staged
    yield Amount("staging", ("staging", "call_us"), staged)
    yield Amount("staging", ("staging", "loop_us"), staged * copies.loops)
    yield Amount("staging", ("staging", "element_us"), staged * copies.strided)
    yield Amount("staging", ("staging", "copy_us_per_byte"), staged * copies.bytes)
    # a line in a crowded set takes as much room as several
    each = by.line_bytes * copies.crowding
    for number, grade in enumerate(by.lines):
        units = staged * (grade.part(copies.lines * each) / each)
        yield Amount("lines", ("staging", "lines", number, "gamma_us_per_line"), units)


def coefficient_at(machine: Machine, place: Place) -> Quantity | None:
    """Return the quantity at a place within ``lines.message``, None where there is none.

    Raises
    ------
    MachineError
        Something else is there.
    """
    return machine.quantity_at((*SECTION, *place))


def _protocols(stated: Json, where: str) -> Iterator[float]:
    if not isinstance(stated, list):
        raise MachineError(f"{where}: expected a list")
    for number, protocol in enumerate(stated):
        above = protocol.get("above_bytes") if isinstance(protocol, dict) else None
        if isinstance(above, bool) or not isinstance(above, int | float):
            raise MachineError(f"{where}/{number}/above_bytes: expected a number")
        yield above
