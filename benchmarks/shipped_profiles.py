"""Makes the profiles of present-day machines that are shipped, from a calibration of this machine.

    advise machine export here -o here.json
    python -m benchmarks.shipped_profiles here.json

``node2026`` is the calibration: shared-memory MPI, pickles, threads, calls of NumPy and of the
interpreter. ``cluster2026`` is nodes like it with one rank each on a published InfiniBand network;
what its memory and its interpreter take is what was measured, what a message takes is not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROFILES = Path(__file__).parents[1] / "machine_profiles"
NODE, CLUSTER = "node2026", "cluster2026"

_SOURCES = {
    "hbv2": "Azure HPC blog, HPC Performance and Scalability Results with Azure HBv2 VMs (2019):"
    " osu_latency and osu_mbw_mr (OSU 5.6.2, HPC-X) between nodes of EPYC 7742 on HDR InfiniBand;"
    " techcommunity.microsoft.com/t5/azure-high-performance-computing/"
    "hpc-performance-and-scalability-results-with-azure-hbv2-vms/ba-p/1012813",
    "hbv3": "Microsoft, HBv3-series performance: RDMA latency of 1 byte on HDR InfiniBand;"
    " learn.microsoft.com/azure/virtual-machines/hbv3-performance",
    "hbv4": "Microsoft, HBv4-series performance: RDMA latency and bandwidth on NDR InfiniBand;"
    " learn.microsoft.com/azure/virtual-machines/hbv4-performance",
}
_LARGEST_MEASURED_BYTES = 8388608


def node(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a calibration as the profile of some node: without what tells one host from others."""
    sources = {key: _citation(key, text) for key, text in document["sources"].items()}
    return {
        **document,
        "name": NODE,
        "title": f"A node of 2026, measured: {document['title']}",
        "library": f"{document['library']}, shared memory",
        "notes": [
            "One virtual machine of a shared host, measured by this project. Yours differs:"
            " advise calibrate.",
            f"Its ranks share memory; {CLUSTER} has a network between such nodes.",
            *document["notes"],
        ],
        "sources": sources,
    }


def cluster(single: Mapping[str, Any]) -> dict[str, Any]:
    """Return nodes like `single`, one rank each, on InfiniBand as others measured it."""
    kept = {key: value for key, value in single["hardware"].items() if key != "cores"}
    arrays = {key: value for key, value in single["arrays"].items() if key != "together"}
    ours = single["lines"]["message"]
    residual = {
        **ours["residual"],
        "provenance": "estimated",
        "note": f"that of {NODE}: how far the model misses messages that it was not fitted to",
    }
    published = {
        "alpha_us": _published(
            1.61, "us", 1.2, 2, "hbv2", "8 bytes; low is HBv3's RDMA, high NDR's bound (HBv4)"
        ),
        "bytes": [
            {
                "max_bytes": 4096,
                "beta_us_per_byte": _published(
                    5.15e-4, "us/byte", 3.5e-4, 5.6e-4, "hbv2", "slope from 8 to 4096 bytes;"
                    " low is that from 1024 to 4096, high that of MVAPICH2",
                ),
            },
            {
                "max_bytes": None,
                "beta_us_per_byte": _published(
                    4.26e-5, "us/byte", 2e-5, 8e-5, "hbv2",
                    "23 477 MB/s at 8 MiB; low is NDR's 400 Gb/s (HBv4), high 100 Gb/s",
                ),
            },
        ],
    }  # fmt: skip
    return {
        **{key: single[key] for key in ("schema_version", "date")},
        "name": CLUSTER,
        "title": f"Nodes like {NODE}, one rank each, on HDR InfiniBand (published)",
        "library": "HPC-X (Open MPI) between nodes, as published",
        "notes": [
            f"Memory and interpreter are those of {NODE}, measured; messages between nodes are"
            " published figures of HDR InfiniBand, and no run of this project confirms them.",
            "Collectives, pickles and threads of such a cluster are not in the profile.",
        ],
        "sources": {**single["sources"], **_SOURCES},
        "hardware": kept
        | {"link_mb_per_s": _published(25000, "MB/s", 25000, 50000, "hbv2", "HDR; high is NDR")},
        "lines": {
            "message": {**published, "staging": ours["staging"], "residual": residual},
            "range": {"message_bytes": [8, _LARGEST_MEASURED_BYTES]},
        },
        "launches": {"alone_residual": single["launches"]["alone_residual"]},
        "arrays": arrays,
        "python": single["python"],
    }


def written(value: Any, indent: str = "") -> str:
    """Return JSON with a number and all that is said of it on one line."""
    if isinstance(value, dict) and value and "value" not in value:
        inner = (f'{indent}  "{key}": {written(one, indent + "  ")}' for key, one in value.items())
        return "{\n" + ",\n".join(inner) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(one, dict | str) for one in value):
        lines = (f"{indent}  {written(one, indent + '  ')}" for one in value)
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _published(
    value: float, unit: str, low: float, high: float, source: str, note: str
) -> dict[str, Any]:
    ends = {"value": value, "low": low, "high": high, "unit": unit}
    return {**ends, "provenance": "published", "source": source, "note": note}


def _citation(key: str, text: str) -> str:
    if not key.startswith("calibration"):
        return text
    _, when, code = text.rsplit(", ", 2)
    return f"advise calibrate on this node, {when[:10]}, {code}"


def main() -> None:
    """Write both profiles."""
    single = node(json.loads(Path(sys.argv[1]).read_text("utf-8")))
    for document in (single, cluster(single)):
        text = written(document) + "\n"
        (PROFILES / f"{document['name']}.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
