"""What a measured piece depends on beside its text: libraries, processor, threads."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from costdb.calibration.hardware import this_host
from costdb.launch.processes import THREADS


def circumstances() -> tuple[str, ...]:
    """Return it in words, in a fixed order."""
    host = this_host()
    return (
        f"python {platform.python_version()}",
        *(f"{library} {_version(library)}" for library in ("numpy", "scipy")),
        f"{host.processor}, {host.cores} cores",
        *(f"{name}={os.environ[name]}" for name in sorted(THREADS) if name in os.environ),
    )


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
