"""No test here knows the host that it runs on: it is given one that is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from costdb.calibration import section
from costdb.calibration.section import Host
from tests.costdb.hosts import EPYC, HOSTS


@pytest.fixture(params=HOSTS.values(), ids=HOSTS.keys())
def host(request: pytest.FixtureRequest) -> Host:
    """Return each of the hosts that results must not depend on."""
    found: Host = request.param
    return found


@pytest.fixture(autouse=True)
def _no_host_but_made_up_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def given(folder: Path, processor: Path) -> Host:
        return EPYC

    monkeypatch.setattr(section, "read_host", given)
