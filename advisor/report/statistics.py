"""How often each rule fired, and what it would save."""

from __future__ import annotations

import json
from collections import defaultdict

from advisor.finding import Finding
from advisor.report.model import Report
from advisor.report.rows import fix_mark
from advisor.report.style import duration, ratio

SCHEMA_VERSION = 1


def render(report: Report, *, as_json: bool) -> str:
    """Return one line, or one JSON object, for each rule that fired; the most frequent first."""
    by_code: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        by_code[finding.code].append(finding)
    ordered = sorted(by_code.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [_row(code, findings) for code, findings in ordered]
    if as_json:
        document = {
            "schema_version": SCHEMA_VERSION,
            "machine": report.machine,
            "statistics": rows,
        }
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    width = max((len(str(row["count"])) for row in rows), default=0)
    return "".join(
        f"{row['count']:>{width}}  {row['code']}  {row['name']}: "
        f"{row['fixable']} fixable, {_gain(row)}\n"
        for row in rows
    )


def _gain(row: dict[str, str | int | float]) -> str:
    if not row["best_speedup"]:
        return "gain depends on sizes that nothing binds"
    return f"saves {duration(float(row['saved_s']))}, best {ratio(float(row['best_speedup']))}"


def _row(code: str, findings: list[Finding]) -> dict[str, str | int | float]:
    return {
        "code": code,
        "name": findings[0].name,
        "count": len(findings),
        "fixable": sum(bool(fix_mark(finding)) for finding in findings),
        "saved_s": sum(p.before_s - p.after_s for f in findings if (p := f.prediction)),
        "best_speedup": max(finding.speedup for finding in findings),
    }
