"""From the files of a command line to what is to be predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from advisor.cli.common import CommandError, choose_machine, system_error, wrong_use
from advisor.source import SourceProblem
from costdb.estimate import Missing
from costdb.machines import Machine, MachineError, load_machine
from costdb.store.place import StoreError
from costdb.subject import PlacedError, Subject, SubjectError

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


def lacking(missing: Missing) -> CommandError:
    """Return the answer that something cannot be priced: what is missing, and how to get it."""
    return wrong_use(f"cannot predict: {missing.what}; remedy: {missing.remedy}")


@contextmanager
def problems_in_one_line() -> Iterator[None]:
    """Turn everything that can be wrong with files, choices and machines into its one line.

    Raises
    ------
    CommandError
        Which is that line.
    """
    try:
        yield
    except (SourceProblem, PlacedError) as problem:
        raise CommandError(str(problem)) from problem
    except (SubjectError, MachineError, StoreError) as error:
        raise wrong_use(str(error)) from error


def open_files(files: Sequence[str], machine: str | None, kernel: str | None) -> Opened:
    """Return what `files` hold: a process model, a description, or an annotated kernel.

    Raises
    ------
    CommandError
        One line that says what is wrong with them, or which option is missing.
    SubjectError, SourceProblem, MachineError, StoreError
        See :func:`problems_in_one_line`.
    """
    endings = {Path(file).suffix for file in files}
    if kernel is not None and endings != {KERNEL}:
        raise wrong_use("--kernel is for Python files")
    if endings == {MODEL}:
        return _open_model(files)
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
        from advisor.ranking.subject import kernel_subject, load_kernel

        try:
            found = load_kernel(files[0], kernel)
        except OSError as error:
            raise system_error(error, files[0]) from error
        return Opened(kernel_subject(files[0], found, chosen), chosen)
    raise wrong_use(
        f"{files[0]}: expected a process model ({MODEL}), a description ({DESCRIPTION}) or "
        f"annotated Python ({KERNEL})"
    )


def _machine_for(file: str, name: str | None) -> Machine:
    """Return the machine called `name`, or the one that the configuration near `file` names."""
    if not name:
        from advisor.config.find import configurations
        from advisor.config.layer import ConfigError, Layer

        try:
            name = configurations(Layer()).of_file(file).machine
        except ConfigError as error:
            raise CommandError(str(error)) from error
    return load_machine(choose_machine(name))


def _open_model(files: Sequence[str]) -> Opened:
    from costdb.process.subject import load_process

    return Opened(load_process([Path(file) for file in files]))


def formula_of(opened: Opened) -> str | None:
    """Return the closed form in seconds over the parameters, where no machine is needed."""
    if opened.machine is not None:
        return None
    from costdb.process.subject import ProcessSubject

    return opened.subject.formula() if isinstance(opened.subject, ProcessSubject) else None
