"""No test sees the machines of whoever runs the suite: a calibrated one would be the default."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _no_machines_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("ADVISE_DATA_DIR")
    os.environ["ADVISE_DATA_DIR"] = str(tmp_path_factory.mktemp("data"))
    yield
    if before is None:
        del os.environ["ADVISE_DATA_DIR"]
    else:
        os.environ["ADVISE_DATA_DIR"] = before
