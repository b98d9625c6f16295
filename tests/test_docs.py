"""The documentation site: what is generated says all it should, and every link leads somewhere.

MkDocs itself is not needed here; ``.ci/docs`` builds the site, strictly.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from generators import examples, generated_pages, guides, schemas
from generators.markdown import fence, plain, table, to_pages
from generators.sessions import (
    Outcome,
    SessionError,
    Workshop,
    has_sessions,
    with_output,
    workshop,
)

from advisor.cli.app import COMMANDS
from advisor.ir.proposal import Transform
from advisor.transform_registry import transforms
from costdb.machines import built_in_names, load_machine

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NOTES = DOCS / "generators" / "notes"
HANDWRITTEN = sorted(
    path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.parent != NOTES
)
TUTORIALS = sorted(path.stem for path in NOTES.glob("*.md"))


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with workshop(ROOT) as opened:
        yield opened


class Idle(Workshop):
    """Runs nothing: what examples print is not what most tests are about."""

    def run(self, command: str) -> Outcome:
        return Outcome(f"{command} was run\n", 0)


@pytest.fixture(scope="module")
def generated(shop: Workshop) -> dict[str, str]:
    return generated_pages(ROOT, Idle(ROOT, shop.folder))


@pytest.fixture(scope="module")
def site(generated: dict[str, str]) -> dict[str, str]:
    return {**{name: (DOCS / name).read_text() for name in HANDWRITTEN}, **generated}


def without_code(markdown: str) -> str:
    markdown = re.sub(r"^(`{3,}).*?^\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "code", markdown)


def anchors(markdown: str) -> set[str]:
    """The ids of a page: headings as Python-Markdown names them, and those that are written."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    found = set(re.findall(r"\{#([^}]+)\}", text))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        word = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", word))
    return found


def links(markdown: str) -> list[str]:
    targets = re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", without_code(markdown))
    return [target for target in targets if "://" not in target]


def test_every_link_and_anchor_resolves(site: dict[str, str]) -> None:
    checked = 0
    for name, text in site.items():
        if not name.endswith(".md"):
            continue
        for target in links(text):
            path, _, anchor = target.partition("#")
            file = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            file = file if path else name
            assert file in site, f"{name} links to {target}"
            assert not anchor or anchor in anchors(site[file]), f"{name} links to {target}"
            checked += 1
    assert checked > 100


def test_every_page_is_in_the_menu(site: dict[str, str]) -> None:
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    entries = set(re.findall(r"[\w./-]+(?:\.md|/)$", menu, re.MULTILINE))
    for name in site:
        folder = name.rpartition("/")[0]
        if name.endswith(".md"):
            assert name in entries or f"{folder or '.'}/" in entries, name
    for entry in entries:
        assert entry in site or entry.endswith("/"), entry


def test_generated_pages_are_not_kept(generated: dict[str, str]) -> None:
    assert not set(generated) & set(HANDWRITTEN)


@pytest.mark.parametrize("rule", transforms(), ids=lambda rule: rule.code)
def test_a_rule_has_a_page_and_an_entry(rule: Transform, generated: dict[str, str]) -> None:
    page = generated[f"rules/{rule.code}.md"]
    assert page.startswith(f"# {rule.code} {rule.name}\n")
    # links to models are all that is added
    bare = re.sub(r"\[([^\]]+)\]\(\.\./models/\w+\.md\)", r"\1", page)
    assert rule.documentation.strip() in bare
    assert f"[{rule.code}]({rule.code}.md) | `{rule.name}`" in generated["rules/index.md"]


@pytest.mark.parametrize("name", built_in_names())
def test_a_machine_page_has_every_number(name: str, generated: dict[str, str]) -> None:
    machine = load_machine(name)
    document = machine.document
    page = generated[f"machines/{name}.md"]
    cells = {tuple(cell.strip() for cell in line.split(" | ")) for line in page.splitlines()}
    rows = [tuple(cell.strip("| ") for cell in row) for row in cells]
    seen = 0

    def visit(path: tuple[str, ...], found: object) -> None:
        nonlocal seen
        if isinstance(found, dict) and "value" in found:
            seen += 1
            (row,) = [
                row
                for row in rows
                if row[0] == f"`{'.'.join(path[1:])}`" and f"(#source-{found['source']})" in row[5]
                if row[1] == json.dumps(found["value"]) and row[3] == found["unit"]
                if row[4] == found["provenance"]
            ]
            low, high = found.get("low", found["value"]), found.get("high", found["value"])
            if low != high:
                assert row[2] == f"{json.dumps(low)}&nbsp;to&nbsp;{json.dumps(high)}"
            for key in ("note", "fitted_to"):
                assert plain(found.get(key, "")) in page
        elif isinstance(found, dict):
            for key, inner in found.items():
                visit((*path, key), inner)
        elif isinstance(found, list) and any(isinstance(item, dict) for item in found):
            for place, item in enumerate(found, 1):
                visit((*path, str(place)), item)
        else:
            assert f"`{json.dumps(found, ensure_ascii=False)}`" in page

    for section in ("hardware", "lines", "smp", "phases", "pgas"):
        visit((section,), document.get(section, {}))
    assert seen >= 10
    assert page.count("\n| `") >= seen
    for note in machine.notes:
        assert to_pages(plain(note), 1) in page
    for key, source in machine.sources.items():
        assert f"{{#source-{key}}}: {to_pages(plain(source), 1)}" in page


def test_every_command_has_its_options(generated: dict[str, str]) -> None:
    for command in COMMANDS:
        assert (
            f"## advise {command}\n\n```text\nadvise {command} --help was run\n"
            in (generated["options.md"])
        )


def test_what_a_machine_cannot_price_is_said(generated: dict[str, str]) -> None:
    for name, lacking, known in (
        ("t3e", "supersteps", "| messages"),
        ("powerchallenge", "messages", "| supersteps"),
        ("mupc", "barriers", "vector reads"),
        ("paragon", "prefix scans", "phases model"),
    ):
        told = generated[f"machines/{name}.md"].partition("## What is not known")[2]
        told = told.partition("## Sources")[0]
        assert lacking in told
        assert known not in told


def test_an_example_page_has_source_and_purpose(generated: dict[str, str]) -> None:
    files = [
        path
        for path in sorted((ROOT / "examples").rglob("*"))
        if path.suffix in (".py", ".toml", ".pam")
    ]
    assert len(files) > 10
    for path in files:
        name = "-".join(path.relative_to(ROOT / "examples").with_suffix("").parts)
        page = generated[f"examples/{name}-{path.suffix[1:]}.md"]
        assert path.read_text().rstrip() in page
        about = examples.description(path.suffix, path.read_text())
        assert about.strip(), f"{path} does not say what it is"
        assert about.partition("\n\n")[0] in page


def test_an_example_page_shows_what_the_tool_says(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "box_sum.py", tmp_path / "examples")
    (tmp_path / "examples" / "sorts").mkdir()
    shutil.copy(ROOT / "examples" / "sorts" / "sorts.toml", tmp_path / "examples" / "sorts")
    found = examples.pages(tmp_path, Workshop(ROOT, tmp_path))
    page = found["examples/sorts-sorts-toml.md"]
    assert page.count("$ advise ") == 2
    assert "--over algorithm\nexamples/sorts/sorts.toml on powerchallenge\n" in page
    page = found["examples/box_sum-py.md"]
    assert "$ advise examples/box_sum.py --machine t3e\nexamples/box_sum.py:" in page
    assert "ADV201 repeated-shifts" in page
    assert "[box_sum.py](box_sum-py.md) | Sum of every" in found["examples/index.md"]


def test_leading_comments_become_text_and_commands() -> None:
    source = "# A program.\n#\n#   advise predict x.toml\n#       -D N=3\n#\n# More.\n\nname = 1\n"
    assert examples.description(".toml", source) == (
        "A program.\n\n```sh\nadvise predict x.toml\n    -D N=3\n```\n\nMore.\n"
    )


def test_a_schema_page_names_every_entry(generated: dict[str, str]) -> None:
    paths = schemas.schema_files(ROOT)
    assert {"findings.schema.json", "profile.schema.json"} <= {path.name for path in paths}
    for path in paths:
        text = path.read_text()
        assert generated[f"schemas/{path.name}"] == text
        page = generated[f"schemas/{path.name.removesuffix('.schema.json')}.md"]
        names: set[str] = set()

        def visit(found: object, names: set[str] = names) -> None:
            if isinstance(found, dict):
                properties = found.get("properties")
                if isinstance(properties, dict):
                    names.update(properties)
                for inner in found.values():
                    visit(inner)
            elif isinstance(found, list):
                for inner in found:
                    visit(inner)

        visit(json.loads(text))
        entries = {
            re.split(r"[.\]]", entry)[-1] for entry in re.findall(r"^\| `(.*?)` \|", page, re.M)
        }
        assert names <= entries, path.name


@pytest.mark.parametrize(
    "name", [name for name in HANDWRITTEN if has_sessions((DOCS / name).read_text())]
)
def test_the_sessions_of_a_page_go_as_it_says(name: str) -> None:
    with workshop(ROOT) as own:
        before = (ROOT / "examples" / "box_sum.py").read_bytes()
        shown = with_output((DOCS / name).read_text(), own)
        assert (ROOT / "examples" / "box_sum.py").read_bytes() == before
    assert "<!-- run" not in shown
    assert "Traceback" not in shown


def test_the_studied_kernels_are_tutorials() -> None:
    grids = {"box_sum", "jacobi", "sobel", "adi"}
    algebra = {"matmul", "gauss", "fft2d", "spectral"}
    keys = {"sample_sort", "radix_sort", "column_sort", "histogram"}
    assert grids | algebra | keys == set(TUTORIALS)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_goes_as_it_says(name: str, generated: dict[str, str], shop: Workshop) -> None:
    page = generated[f"examples/{name}-py.md"]
    shown = with_output(page, shop)
    headings = re.findall(r"^## (.*)$", without_code(page), re.MULTILINE)
    assert headings == ["Source", "What advise says", "Why", "Try"]
    said = shown.partition("## What advise says")[2].partition("## Why")[0]
    assert said.startswith(f"\n\n```text\n$ advise examples/{name}.py --machine t3e\n")
    # every session was carried out: none is left for a reader to wonder about
    assert "<!--" not in shown
    assert "Traceback" not in shown


WRONG = {
    "exit code": ("<!-- run exit=1 -->\n```console\n$ python -c pass\n```", "not 1"),
    "missing text": ('<!-- run shows="b" -->\n```console\n$ python -c pass\n```', "'b'"),
    "unwanted text": ('<!-- run lacks="pass" -->\n```console\n$ python -c pass\n```', "'pass'"),
    "no match": ("<!-- run matches='(.)x' -->\n```console\n$ python -c pass\n```", "'(.)x'"),
    "no such lines": ('<!-- show from="x" to="y" -->\n```\n```', "'x'"),
    "no command": ("<!-- run -->\n```console\npython\n```", "no command"),
    "another program": ("<!-- run -->\n```console\n$ rm x\n```", "do not run"),
    "an option by itself": ("<!-- run exit -->\n```console\n$ ls\n```", "name=value"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_session_that_goes_otherwise_fails(case: str, shop: Workshop) -> None:
    page, said = WRONG[case]
    with pytest.raises(SessionError, match=re.escape(said)):
        with_output(f"Text.\n\n{page}\n", shop)


def test_a_session_shows_what_was_printed(shop: Workshop) -> None:
    page = (
        "<!-- write said.py -->\n```python\nprint('one\\ntwo\\nthree')\n```\n\n"
        "<!-- run shows='two' -->\n```console\n$ python \\\n    said.py\n```\n\n"
        "<!-- run from='two' to='two' -->\n```console\n$ python said.py\n```\n\n"
        "<!-- show from='one' until='three' -->\n```text\n```\n\n"
        "<!-- show from='two' to='three' -->\n```text\n```\n"
    )
    shown = with_output(page, shop)
    assert "```text\n$ python \\\n    said.py\none\ntwo\nthree\n```" in shown
    assert "```text\n$ python said.py\n...\ntwo\n...\n```" in shown
    assert shown.endswith("```text\none\ntwo\n```\n\n\n```text\ntwo\nthree\n```\n\n")


def test_output_does_not_say_where_it_was_made(shop: Workshop) -> None:
    (shop.folder / "where.py").write_text(
        "import os, pathlib\nprint(pathlib.Path.home() / 'x', os.path.abspath('y'))\n"
    )
    assert shop.run("python where.py").output == "~/x y\n"


def test_links_of_guides_lead_to_pages() -> None:
    text = "[a](README.md#tests) [b](docs/models) [c](tests/x.py) [d](#e) [f](https://g.h)"
    assert guides.on_site(text) == (
        "[a](install.md#tests) [b](models/index.md) c [d](#e) [f](https://g.h)"
    )


def test_text_from_elsewhere_reads_as_it_is() -> None:
    assert plain("a_b | <c> `d|e`") == r"a\_b \| \<c\> `d\|e`"
    assert table(("x", "y"), [("1", "2")]) == "| x | y |\n|---|---|\n| 1 | 2 |\n"
    assert to_pages("see docs/models/x.md.", 1) == "see [docs/models/x.md](../models/x.md)."
    assert fence("```\n", "text") == "````text\n```\n````\n"


def test_nothing_is_fetched_from_elsewhere() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert "http" not in settings + (DOCS / "site.css").read_text()
