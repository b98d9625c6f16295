"""One page for each example: what it says of itself, what the tool says of it, its source.

Examples that are tutorials have a note in ``docs/generators/notes``: what the tool says of the
example, why, and what to try, with sessions (see :mod:`generators.sessions`) that hold what the
note states. They are carried out with those of the other pages.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from generators.markdown import fence, first_sentence, plain, table, to_pages
from generators.sessions import SessionError, Workshop

_LANGUAGES = {".py": "python", ".toml": "toml", ".pam": "text"}
_COMMENT = {".toml": "#", ".pam": "%"}
_DEFAULT_MACHINE = "t3e"
_IS_KERNEL_FILE = re.compile(r"^(@kernel|# advise: kernel)\b", re.MULTILINE)
_COMMANDS = re.compile(r"^```sh\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_TITLES = {"examples": "Kernels"}
_NOTES = Path("docs", "generators", "notes")


def pages(root: Path, shop: Workshop) -> dict[str, str]:
    """Return a page for each example, and the index."""
    paths = sorted(path for path in (root / "examples").rglob("*") if path.suffix in _LANGUAGES)
    index: dict[str, list[list[str]]] = {}
    found: dict[str, str] = {}
    for path in paths:
        shown = path.relative_to(root)
        source = path.read_text(encoding="utf-8")
        about = description(path.suffix, source)
        page = f"{'-'.join(shown.with_suffix('').parts[1:])}-{path.suffix[1:]}.md"
        link = f"[{shown.relative_to('examples')}]({page})"
        folder = shown.parent.as_posix()
        index.setdefault(folder, []).append([link, plain(first_sentence(about))])
        note = root / _NOTES / f"{path.stem}.md"
        if folder == "examples" and path.suffix == ".py" and note.is_file():
            made = _tutorial(shown, source, about, note.read_text(encoding="utf-8"))
        else:
            made = _page(shown, source, about, shop)
        found[f"examples/{page}"] = made
    parts = ["# Examples\n", "Programs and descriptions as a user would write them.\n"]
    for folder, rows in index.items():
        parts += [f"## {_TITLES.get(folder, folder)}\n", table(("File", "What it is"), rows)]
    return {"examples/index.md": "\n".join(parts), **found}


def description(suffix: str, source: str) -> str:
    """Return what a file says of itself at its head: docstring, or leading comment.

    Lines that are indented become code blocks.
    """
    if suffix == ".py":
        return _with_fences((ast.get_docstring(ast.parse(source)) or "").splitlines())
    mark = _COMMENT[suffix]
    lines = []
    for line in source.splitlines():
        if not line.startswith(mark):
            break
        lines.append(line.removeprefix(mark).removeprefix(" "))
    return _with_fences(lines)


def _with_fences(lines: list[str]) -> str:
    parts: list[str] = []
    within: list[str] = []

    def close() -> None:
        if within:
            parts.append(fence("\n".join(within), "sh"))
            within.clear()

    for line in lines:
        if line.startswith("  ") and (within or not parts or not parts[-1].strip()):
            within.append(line.removeprefix("  ").removeprefix("  ") if not within else line[2:])
        else:
            close()
            parts.append(f"{line}\n")
    close()
    return "".join(parts)


def _page(shown: Path, source: str, about: str, shop: Workshop) -> str:
    ran = False

    def with_output(match: re.Match[str]) -> str:
        nonlocal ran
        commands = re.findall(r"^(?:.*\\\n)*.+$", match[1], re.MULTILINE)
        if not all(command.startswith("advise ") for command in commands):
            return match[0]
        ran = True
        return "\n".join(_session(command, shop) for command in commands)

    text = _COMMANDS.sub(with_output, about)
    parts = [f"# {shown.relative_to('examples').as_posix()}\n", to_pages(text, 1)]
    if not ran and shown.suffix == ".py" and _IS_KERNEL_FILE.search(source):
        parts.append("## What advise says\n")
        parts.append(_session(f"advise {shown.as_posix()} --machine {_DEFAULT_MACHINE}", shop))
    parts += ["## Source\n", fence(source, _LANGUAGES[shown.suffix])]
    return "\n".join(parts)


def _tutorial(shown: Path, source: str, about: str, note: str) -> str:
    parts = [f"# {shown.relative_to('examples').as_posix()}\n", to_pages(about, 1)]
    parts += ["## Source\n", fence(source, _LANGUAGES[shown.suffix])]
    # The note has links of its own.
    parts += ["## What advise says\n", note]
    return "\n".join(parts)


def _session(command: str, shop: Workshop) -> str:
    outcome = shop.run(command)
    if outcome.exit_code not in (0, 1):
        raise SessionError(f"`{command}` ended with {outcome.exit_code}: {outcome.output[-500:]!r}")
    return fence(f"$ {command}\n{outcome.output}", "text")
