"""What holds for every test.

None sees the machines of whoever runs the suite: a calibrated one would be the default. None has a
limit of time: how long an example takes says what else the machine is doing. One that waits for
ever is ended all the same, by what `pyproject.toml` says of faults.
"""

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "timeless", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("timeless")


def pytest_collection_finish() -> None:
    """Let the collector pass over what was read before the first test: it all stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(500_000, 20, 50)


def pytest_configure() -> None:
    """Let workers, and processes that tests start, find our modules compiled as libraries are."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # what numba compiles is run once or twice here, and looked at for what it does
    os.environ.setdefault("NUMBA_OPT", "0")


@pytest.fixture(autouse=True, scope="session")
def _no_machines_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("ADVISE_DATA_DIR")
    os.environ["ADVISE_DATA_DIR"] = str(tmp_path_factory.mktemp("data"))
    yield
    if before is None:
        del os.environ["ADVISE_DATA_DIR"]
    else:
        os.environ["ADVISE_DATA_DIR"] = before
