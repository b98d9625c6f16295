"""What is said of choices whose time hangs on what data masks come from."""

from __future__ import annotations

from advisor.ranking.compare import Compared
from advisor.ranking.findings import _by_masks
from costdb.estimate import Estimate, Ratio, TermEstimate
from costdb.quantity import Provenance
from costdb.work import BY_MASKS


def taking(*terms: TermEstimate) -> Estimate:
    low, mid, high = (sum(getattr(term, end) for term in terms) for end in ("low", "mid", "high"))
    return Estimate(low, mid, high, terms, Provenance.MEASURED, in_range=True)


def test_it_is_said_where_masks_make_the_interval_wide_and_nowhere_else() -> None:
    rest = TermEstimate("copy calls", "arrays", 5.0, 6.0, 9.0)
    wide = TermEstimate(BY_MASKS, "arrays", 1.0, 4.0, 8.0)
    narrow = TermEstimate(BY_MASKS, "arrays", 3.8, 4.0, 4.2)
    (said,) = _by_masks(Compared(taking(rest, wide), taking(rest, narrow), Ratio(1, 1, 1)))
    assert said.startswith("as written, choices by masks take 10% of the time")
    assert "up to 80%" in said
    assert not list(_by_masks(Compared(taking(rest), taking(rest, narrow), Ratio(1, 1, 1))))
