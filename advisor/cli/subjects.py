"""From the files of a command line to what is to be predicted."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from advisor.cli.common import SIZES_VARIABLE, complain, parse_bindings, read_text, split_binding
from advisor.config.files import CommandError, Settings, choose_machine, wrong_use
from advisor.observed import Observations
from advisor.source import SourceProblem
from costdb.choosing import Chosen, Subject
from costdb.evaluate import Missing
from costdb.machines import Machine, load_machine
from costdb.records import DOTTED_NAME, dataclass, read_number, replace

if TYPE_CHECKING:
    from advisor.ir.kernel import Kernel
    from advisor.ranking.subjects import KernelSubject, ProgramSubject
    from costdb.choosing import Known
    from costdb.expr import Expr


MACHINE = "machine"
"""What ``--over`` calls machines to choose among."""

MODEL, DESCRIPTION, KERNEL = ".pam", ".toml", ".py"


@dataclass(frozen=True, slots=True)
class Opened:
    """What the files hold, and on which machine it is to run; a process model needs none."""

    subject: Subject
    machine: Machine | None = None

    @property
    def title(self) -> str:
        """What is predicted, for the heading of a report."""
        place = f" on {self.machine.name}" if self.machine is not None else ""
        return f"{self.subject.origin}{place}"


def as_built(opened: Opened) -> Opened:
    """Return a kernel with the price of the program that it is built as.

    Raises
    ------
    CommandError
        It is no kernel, or is not built.
    """
    from advisor.analysis.lower import Unpriced
    from advisor.build.text import NotBuiltError
    from advisor.ranking.built import built_cost
    from advisor.ranking.subjects import KernelSubject

    subject, machine = opened.subject, opened.machine
    if machine is None or not isinstance(subject, KernelSubject):
        raise wrong_use("--built: expected one annotated kernel, and one machine")
    try:
        costed = built_cost(subject.kernel, machine)
    except NotBuiltError as error:
        line = error.span.start_line if error.span else subject.kernel.span.start_line
        raise wrong_use(f"{subject.path}:{line}: not built: {error.why}") from error
    except Unpriced as error:
        raise wrong_use(f"{subject.path}: no price for what is built: {error.reason}") from error
    return replace(opened, subject=replace(subject, costed=costed))


def lacking(missing: Missing) -> CommandError:
    """Return the answer that something cannot be priced: what is missing, and how to get it."""
    return wrong_use(f"cannot predict: {missing.what}; remedy: {missing.remedy}")


def open_files(
    files: Sequence[str],
    machine: str | None,
    kernel: str | None,
    given: Mapping[str, str] = MappingProxyType({}),
) -> Opened:
    """Return what `files` hold: a process model, a description, or an annotated kernel.

    Raises
    ------
    CommandError
        One line that says what is wrong with them, or which option is missing.
    SubjectError, SourceProblem, MachineError, StoreError
        Likewise.
    """
    endings = {Path(file).suffix for file in files}
    if kernel is not None and endings != {KERNEL}:
        raise wrong_use("--kernel is for Python files")
    if endings == {MODEL}:
        from costdb.process.model import ProcessSubject, load_model

        return Opened(ProcessSubject(load_model(list(map(Path, files)))))
    if endings == {KERNEL} and (len(files) > 1 or "," in (kernel or "")):
        return _open_alternatives(files, machine, kernel, numbers_of(given))
    if len(files) > 1:
        raise wrong_use(f"{' '.join(files)}: several files make one model only if all are {MODEL}")
    if endings == {DESCRIPTION}:
        from costdb.documents import load_description

        description = load_description(files[0])
        chosen = _machine_for(files[0], machine)
        return Opened(description.on(chosen), chosen)
    if endings == {KERNEL}:
        # A wrong profile need not wait for the parser of Python to be imported.
        chosen = _machine_for(files[0], machine)
        return _open_python(files[0], kernel, chosen, numbers_of(given))
    raise wrong_use(
        f"{files[0]}: expected a process model ({MODEL}), a description ({DESCRIPTION}) or "
        f"annotated Python ({KERNEL})"
    )


def open_on(
    machines: Sequence[Chosen],
    files: Sequence[str],
    machine: str | None,
    kernel: str | None,
    given: Mapping[str, str],
) -> Opened:
    """Return what `files` hold on each of several machines, to be chosen among, or on one.

    Raises
    ------
    CommandError
        As :func:`open_files`.
    """
    from advisor.ranking.subjects import AlternativesSubject

    if not machines:
        return open_files(files, machine, kernel, given)
    opened = {name: open_files(files, name, kernel, given) for name in map(str, machines)}
    return Opened(AlternativesSubject({n: one.subject for n, one in opened.items()}, MACHINE))


def numbers_of(given: Mapping[str, str]) -> Mapping[str, int | float]:
    """Return what is given as a number; words are for descriptions."""
    read = {name: read_number(text) for name, text in given.items()}
    return {name: value for name, value in read.items() if value is not None}


def _open_python(
    path: str, name: str | None, machine: Machine, given: Mapping[str, int | float]
) -> Opened:
    """Return a kernel of a file, or a function of the SPMD program that it holds."""
    from advisor.frontend.prefilter import may_hold_kernels
    from advisor.frontend.trees import deep_nesting_refused
    from advisor.ranking.subjects import kernel_subject, load_function, load_kernel

    source = read_text(path)
    runs = Observations(complain)
    with deep_nesting_refused(path):
        observed = runs.of_file(path)
        if observed or may_hold_kernels(source):
            from advisor.frontend.kernels import read_kernels

            kernels = {kernel.name for kernel in read_kernels(path, source, observed)}
            if kernels and (name is None or name in kernels):
                found = load_kernel(path, name, observed)
                return Opened(kernel_subject(path, found, machine), machine)
        loaded = load_function(path, source, name, machine, runs.messages_of_file(path))
    if loaded is None:
        # says what is lacking
        found = load_kernel(path, name, given=given)
        return Opened(kernel_subject(path, found, machine), machine)
    return Opened(loaded, machine)


def kernels_in(
    path: str, source: str, name: str | None, given: Mapping[str, int | float]
) -> Iterator[tuple[Kernel, Mapping[str, int | float]]]:
    """Yield the kernels of a file, or the one called so, with the sizes that they run at here.

    Raises
    ------
    SourceProblem
        The file does not parse, or a size cannot be what it is given as.
    """
    from advisor.frontend.kernels import read_kernels
    from advisor.ranking.compare import checked_sizes
    from advisor.ranking.subjects import heaviest

    bound = {**settings_of(path).sizes, **given}
    for kernel in read_kernels(path, source, heaviest(Observations(complain).of_file(path))):
        if name in (None, kernel.name):
            yield kernel, checked_sizes(path, kernel, bound).values


def _open_alternatives(
    files: Sequence[str],
    machine: str | None,
    names: str | None,
    given: Mapping[str, int | float],
) -> Opened:
    """Return several kernels or functions that do the same job, to be chosen among."""
    from advisor.ranking.subjects import AlternativesSubject

    chosen = _machine_for(files[0], machine)
    subjects: dict[str, Subject] = {}
    for file in files:
        for name in [None] if names is None else names.split(","):
            opened = _open_python(file, name, chosen, given)
            key = file if name is None else name if len(files) == 1 else f"{file}:{name}"
            subjects[key] = opened.subject
    return Opened(AlternativesSubject(subjects), chosen)


def read_in(opened: Opened) -> KernelSubject | ProgramSubject | None:
    """Return a kernel or function of a Python file, which tells more than others do."""
    from advisor.ranking.subjects import KernelSubject, ProgramSubject

    subject = opened.subject
    return subject if isinstance(subject, ProgramSubject | KernelSubject) else None


@contextmanager
def measurements(opened: Opened, *, run: bool) -> Iterator[Known]:
    """Give what was measured of choices; where `run`, measure what was not, and tell what cannot.

    Raises
    ------
    CommandError
        Something is to run, and this is not the machine.
    """
    from costdb.choosing import nothing_known

    here = opened.machine is not None and opened.machine.may_be_here
    if run and not here:
        where = opened.machine.name if opened.machine is not None else "no machine"
        raise wrong_use(f"--measure times what runs here, and this is asked of {where}")
    if opened.machine is None or not here:
        yield nothing_known
        return
    from advisor.cli.common import Bar
    from advisor.measure.pieces import Effort
    from advisor.measure.predicted import Measurements

    bar = Bar()
    found = Measurements(
        opened.subject, opened.machine, Effort() if run else None, lambda what: bar.show(what, 0.5)
    )
    try:
        yield found
    except SourceProblem as problem:
        if run:
            raise
        place = problem.path, problem.line, problem.column
        raise SourceProblem(*place, f"{problem.message}; --measure times it here") from problem
    finally:
        bar.clear()
    for why in found.refused if run else ():
        complain(f"advise: {why}")


def with_configured(
    opened: Opened, file: str, given: Mapping[str, str], chosen: Iterable[str] = ()
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return what is given and what is configured for a Python file, and what bound the latter.

    Parameters
    ----------
    opened : Opened
    file : str
    given : mapping of str to str
        What options say; it goes over the configuration.
    chosen : iterable of str
        Parameters that are still to be chosen, and so bound by nobody.
    """
    if Path(file).suffix != KERNEL:
        return given, ()
    settings = settings_of(file)
    names = [
        name
        for name in opened.subject.names
        if name in settings.sizes and name not in {*given, *chosen}
    ]
    return (
        {**{name: repr(settings.sizes[name]) for name in names}, **given},
        tuple(f"{n} = {settings.sizes[n]:g}: {settings.size_origins[n]}" for n in names),
    )


def settings_of(file: str) -> Settings:
    """Return what the configuration near a file and ``ADVISE_DEFINE`` say.

    Raises
    ------
    CommandError
        One of them is wrong.
    """
    from advisor.config.files import Layer, configurations

    environment = Layer(sizes=parse_bindings(os.environ.get(SIZES_VARIABLE, "").split()))
    return configurations(environment).of_file(file)


def _machine_for(file: str, name: str | None) -> Machine:
    """Return the machine called `name`, or the one that the configuration near `file` names."""
    return load_machine(choose_machine(name or settings_of(file).machine))


def formula_of(opened: Opened) -> str | None:
    """Return the closed form in seconds over the parameters, where no machine is needed."""
    if opened.machine is not None:
        return None
    from costdb.process.model import ProcessSubject

    return opened.subject.formula() if isinstance(opened.subject, ProcessSubject) else None


# What ``-D``, ``--over`` and ``--where`` say.

_NAME = re.compile(DOTTED_NAME)
_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})")


def parse_given(definitions: Iterable[str], ranks: int | None) -> Mapping[str, str]:
    """Return what ``-D NAME=VALUE`` options and ``-P`` say; the last one of a name holds.

    A value is a number or a word; what it is for decides.
    """
    given = dict(map(split_binding, definitions))
    return given if ranks is None else {**given, "P": str(ranks)}


def parse_over(texts: Iterable[str]) -> Mapping[str, tuple[Chosen, ...] | None]:
    """Return what ``--over`` options say: ``NAME``, ``NAME=a,b,c`` and ``NAME=a..b``, by commas.

    A name without values stands for all that are allowed (None). Values go on until the next
    ``NAME=``.

    Raises
    ------
    CommandError
        Malformed, a name twice, or too long a range.
    """
    over: dict[str, tuple[Chosen, ...] | None] = {}
    for text in texts:
        listing = ""
        for piece in text.split(","):
            name, equals, rest = (part.strip() for part in piece.partition("="))
            value = piece.strip()
            if equals or not listing:
                if not _NAME.fullmatch(name):
                    raise wrong_use(
                        f"--over {text}: expected NAME, NAME=a,b,c or NAME=a..b, by commas"
                    )
                if name in over:
                    raise wrong_use(f"--over {text}: {name} is named twice")
                over[name] = () if equals else None
                listing, value = (name, rest) if equals else ("", "")
            if listing:
                over[listing] = (*(over[listing] or ()), *_values(value, text))
    return {name: tuple(dict.fromkeys(v)) if v else v for name, v in over.items()}


def _values(value: str, text: str) -> Iterable[Chosen]:
    # a lint run has no use for it
    from costdb.choosing import MOST_CANDIDATES

    ends = _RANGE.fullmatch(value)
    if ends is not None:
        low, high = int(ends[1]), int(ends[2])
        if high < low:
            raise wrong_use(f"--over {text}: the range {value} is empty")
        if high - low >= MOST_CANDIDATES:
            raise wrong_use(f"--over {text}: {value} is more than {MOST_CANDIDATES} values")
        return range(low, high + 1)
    if not value:
        raise wrong_use(f"--over {text}: a value is missing")
    number = read_number(value)
    if number is None:
        return (value,)
    if not math.isfinite(number):
        raise wrong_use(f"--over {text}: {value} is too large")
    return (number,)


def parse_where(text: str | None) -> Expr | None:
    """Return the condition that ``--where`` states.

    Raises
    ------
    CommandError
        It is no expression of the cost language.
    """
    if text is None:
        return None
    from costdb.expr import ExprError, parse

    try:
        return parse(text)
    except ExprError as error:
        raise wrong_use(f"--where: {error}") from error
