"""Commands that measure do so in short: what they say is tested here, not how exact it is."""

from __future__ import annotations

from functools import partial

import pytest

from advisor.measure import pieces


@pytest.fixture(autouse=True)
def _in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "Effort", partial(pieces.Effort, seconds=0.05, launches=1))
