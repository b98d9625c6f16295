"""The direction of imports, and what stays off the path of a lint run."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("machine_profiles", "costdb", "advisor", "transforms")
ALLOWED = {
    "machine_profiles": set(),
    "costdb": {"machine_profiles"},
    "advisor": {"costdb"},
    "transforms": {"advisor", "costdb"},
}
TRANSFORMS_MAY_SEE = (
    "advisor.ir",
    "advisor.source",
    "advisor.finding",
    "advisor.distribution",
    "advisor.numpy_table",
    "advisor.numpy_table",
    "costdb.expr",
    "costdb.records",
    "costdb.records",
)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [node.module or ""]
    return names


def imports_in(path: Path) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield every import, also inside functions and for type checkers alone."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node


@cache
def modules() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_in_one_direction(room: str) -> None:
    for path in sorted((ROOT / room).rglob("*.py")):
        for name in imported(path):
            head = name.split(".")[0]
            if head in ROOMS and head != room:
                assert head in ALLOWED[room], f"{path} imports {name}"
            if room == "transforms" and head in ("advisor", "costdb"):
                assert name.startswith(TRANSFORMS_MAY_SEE), f"{path} imports {name}"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def edges_of_modules() -> dict[str, set[str]]:
    names = {module_of(path) for path in modules()}
    edges: dict[str, set[str]] = {}
    for path in modules():
        found: set[str] = set()
        for node in imports_in(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
        own = module_of(path)
        # a package's __init__ that imports its own submodule is no cycle of modules
        edges[own] = {
            name for name in found & names if name != own and not own.startswith(f"{name}.")
        }
    return edges


def hold_that_nothing_goes_round(edges: Mapping[str, set[str]]) -> None:
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert state.get(name) != 1, f"cycle: {' -> '.join((*trail, name))}"
        if state.get(name) == 2:
            return
        state[name] = 1
        for other in sorted(edges[name]):
            visit(other, (*trail, name))
        state[name] = 2

    for name in sorted(edges):
        visit(name, ())


def test_modules_import_without_cycles() -> None:
    hold_that_nothing_goes_round(edges_of_modules())


def test_folders_import_without_cycles() -> None:
    folders = {module_of(path): module_of(path.parent / "__init__.py") for path in modules()}
    edges: dict[str, set[str]] = {folder: set() for folder in folders.values()}
    for module, others in edges_of_modules().items():
        own = folders[module]
        for other in (folders[name] for name in others):
            # a folder and what lies in it are one house: its top floor is its ground floor too
            if not f"{own}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{own}."):
                edges[own].add(other)
    assert len(edges) > 20
    hold_that_nothing_goes_round(edges)


HEAVY = {
    *(
        "numpy",
        "scipy",
        "jsonschema",
        "sqlite3",
        "pygls",
        "mpi4py",
        "numba",
        "rich",
        "platformdirs",
    ),
    *("sympy", "pydantic", "lark", "importlib.metadata", "xml"),
}
CHECKED = "from advisor.cli.app import main; main([{!r}, '--machine', 't3e', '--exit-zero'])"
LIGHT: dict[str, tuple[str, set[str]]] = {
    "a kernel": (
        CHECKED.format("examples/box_sum.py"),
        {
            # what this kernel has no part of: messages of programs, single elements, rates of calls
            *("advisor.ir.spmd", "advisor.frontend.spmd", "transforms.loops.vectorise"),
            *("transforms.sweeps.fourier", "costdb.arrays.reuse", "costdb.pgas"),
            *("advisor.report.continuous", "advisor.cli.commands.rule", "advisor.cli.commands.run"),
        },
    ),
    "a program for MPI": (CHECKED.format("examples/mpi/jacobi.py"), set()),
    "a file without marks": (CHECKED.format("costdb/__init__.py"), {"libcst"}),
    "machines, expressions, applications": (
        "from costdb.machines import load_machine; import costdb.expr, costdb.phases;"
        "load_machine('t3e')",
        set(),
    ),
    "comments": (
        "from advisor.frontend.comments import read_comments;"
        "read_comments('# advise: kernel N=3\\n# advise: x: i4[N] over (row) on mesh(row=2)')",
        {"libcst"},
    ),
}


@pytest.mark.parametrize("what", LIGHT)
def test_what_is_read_imports_nothing_heavy(what: str, tmp_path: Path) -> None:
    program, more = LIGHT[what]
    found = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules, file=sys.stderr)"],
        cwd=ROOT,
        # what was observed before is looked up, but in a store that is there
        env={**os.environ, "ADVISE_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not (HEAVY | more) & set(found.stderr.split())
    assert ("ADV201" in found.stdout) == (what == "a kernel")


def test_files_that_the_page_names_are_there() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`([\w/]+\.py)`", page))
    rooms = (*ROOMS, "benchmarks", "tests", "docs", "examples")
    files = [str(path.relative_to(ROOT)) for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert len(named) > 30
    assert [one for one in named if not any(f"/{file}".endswith(f"/{one}") for file in files)] == []
    folders = re.findall(r"`((?:advisor|costdb|transforms|tests)/[\w/]*/)`", page)
    assert len(folders) > 20
    assert [one for one in folders if not (ROOT / one).is_dir()] == []
