"""Running a user's program in a process of its own, whose imports are the program's alone."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from advisor.observe.ranks import Record, record_of
from costdb.launch.space import command

_BY_SIGNAL = 128


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes
    ----------
    code : int
        Its exit code, as a shell would have given it.
    record : Record or None
        What was seen on all ranks; None on ranks other than the first, and of a program that was
        killed.
    """

    code: int
    record: Record | None


def observe(program: str, arguments: Sequence[str], *, module: bool = False) -> Ended:
    """Run a program and return what was seen of it.

    Parameters
    ----------
    program : str
        Path of a file, or the name of a module.
    arguments : sequence of str
    module : bool
        Whether `program` is a module, as after ``python -m``.

    Notes
    -----
    The program is executed: that is what was asked for. It has this process's standard streams
    and, under ``mpiexec``, its place among the ranks.
    """
    with TemporaryDirectory() as folder:
        output = Path(folder, "record.json")
        how = "module" if module else "file"
        process = subprocess.Popen(
            command("advisor.observe.inside", str(output), how, program, *arguments),
            # a launcher talks to its ranks through descriptors of theirs
            close_fds=False,
        )
        with _passing_signals_to(process):
            code = process.wait()
        # what a program that was killed leaves is no record
        text = output.read_text("utf-8") if output.is_file() else "null"
        stated = json.loads(text)
    record = None if stated is None else record_of(stated)
    return Ended(code if code >= 0 else _BY_SIGNAL - code, record)


@contextmanager
def _passing_signals_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Let the program decide what an interrupt does, and end it when this process is to end."""

    def wait_on(number: int, frame: FrameType | None) -> None:
        """Do nothing: a terminal interrupts the program as well."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {}
    # only the main thread may say what a signal does
    with suppress(ValueError):
        before[signal.SIGINT] = signal.signal(signal.SIGINT, wait_on)
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
