"""What is said and kept of a run that has ended."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from advisor.codec import decode
from advisor.compiler.advice import Advice, advise_on, store
from advisor.observe.messages import Record
from costdb.launch.space import command
from costdb.records import counted
from costdb.store.place import StoreError

# Running a user's program in a process of its own, whose imports are the program's alone.

_BY_SIGNAL = 128


def observe(
    program: str, arguments: Sequence[str], *, module: bool = False
) -> tuple[int, Record | None]:
    """Run a program, and return its exit code, as a shell would give it, and what was seen of it.

    Parameters
    ----------
    program : str
        Path of a file, or the name of a module.
    arguments : sequence of str
    module : bool
        Whether `program` is a module, as after ``python -m``.

    Returns
    -------
    (int, Record or None)
        What was seen on all ranks; None on ranks other than the first, and of a program that was
        killed.

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
    record = None if stated is None else decode(Record, stated)
    return code if code >= 0 else _BY_SIGNAL - code, record


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


def conclude(
    record: Record, program: str, *, machine: str | None, output_format: str, keep: bool
) -> tuple[list[str], str]:
    """Keep a record, and return lines about it and the report.

    Parameters
    ----------
    record : Record
        Of all ranks.
    program : str
        What was run.
    machine : str or None
    output_format : str
        ``"none"`` for no report.
    keep : bool
        Whether it goes into the store.
    """
    lines = [_summary(record, program)]
    if keep:
        try:
            store(record.facts, program, record.messages)
        except StoreError as error:
            lines.append(f"advise: not kept: {error}")
    if not (record.facts or record.messages):
        lines.append(
            f"advise: {program}: no function of its own was called with arrays:"
            f" `advise measure {program}` times its statements"
        )
        return lines, ""
    if output_format == "none":
        return lines, ""
    advice = advise_on(record.facts, machine, record.messages)
    lines += advice.problems
    return lines, _rendered(advice, output_format) if advice.results else ""


def _summary(record: Record, program: str) -> str:
    functions = len({(file, seen.function) for file, seen in record.facts if seen.has_arrays})
    places = len({(file, sent.line) for file, sent in record.messages})
    seen = counted(functions, "function")
    seen += f" and {counted(places, 'place')} with messages" if places else ""
    ranks = f" on {record.ranks} ranks" if record.ranks > 1 else ""
    return f"advise: observed {seen} in a run of {program}{ranks}"


def _rendered(advice: Advice, output_format: str) -> str:
    from advisor.finding import NOTHING_SEEN, Coverage
    from advisor.report.model import Report, renderer
    from advisor.report.style import Style

    report = Report(
        advice.machine,
        advice.findings,
        advice.remarks,
        {result.path: result.source for result in advice.results},
        looked_into=len(advice.results),
        coverage=reduce(Coverage.and_also, (one.coverage for one in advice.results), NOTHING_SEEN),
    )
    return renderer(output_format)(report, Style())
