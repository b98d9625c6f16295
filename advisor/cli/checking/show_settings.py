"""``--show-settings``: what holds for a file, as a configuration that says the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from advisor.cli.checking.scope import Scope, python_files
from advisor.cli.checking.session import Request
from advisor.cli.common import write_out
from advisor.config.layer import Settings, shown_path, wrong_use


def show(request: Request, scope: Scope) -> None:
    """Write the settings of the first file of a request to standard output.

    Raises
    ------
    CommandError
        There is no file, or a setting is wrong.
    """
    complaints: list[Exception] = []
    if request.reads_standard_input:
        path: str | None = request.stdin_filename
    else:
        files = python_files(
            request.paths, complaints.append, scope.excluded, force=request.force_exclude
        )
        path = next(iter(files), None)
    if path is None:
        raise complaints[0] if complaints else wrong_use("every file is excluded")
    settings = scope.resolver.settings(path)
    scope.resolver.effective(path)  # refuses unknown machines and rules
    lines = _lines(path, settings, scope, request.output_format)
    write_out("".join(f"{line}\n" for line in lines))


def _lines(path: str, settings: Settings, scope: Scope, output_format: str) -> Iterator[str]:
    configuration = scope.resolver.configurations.of_folder(_folder(path))
    source = shown_path(configuration.file) if configuration.file else "no configuration file"
    yield f"# {path}: {source}, environment and command line"
    yield "[tool.advise]"
    if settings.machine is not None:
        yield f"machine = {_text(settings.machine)}"
    for name, codes in (
        ("select", settings.select),
        ("ignore", settings.ignore),
        ("extend-select", settings.extend_select),
        ("exclude", (*configuration.exclude, *scope.patterns)),
    ):
        yield f"{name} = {_array(codes)}"
    if settings.min_speedup is not None:
        yield f"min-speedup = {settings.min_speedup!r}"
    if settings.fail_above is not None:
        yield f"fail-above = {settings.fail_above!r}"
    yield f"output-format = {_text(output_format)}"
    if settings.sizes:
        yield ""
        yield "[tool.advise.sizes]"
        for name, size in settings.sizes.items():
            key = _text(name) if "." in name else name  # a bare dot would mean a table
            yield f"{key} = {size!r}  # {settings.size_origins[name]}"
    for rule, options in settings.rules.items():
        limits: Mapping[str, float | None] = {
            "min-speedup": options.min_speedup,
            "fail-above": options.fail_above,
        }
        yield ""
        yield f"[tool.advise.rules.{rule}]"
        yield from (f"{name} = {limit!r}" for name, limit in limits.items() if limit is not None)


def _folder(path: str) -> str:
    from pathlib import Path

    return str(Path(path).parent)


def _array(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """Return a TOML string; JSON's escapes are among TOML's."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
