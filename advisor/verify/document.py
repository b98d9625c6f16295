"""A verification as a document; ``verification.schema.json`` of the reports describes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from advisor.verify.cases import Variant
from advisor.verify.program_verdict import ProgramVerdict, program_document
from advisor.verify.running import Measured
from advisor.verify.verdict import Verdict, summary_of

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Whose predictions were verified, and when (UTC, ISO).

    Attributes
    ----------
    machine, calibration, made_at : str
    busy_cores : float or None
        How many cores others kept busy meanwhile; None where the system does not tell.
    cores_shared : float or None
        For which part of the time other guests of the host computed on the same cores.
    """

    machine: str
    calibration: str
    made_at: str
    busy_cores: float | None
    cores_shared: float | None


def document_of(
    groups: Sequence[Sequence[Verdict]],
    programs: Sequence[Sequence[ProgramVerdict]],
    where: Circumstances,
) -> dict[str, Any]:
    """Return the document."""
    summary = summary_of(groups)
    return {
        "schema_version": SCHEMA_VERSION,
        "machine": where.machine,
        "calibration": where.calibration,
        "made_at": where.made_at,
        "others_busy_cores": where.busy_cores,
        "cores_shared": where.cores_shared,
        "summary": None if summary is None else asdict(summary),
        "kernels": [_kernel(group) for group in groups],
        "programs": [program_document(group) for group in programs],
    }


def _kernel(group: Sequence[Verdict]) -> dict[str, Any]:
    case = group[0].case
    return {
        "path": case.path,
        "kernel": case.kernel,
        "sizes": dict(case.sizes),
        "variants": [_variant(one) for one in group],
    }


def _variant(one: Verdict) -> dict[str, Any]:
    return {
        "rule": one.variant.code,
        "title": one.variant.title,
        "predicted": _predicted(one.variant),
        "unknown": one.variant.unknown,
        "measured": _measured(one.measured),
        "failure": one.measured.failure,
        "equal": one.measured.equal,
        "inside": one.inside if one.judged else None,
    }


def _predicted(variant: Variant) -> dict[str, float] | None:
    found = variant.predicted
    if found is None:
        return None
    return {"low_s": found.low, "mid_s": found.mid, "high_s": found.high}


def _measured(measured: Measured) -> dict[str, float] | None:
    if measured.failure:
        return None
    return {"low_s": measured.low_s, "median_s": measured.seconds, "high_s": measured.high_s}
