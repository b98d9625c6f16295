"""Times predicted for kernels of the examples, laid out otherwise by changing their annotations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from advisor.analysis.lower import Unpriced
from advisor.ir.concrete import at_sizes
from advisor.ir.kernel import Kernel
from advisor.ranking.compare import Costed, cost
from costdb.estimate import Missing
from costdb.machines import Machine
from costdb.validation.results import CannotValidateError

Sizes = Mapping[str, int | float]
Changes = tuple[tuple[str, str], ...]


def kernel_of(path: Path, name: str, changes: Changes = ()) -> tuple[Kernel, str]:
    """Return a kernel of a file whose text was changed, and that text.

    Raises
    ------
    CannotValidateError
        The file is not the one that the changes were made for.
    """
    from advisor.frontend.kernels import read_kernels

    source = path.read_text("utf-8")
    for old, new in changes:
        if old not in source:
            raise CannotValidateError(f"{path}: expected {old!r} in it: another version?")
        source = source.replace(old, new)
    for kernel in read_kernels(str(path), source):
        if kernel.name == name:
            return kernel, source
    raise CannotValidateError(f"{path}: has no kernel {name}")


def costed(kernel: Kernel, sizes: Sizes, machine: Machine) -> Costed:
    """Return the price of a kernel at some sizes.

    Raises
    ------
    CannotValidateError
        The profile lacks what it needs.
    """
    try:
        found = cost(at_sizes(kernel, sizes), machine)
    except Unpriced as unpriced:
        raise CannotValidateError(f"{kernel.name}: {unpriced.reason}") from unpriced
    if isinstance(found, Missing):
        raise CannotValidateError(f"{kernel.name}: {found.what}; {found.remedy}")
    return found
