"""What is measured with: libraries, versions, ranks, nodes, and where ranks may run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from costdb.calibration.host.hardware import cores_in_words
from costdb.calibration.section import Need, Section, World

NO_LIBRARY = "none"


@dataclass(frozen=True, slots=True)
class Setting:
    """What holds for a whole launch, as the store keeps it.

    Attributes
    ----------
    library, library_version : str
        MPI, or the thread library, or NumPy alone.
    ranks, nodes : int
    pinning : str
        Which cores the ranks may use.
    """

    library: str
    library_version: str
    ranks: int
    nodes: int
    pinning: str


def setting_of(section: Section, world: World) -> Setting:
    """Return what a launch of `section` measures with; collective over `world`."""
    if world.communicator is not None:
        library, release = mpi_library()
        nodes = len(set(world.communicator.allgather(os.uname().nodename)))
        places = sorted(set(world.communicator.allgather(cores_in_words())))
        return Setting(library, release, world.size, nodes, "; ".join(places))
    if Need.NUMBA in section.needs:
        return Setting("numba", version("numba"), 1, 1, cores_in_words())
    return Setting("numpy", version("numpy"), 1, 1, cores_in_words())


def mpi_library() -> tuple[str, str]:
    """Return name and version of the MPI library, such as ``("MPICH", "4.3.2")``."""
    from mpi4py import MPI

    name, release = MPI.get_vendor()
    return name, ".".join(map(str, release))


@cache
def code_version() -> str:
    """Return the version of the measuring code: the package's, and a digest of the sections."""
    try:
        release = version("kernel-advisor")
    except PackageNotFoundError:
        release = "0"
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return f"{release}+{digest.hexdigest()[:12]}"


def launched_ranks(environment: Mapping[str, str] = os.environ) -> int:
    """Return the size of the world that a launcher started this process in; 1 without one."""
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"):
        if environment.get(name, "").isdecimal():
            return int(environment[name])
    # In a batch script Slurm sets the number of tasks too; only a step has started them.
    if "SLURM_PROCID" in environment and environment.get("SLURM_STEP_ID", "").isdecimal():
        tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")
        return int(tasks) if tasks.isdecimal() else 1
    return 1
