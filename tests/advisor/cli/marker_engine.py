"""An engine whose findings are words in the text, to test the command line on its own.

``SLOW`` becomes ``FAST`` safely and ``RISKY`` becomes ``CALM`` unsafely; a number behind them is
the gain. ``MANUAL`` has no fix, ``OVERLAP`` a broken one, ``SPOILS`` one that ends in a file
that does not parse, ``PING`` and ``PONG`` undo each other. ``UNPARSED`` is a syntax error.
Run as a program, this is ``advise`` with that engine.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module

from advisor import engine
from advisor.engine import FileResult, Options
from advisor.finding import Applicability, Coverage, Finding, Fix, Remark, Verdict
from advisor.source import Edit, SourceProblem, Span, split_lines
from tests.advisor.report.report_samples import SHIFTS

_WORD = re.compile(r"\b(SLOW|RISKY|MANUAL|OVERLAP|SPOILS|PING|PONG)([0-9]*)\b")
_NEW = {
    "SLOW": "FAST",
    "RISKY": "CALM",
    "SPOILS": "UNPARSED",
    "PING": "PONG",
    "PONG": "PING",
    "OVERLAP": "",
}


def needs_reading(source: str, path: str | None = None) -> bool:
    return "kernel" in source


def needs_decoding(data: bytes, path: str) -> bool:
    return b"kernel" in data


def check_source(path: str, source: str, options: Options) -> FileResult:
    findings = []
    remarks = []
    for number, line in enumerate(split_lines(source), start=1):
        if (column := line.find("UNPARSED")) >= 0:
            raise SourceProblem(path, number, column, "invalid syntax")
        if (column := line.find("UNKNOWN")) >= 0:
            span = Span(number, column, number, column + len("UNKNOWN"))
            remarks.append(Remark(path, "kernel", span, "not understood"))
        if "CRASH" in line:
            raise ZeroDivisionError("a bug of the engine")
        for found in _WORD.finditer(line):
            span = Span(number, found.start(), number, found.end())
            finding = _finding(path, found[1], float(found[2] or 2), span, options.machine)
            gain = finding.prediction
            if options.reports(finding.code, gain.speedup):
                findings.append(finding)
    coverage = Coverage(("kernel",), () if findings else ("kernel",))
    return FileResult(path, source, tuple(findings), tuple(remarks), coverage=coverage)


def _finding(path: str, word: str, gain: float, span: Span, machine: str | None) -> Finding:
    fix = None
    if word in _NEW:
        kind = Applicability.UNSAFE if word == "RISKY" else Applicability.SAFE
        edit = Edit(span, _NEW[word])
        fix = Fix(kind, "by decree", (edit, edit) if word == "OVERLAP" else (edit,))
    return replace(
        SHIFTS,
        path=path,
        span=span,
        message=f"{gain:g}x faster: avoid {word}",
        prediction=replace(SHIFTS.prediction, before_s=gain, after_s=1.0, speedup=gain, low=gain),
        priced_as=f"as 16 ranks of {machine}",
        verdict=Verdict.GAIN,
        saves_s=gain - 1,
        share=1 - 1 / gain,
        fix=fix,
        fingerprint=word,
    )


def install() -> None:
    engine.check_source = check_source
    engine.needs_reading = needs_reading
    engine.needs_decoding = needs_decoding


if __name__ == "__main__":
    install()
    import_module("advisor.cli.app").run()
