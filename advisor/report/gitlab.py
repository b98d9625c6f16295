"""GitLab's code quality report."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256

from advisor.project import reported_path
from advisor.report.model import Report
from advisor.report.rows import full_message, is_gain
from advisor.report.style import Style


def render(report: Report, style: Style) -> str:
    """Return a JSON list; GitLab drops findings that share a fingerprint, so none do."""
    seen: Counter[str] = Counter()
    issues = []
    for finding in report.findings:
        _, path = reported_path(finding.path)
        identity = f"{path}\n{finding.fingerprint}"
        seen[identity] += 1
        numbered = f"{identity}\n{seen[identity]}".encode("utf-8", "backslashreplace")
        issues.append(
            {
                "check_name": finding.code,
                "description": full_message(finding),
                "severity": "minor" if is_gain(finding) else "info",
                "fingerprint": sha256(numbered).hexdigest(),
                "location": {
                    "path": path,
                    "positions": {
                        "begin": {
                            "line": finding.span.start_line,
                            "column": finding.span.start_column + 1,
                        },
                        "end": {
                            "line": finding.span.end_line,
                            "column": finding.span.end_column + 1,
                        },
                    },
                },
            }
        )
    return json.dumps(issues, indent=2) + "\n"
