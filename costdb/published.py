"""Figures that the papers print of their own experiments, which a validation lays beside ours.

Those of the shared-memory and of the remote-access experiments are in the profiles of the machines
that they were made on (``powerchallenge``; ``mupc``, ``mupc-cache``, ``bupc``, ``gupc-t3e``). Here
are those of machines whose profile has no place for them. All are copied as printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LINES = "lines paper: ZPL and C+MPI on the Cray T3E, IBM SP-2 and Sun Enterprise 5000"
SMP = "SMP study on the SGI Power Challenge"
UPC = "performance model for UPC"
ALGEBRA = "Modeling Engine of the Timber compiler"

PLATFORMS = ("SP-2 ZPL", "SP-2 C+MPI", "T3E ZPL", "T3E C+MPI", "E5000 ZPL", "E5000 C+MPI")

MESSAGE_R2: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "S1": (3.54, 2.81, 9.05, 10.12, 25.87, 12.02),
        "S2": (3.45, 2.75, 8.89, 9.71, 25.74, 7.45),
        "S3": (3.39, 2.72, 8.85, 9.56, 25.54, 6.02),
        "M1": (0.6, 0.29, 3.29, 2.34, 13.41, 9.6),
        "M2": (0.59, 0.29, 2.87, 2.21, 12.83, 4.24),
        "M3": (0.44, 0.26, 2.87, 2.01, 8.12, 3.76),
    }
)
"""R2 of rows and columns, by model and platform: each platform in a power of ten of its own, which
did not survive, so that only ratios within a platform mean anything."""

ACCEPTED_R2 = 0.01
"""R2, the part that a model leaves unexplained, below which the lines paper accepts it."""

TRAINING_POINTS = 100
"""Points that the lines paper finds enough to fit a model to."""

SCAN_RATIO = 100.0
"""On the T3E the standard model leaves over so many times as much of a scan as the lines model."""

CROSSOVER_B: Mapping[str, int] = MappingProxyType({"T3E": 3, "E5000": 7})
"""Side of the box from which on scans win over shifts; lost in the text for the SP-2."""

SMP_GREATEST_ERROR = 0.07
"""The greatest mean relative error of the chosen functions on suites that they were not fitted to,
for which the study prints 1.4 to 7 %."""

CHOICE_MEAN_ERROR: Mapping[str, float] = MappingProxyType(
    {"MATMUL": 0.05, "ADI": 0.15, "GAUSS": 0.13, "PSRS": 0.12}
)
"""Mean error of predicted run times; the best alternative was predicted in every case."""


def message_ratios(model: str, to: str = "M1") -> tuple[float, float]:
    """Return the least and the greatest R2 of a model over that of another one, by platform."""
    found = [one / other for one, other in zip(MESSAGE_R2[model], MESSAGE_R2[to], strict=True)]
    return min(found), max(found)
