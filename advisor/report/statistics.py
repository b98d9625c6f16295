"""How often each rule fired, and what it would save."""

from __future__ import annotations

import json
from collections import defaultdict

from advisor.finding import Finding
from advisor.report.model import Report, fix_mark
from advisor.report.units import duration, ratio

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
        f"{row['fixable']} fixable, saves {duration(float(row['saved_s']))}, "
        f"best {ratio(float(row['best_speedup']))}\n"
        for row in rows
    )


def _row(code: str, findings: list[Finding]) -> dict[str, str | int | float]:
    return {
        "code": code,
        "name": findings[0].name,
        "count": len(findings),
        "fixable": sum(bool(fix_mark(finding)) for finding in findings),
        "saved_s": sum(f.prediction.before_s - f.prediction.after_s for f in findings),
        "best_speedup": max(finding.prediction.speedup for finding in findings),
    }
