"""The documentation: pages show what their commands print, and every link leads somewhere.

MkDocs itself is not needed here; ``.ci/docs`` builds the site, strictly, and runs what measures.
"""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from generators import committed_pages, for_site, generated_pages, rendered
from generators.pictures import PICTURES, one_figure
from generators.sessions import (
    Outcome,
    SessionError,
    Workshop,
    has_sessions,
    with_output,
    workshop,
)
from generators.tables import first_clause, plain, quantities, table

from advisor.cli.app import main
from advisor.ir.kernel import Transform
from advisor.transform_registry import rules
from costdb.machines import built_in_names, load_machine

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [path.relative_to(ROOT).as_posix() for path in committed_pages(ROOT)]
MOST_WORDS = 15_000


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with workshop(ROOT) as opened:
        yield opened


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    kept = {path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
    generated = generated_pages(ROOT)
    assert not set(generated) & set(kept)
    return {**{name: for_site(text) for name, text in kept.items()}, **generated}


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
    targets = re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", without_code(markdown))
    return [target for target in targets if "://" not in target]


def test_every_link_and_anchor_of_the_site_resolves(site: dict[str, str]) -> None:
    checked = 0
    for name, text in site.items():
        for target in links(text):
            path, _, anchor = target.partition("#")
            file = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            file = file if path else name
            checked += 1
            if not file.endswith(".md"):
                assert (DOCS / file).is_file(), f"{name} links to {target}"
                continue
            assert file in site, f"{name} links to {target}"
            assert not anchor or anchor in anchors(site[file]), f"{name} links to {target}"
    assert checked > 20


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_clone_lead_to_files(page: str) -> None:
    for target in links((ROOT / page).read_text()):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        # pages of rules are on the site only; `advise rule` prints them
        assert file.exists() or re.fullmatch(r"rules/ADV\d+\.md", path), target
        assert not anchor or anchor in anchors(file.read_text()), target


def test_every_page_is_in_the_menu(site: dict[str, str]) -> None:
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    entries = re.findall(r"[\w./-]+\.md$", menu, re.MULTILINE)
    assert sorted(entries) == sorted(name for name in site if not name.startswith("rules/"))


def test_pages_are_short() -> None:
    assert sum(len((ROOT / page).read_text().split()) for page in PAGES) <= MOST_WORDS


AS_A_PROCESS = Workshop.run


def run_here(shop: Workshop, command: str) -> Outcome:
    """Run ``advise`` in this process, which has imported it; what runs programs, in its own."""
    words = shlex.split(command.replace("\\\n", " "))
    if words[0] != "advise" or words[1] in ("run", "verify", "measure"):
        return AS_A_PROCESS(shop, command)
    printed = io.StringIO()
    here = patch.dict(os.environ, shop._environment(installed=False), clear=True)
    streams = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed)
    with here, contextlib.chdir(shop.folder), streams[0], streams[1]:
        code = main(words[1:])
    return Outcome(shop._without_folder(printed.getvalue()), code)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_commands_print(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workshop, "run", run_here)
    example = ROOT / "examples" / "box_sum.py"
    before = example.read_bytes()
    shown = rendered(ROOT / page, ROOT, again=False)
    assert shown == (ROOT / page).read_text(), f"python docs/render.py {page}"
    assert example.read_bytes() == before
    assert "Traceback" not in (ROOT / page).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_what_was_recorded_says_when_and_where(page: str) -> None:
    text = (ROOT / page).read_text()
    sessions = re.findall(
        r"^<!-- recorded.*?-->\n`{3,}\w*\n(.*?)\n", text, re.MULTILINE | re.DOTALL
    )
    for first in sessions:
        assert re.fullmatch(r"# recorded 20\d\d-\d\d-\d\d on \d+ cores of .+", first), first


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_a_rule_has_a_page_and_a_line(rule: Transform, site: dict[str, str]) -> None:
    page = site[f"rules/{rule.code}.md"]
    assert page.startswith(f"# {rule.code} {rule.name}\n")
    assert rule.documentation.strip() in page
    assert f"| `{rule.code}` | `{rule.name}` | " in site["rules.md"]


@pytest.mark.parametrize("name", built_in_names())
def test_a_machine_has_a_line_that_counts_its_numbers(name: str, site: dict[str, str]) -> None:
    (row,) = re.findall(rf"^\| `{name}` \| .*$", site["machines.md"], re.MULTILINE)
    counts = [int(cell) for cell in row.split("|")[4:-1] if cell.strip()]
    assert sum(counts) == len(quantities(load_machine(name))) >= 10


WRONG = {
    "exit code": ("<!-- run exit=1 -->\n```console\n$ python -c pass\n```", "not 1"),
    "missing text": ('<!-- run shows="b" -->\n```console\n$ python -c pass\n```', "'b'"),
    "unwanted text": ('<!-- run lacks="pass" -->\n```console\n$ python -c pass\n```', "'pass'"),
    "no match": ("<!-- run matches='(.)x' -->\n```console\n$ python -c pass\n```", "'(.)x'"),
    "no such lines": ('<!-- show from="x" to="y" -->\n```\n```', "'x'"),
    "no command": ("<!-- run -->\n```console\npython\n```", "no command"),
    "another program": ("<!-- run -->\n```console\n$ rm x\n```", "do not run"),
    "an option by itself": ("<!-- run exit -->\n```console\n$ ls\n```", "name=value"),
    "recorded": ('<!-- recorded shows="b" -->\n```text\n# a\n$ python -c pass\n```', "'b'"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("again", [True, False])
def test_a_session_that_goes_otherwise_fails(case: str, again: bool, shop: Workshop) -> None:
    page, said = WRONG[case]
    with pytest.raises(SessionError, match=re.escape(said)):
        with_output(f"Text.\n\n{page}\n", shop, again=again)


def test_a_session_shows_what_was_printed(shop: Workshop) -> None:
    page = (
        "<!-- write said.py -->\n```python\nprint('one\\ntwo\\nthree')\n```\n\n"
        "<!-- run shows='two' -->\n```console\n$ python \\\n    said.py\n```\n\n"
        "<!-- run from='two' to='two' -->\n```text\n$ python said.py\nold\n```\n\n"
        "<!-- show from='one' until='three' -->\n```text\n```\n\n"
        "<!-- show from='two' to='three' -->\n```text\n```\n"
    )
    shown = with_output(page, shop)
    assert "```console\n$ python \\\n    said.py\none\ntwo\nthree\n```" in shown
    assert "```text\n$ python said.py\n...\ntwo\n...\n```" in shown
    assert "until='three' -->\n```text\none\ntwo\n```\n" in shown
    assert shown.endswith("to='three' -->\n```text\ntwo\nthree\n```\n")
    # what is shown is a page again, and the same one
    assert has_sessions(shown)
    assert with_output(shown, shop) == shown


def test_what_was_recorded_is_kept_until_it_is_recorded_again(shop: Workshop) -> None:
    page = (
        "<!-- recorded shows='took' -->\n```text\n# recorded long ago\n"
        "$ python -c \"print('took', 3)\"\ntook 2\n```\n"
    )
    assert with_output(page, shop) == with_output(page, shop, again=False) == page
    anew = with_output(page, shop, record=True)
    assert "\ntook 3\n" in anew and "long ago" not in anew
    assert re.search(r"^# recorded 20\d\d-\d\d-\d\d on \d+ cores of .+$", anew, re.MULTILINE)


def test_output_does_not_say_where_it_was_made(shop: Workshop) -> None:
    (shop.folder / "where.py").write_text(
        "import os, pathlib\nprint(pathlib.Path.home() / 'x', os.path.abspath('y'))\n"
    )
    assert shop.run("python where.py").output == "~/x y\n"


def test_links_into_the_source_are_text_on_the_site() -> None:
    text = "[a](../README.md#tests) [b](docs/models.md) [c](../tests/x.py) [d](#e) [f](https://g.h)"
    assert for_site(text) == "a [b](models.md) c [d](#e) [f](https://g.h)"
    assert for_site("[a](CONTRIBUTING.md) ![b](pictures/c.png)") == (
        "[a](contributing.md) ![b](pictures/c.png)"
    )


def test_text_from_elsewhere_reads_as_it_is() -> None:
    assert plain("a_b | <c> `d|e`") == r"a\_b \| \<c\> `d\|e`"
    assert table(("x", "y"), [("1", "2")]) == "| x | y |\n|---|---|\n| 1 | 2 |\n"
    assert first_clause("One of\ntwo: three. Four.") == "One of two"
    assert first_clause("Finds one, two, and proposes three.") == "Finds one, two"


def test_nothing_is_fetched_from_elsewhere() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert "http" not in settings + (DOCS / "site.css").read_text()


def test_pictures_are_kept_for_a_clone_and_described() -> None:
    kept = {path.stem for path in (DOCS / "pictures").iterdir()}
    assert kept == {picture.name for picture in PICTURES}
    text = "".join((ROOT / page).read_text() for page in PAGES)
    shown = re.findall(r"!\[([^\]]*)\]\(\S*pictures/(\w+)\.png\)", text)
    assert {name for _, name in shown} | {"home"} == kept
    assert all(len(described) > 15 for described, _ in shown)


def test_one_figure_of_a_page_keeps_its_styles() -> None:
    page = "<style>a {}</style><figure>one</figure><figure>two\n2</figure>"
    assert one_figure(page, "two").endswith(
        "<style>a {}</style><main><figure>two\n2</figure></main>"
    )
    with pytest.raises(SessionError, match="three"):
        one_figure(page, "three")
