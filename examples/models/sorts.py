"""Three parallel sorts on a shared-memory machine, as intervals from best to worst locality.

Run ``python examples/models/sorts.py`` to print both ends for each.
"""

from pathlib import Path

from costdb.documents import load_description
from costdb.evaluate import Missing, evaluate_price
from costdb.machines import load_machine

SORTS = Path(__file__).parents[1] / "sorts" / "sorts.toml"
KEYS = (2**18, 2**20, 2**22)
PROCESSORS = (2, 4, 8, 12)


def main() -> None:
    sorts = load_description(SORTS).on(load_machine("powerchallenge"))
    print("sort         n   p   good ms    bad ms  in range")
    for sort in sorts.values("algorithm", {}):
        priced = sorts.price({"algorithm": sort})
        if isinstance(priced, Missing):
            raise SystemExit(f"{priced.what}; try: {priced.remedy}")
        for n in KEYS:
            for p in PROCESSORS:
                estimate = evaluate_price(priced, {"n": n, "p": p})
                good, bad = estimate.low * 1e3, estimate.high * 1e3
                told = "yes" if estimate.in_range else "no"
                print(f"{sort:6} {n:8} {p:3} {good:9.2f} {bad:9.1f}  {told}")


if __name__ == "__main__":
    main()
