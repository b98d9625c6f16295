"""The language server: requests of the editor, answered from the newest analysis."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import (
    FeatureRequestError,
    JsonRpcContentModified,
    JsonRpcException,
    JsonRpcInvalidParams,
    PyglsError,
)
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from advisor.config.files import FILE_NAME, CommandError
from advisor.engine import Options
from advisor.files import read_source
from advisor.frontend.prefilter import forget
from advisor.lsp.analyses import (
    Analyses,
    Analysis,
    Document,
    KernelMemo,
    OpenFile,
    analyse,
    rewrite_edits,
    suppression_edits,
    with_details,
)
from advisor.lsp.protocol import (
    EDIT,
    MEASURE,
    QUICK_FIX,
    REWRITE,
    SECTION,
    AdviseProtocol,
    OptionsOfFiles,
    SettingError,
    Settings,
    actions,
    asked_finding,
    diagnostics,
    hints,
    hover,
    machine_name,
    overlapping,
    read_settings,
    rule_pages,
    size,
    workspace_edit,
)
from costdb.launch.space import command

_SETTINGS_TIMEOUT_S = 3.0
_PULL = "text_document.diagnostic"
"""What an editor can do that asks for diagnostics."""
# Importing the front end and the rules takes a second; better before the first file is open.
_WARM_UP = "import advisor\n"

_log = logging.getLogger(__name__)
_Of = TypeVar("_Of")
_Made = TypeVar("_Made")


class AdviseServer(LanguageServer):
    """Serves one editor.

    Parameters
    ----------
    version : str
        Shown to the editor.
    default : Settings
        Hold where the editor says nothing else.
    """

    def __init__(self, version: str, default: Settings) -> None:
        super().__init__(
            "advise",
            version,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=AdviseProtocol,
        )
        self.default = default
        self.settings = default
        self.chosen = Settings()
        self.was_shut_down = False
        self._told: set[str] = set()
        self._lookup = OptionsOfFiles(default)
        self._memo = KernelMemo()
        self.analyses = Analyses(self._analyse, self._finished)
        cast(AdviseProtocol, self.protocol).documents = self
        for method, handler, options in (
            (types.INITIALIZE, self._initialize, None),
            (types.INITIALIZED, self._initialized, None),
            (types.SHUTDOWN, self._shut_down, None),
            (types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._reconfigured, None),
            (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, self._files_changed, None),
            (types.TEXT_DOCUMENT_DID_SAVE, self._saved, types.SaveOptions(include_text=False)),
            (types.TEXT_DOCUMENT_HOVER, self._hover, None),
            (types.TEXT_DOCUMENT_INLAY_HINT, self._inlay_hints, None),
            (
                types.TEXT_DOCUMENT_CODE_ACTION,
                self._code_actions,
                types.CodeActionOptions(
                    code_action_kinds=[QUICK_FIX, REWRITE], resolve_provider=True
                ),
            ),
            (types.CODE_ACTION_RESOLVE, self._resolve, None),
        ):
            # the library marks what it registers, which a method does not allow
            self.feature(method, options)(partial(cast(Callable[..., Any], handler)))
        for name, run in (
            ("advise.setMachine", self._set_machine),
            ("advise.setSize", self._set_size),
            ("advise.recheck", self._recheck),
            ("advise.machines", self._machines),
            (MEASURE, self._measure),
        ):
            self.command(name)(partial(cast(Callable[..., Any], run)))

    # -- start and end

    def _initialize(self, params: types.InitializeParams) -> None:
        # what an editor says first holds beneath what it says later: some send no settings at all,
        # or empty ones, once they have started
        self._use(params.initialization_options)
        self.default = self.settings
        if self._can(_PULL):
            # only now, because an editor that is pushed to must not see the other way offered
            options = types.DiagnosticOptions(
                inter_file_dependencies=True, workspace_diagnostics=False, identifier=SECTION
            )
            self.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)(partial(self._pulled))

    async def _initialized(self, params: types.InitializedParams) -> None:
        self._warming = asyncio.ensure_future(self.analyses.in_worker(_warm_up))
        wanted: list[types.Registration] = []
        if self._can("workspace.did_change_configuration.dynamic_registration"):
            method, section = types.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": SECTION}
            wanted.append(types.Registration("settings", method, section))
        if self._can("workspace.did_change_watched_files.dynamic_registration"):
            watchers = [types.FileSystemWatcher(f"**/{name}") for name in (FILE_NAME, "*.py")]
            watched = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            wanted.append(types.Registration("files", method, watched))
        if wanted:
            asked = self.client_register_capability_async(types.RegistrationParams(wanted))
            await _reply(asked, "registering for settings")
        await self._ask_settings()
        self._lookup = OptionsOfFiles(self.settings.with_chosen(self.chosen))
        self.analyses.ready.set()

    def _shut_down(self, params: None) -> None:
        self.was_shut_down = True
        self.analyses.stop()

    def report_server_error(
        self, error: Exception, source: type[PyglsError | JsonRpcException]
    ) -> None:
        """Log an error of ours; a box in the editor would help nobody."""
        if source is FeatureRequestError:
            return  # logged already, and the editor has it as the answer
        _log.error("%s: %s", source.__name__, error, exc_info=error)

    def _can(self, capability: str, among: str = "") -> bool:
        """Return whether the editor can do something; what a list must hold is named.

        Fields that it does not know it passes over: of these nothing is asked.
        """
        said: Any = get_capability(self.client_capabilities, capability, None)
        # an object without anything in it counts
        return said not in (None, False) and (not among or among in said)

    # -- documents

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take in a file."""
        item = params.text_document
        encoding = self.workspace.position_encoding or types.PositionEncodingKind.Utf16
        document = Document(item.uri, encoding, item.version, item.text)
        self.analyses.open(to_fs_path(item.uri) or item.uri, document)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Carry out changes, in the order given."""
        identifier = params.text_document
        self.analyses.change(identifier.uri, identifier.version, params.content_changes)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a file."""
        uri = params.text_document.uri
        if self.analyses.close(uri) and not self._can(_PULL):
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    # -- diagnostics

    def _analyse(self, path: str, source: str) -> Analysis:
        """Return the findings of a text, without plans of several steps, which take a search."""
        try:
            options = self._lookup.of(path)
        except CommandError as error:
            return Analysis(failure=str(error).removeprefix("advise: "))
        if options is None:
            return Analysis()
        brief = replace(options, details=False, plans=False)
        return analyse(path, source, brief, self._memo.rank)

    def _finished(self, file: OpenFile) -> None:
        answer = file.answer
        assert answer is not None
        if answer.failure:
            self._tell(answer.failure)
        if not self._can(_PULL):
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(
                    uri=file.document.uri,
                    diagnostics=diagnostics(file.document, answer, rule_pages()),
                    version=answer.version,
                )
            )

    async def _pulled(
        self, params: types.DocumentDiagnosticParams
    ) -> types.DocumentDiagnosticReport:
        found = await self.analyses.latest(params.text_document.uri)
        if found is None:
            return types.RelatedFullDocumentDiagnosticReport(items=[])
        file, answer = found
        identifier = str(answer.serial)
        if params.previous_result_id == identifier:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=identifier)
        return types.RelatedFullDocumentDiagnosticReport(
            items=diagnostics(file.document, answer, rule_pages()), result_id=identifier
        )

    # -- what is shown at a place

    async def _hover(self, params: types.HoverParams) -> types.Hover | None:
        found = await self._unchanged(params.text_document.uri)
        if found is None:
            return None
        file, answer = found
        here = types.Range(params.position, params.position)
        findings = overlapping(file.document, answer.findings, here)
        if not findings:
            return None
        detailed = await self._made(file, file.good_text, with_details, findings)
        return hover(
            file.document,
            detailed or findings,
            current=answer.understood,
            markdown=self._can("text_document.hover.content_format", types.MarkupKind.Markdown),
        )

    async def _inlay_hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        if not self.settings.inlay_hints:
            return []
        found = await self._unchanged(params.text_document.uri)
        if found is None:
            return []
        file, answer = found
        first, last = params.range.start.line + 1, params.range.end.line + 1
        return hints(file.document, answer.findings, first, last)

    # -- code actions

    async def _code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        found = await self._unchanged(params.text_document.uri)
        if found is None:
            return []
        file, answer = found
        if not answer.understood:
            return []
        document, only = file.document, params.context.only
        findings = overlapping(document, answer.findings, params.range)
        offered = list(actions(document, findings, only, _may_be_here, rule_pages()))
        code_action = "text_document.code_action"
        resolves = self._can(f"{code_action}.resolve_support.properties", "edit")
        if not (resolves and self._can(f"{code_action}.data_support")):
            offered = [one if one.command else await self._resolve(one) for one in offered]
        return offered

    async def _resolve(self, action: types.CodeAction) -> types.CodeAction:
        data: Any = action.data
        if not isinstance(data, dict):
            raise JsonRpcInvalidParams("this action has no data to resolve it by")
        found = await self._unchanged(str(data.get("uri")))
        if found is None or found[0].document.version != data.get("version"):
            raise JsonRpcContentModified("the file has changed since the action was offered")
        file, answer = found
        finding = asked_finding(answer.findings, data)
        if finding is None or not answer.understood:
            raise JsonRpcContentModified("the finding is gone")
        make = rewrite_edits if data.get("purpose") == EDIT else suppression_edits
        document = file.document
        edits = await self._made(file, document.text, make, finding)
        if edits is None:
            raise JsonRpcInvalidParams("this cannot be written here")
        versioned = self._can("workspace.workspace_edit.document_changes")
        action.edit = workspace_edit(document, edits, versioned)
        return action

    async def _made(
        self, file: OpenFile, text: str, make: Callable[[str, str, Options, _Of], _Made], of: _Of
    ) -> _Made | None:
        """Return what is made of a text by the options of its file, None where that is left out."""
        stamp, path, lookup = file.stamp, file.path, self._lookup

        def work() -> _Made | None:
            options = lookup.of(path)
            return None if options is None else make(path, text, options, of)

        made = await self.analyses.in_worker(work)
        if file.stamp != stamp:
            raise JsonRpcContentModified("the file has changed")
        return made

    async def _unchanged(self, uri: str) -> tuple[OpenFile, Analysis] | None:
        """Return the newest answer, or refuse when the text changes while it is awaited."""
        file = self.analyses.files.get(uri)
        version = None if file is None else file.document.version
        found = await self.analyses.latest(uri)
        if found is not None and found[1].version != version:
            raise JsonRpcContentModified("the file has changed")
        return found

    # -- settings and commands

    def _use(self, given: object) -> None:
        self.settings, problems = read_settings(given, self.default)
        for problem in problems:
            self._tell(problem)

    async def _reconfigured(self, params: types.DidChangeConfigurationParams) -> None:
        # from here on no answer by the old settings, also while the new ones are asked for
        self.analyses.ready.clear()
        self.analyses.restart()
        if self._can("workspace.configuration"):
            await self._ask_settings()
        else:
            self._use(params.settings)
        self.analyses.ready.set()
        self._restart()

    def _files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        paths = [to_fs_path(change.uri) or change.uri for change in params.changes]
        if any(path.endswith(FILE_NAME) for path in paths):
            self._restart()
        else:
            self._changed_beside(paths)

    def _saved(self, params: types.DidSaveTextDocumentParams) -> None:
        # not every editor watches files; what is on disk counts for the programs beside this one
        uri = params.text_document.uri
        self._changed_beside([to_fs_path(uri) or uri])

    def _changed_beside(self, paths: Sequence[str]) -> None:
        forget()
        if self.analyses.recheck_beside(paths):
            self._refresh()

    async def _ask_settings(self) -> None:
        if not self._can("workspace.configuration"):
            return
        item = types.ConfigurationItem(section=SECTION)
        asked = self.workspace_configuration_async(types.ConfigurationParams([item]))
        answer = await _reply(asked, "asking for settings")
        if answer and answer[0] is not None:
            self._use(answer[0])

    def _restart(self) -> dict[str, Any]:
        """Analyse all anew by the present settings, and return what is chosen."""
        self._told.clear()
        settings = self.settings.with_chosen(self.chosen)
        self._lookup = OptionsOfFiles(settings)
        self.analyses.restart()
        self._refresh()
        return {"machine": settings.machine, "sizes": dict(settings.sizes)}

    def _refresh(self) -> None:
        """Have the editor ask again for what it has asked for."""
        if self._can(_PULL) and self._can("workspace.diagnostics.refresh_support"):
            self.workspace_diagnostic_refresh(None)
        if self._can("workspace.inlay_hint.refresh_support"):
            self.workspace_inlay_hint_refresh(None)

    def _set_machine(self, *arguments: Any) -> dict[str, Any]:
        """Choose a machine for this session; without a name, the one of the settings again."""
        with _refused():
            name = machine_name(arguments[0] if arguments else None)
        self.chosen = replace(self.chosen, machine=name)
        return self._restart()

    def _set_size(self, *arguments: Any) -> dict[str, Any]:
        """Bind a size for this session; without a value, leave it to the settings again."""
        if not arguments:
            raise JsonRpcInvalidParams('expected a name and a value, such as "N", 4096')
        name, value = arguments[0], arguments[1] if len(arguments) > 1 else None
        sizes = {known: n for known, n in self.chosen.sizes.items() if known != name}
        with _refused():
            sizes.update([size(name, value)] if value is not None else [])
        self.chosen = replace(self.chosen, sizes=sizes)
        return self._restart()

    def _recheck(self, *arguments: Any) -> dict[str, Any]:
        """Predict everything anew, as after an edit of a machine's profile."""
        self._memo = KernelMemo()
        return self._restart()

    async def _measure(self, *arguments: Any) -> dict[str, Any]:
        """Time a kernel of a saved file with its rewrites; findings then say what that showed."""
        uri, name = (*arguments, None, None)[:2]
        file = self.analyses.files.get(str(uri))
        if file is None or not isinstance(name, str):
            raise JsonRpcInvalidParams("expected the URI of an open file and the name of a kernel")
        document = file.document
        try:
            saved = read_source(file.path).text
        except OSError:
            saved = None
        if saved != document.text:
            raise JsonRpcInvalidParams("the file has changes that are not saved")
        sizes = self.settings.with_chosen(self.chosen).sizes
        given = [part for size, value in sizes.items() for part in ("-D", f"{size}={value}")]
        process = await asyncio.create_subprocess_exec(
            *command("advisor.cli.app", "measure", file.path, "--kernel", name, *given),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        told, complaints = await process.communicate()
        if process.returncode:
            said = complaints.decode("utf-8", "replace").strip().splitlines()
            raise JsonRpcInvalidParams(said[-1] if said else "nothing was measured")
        return {**self._recheck(), "measured": told.decode("utf-8", "replace")}

    def _machines(self, *arguments: Any) -> list[dict[str, str]]:
        """Return the machines that can be chosen."""
        from costdb.machines import load_machine, machine_names

        return [{"name": name, "title": load_machine(name).title} for name in machine_names()]

    def _tell(self, problem: str) -> None:
        """Show a line to the user, once until settings change."""
        if problem in self._told:
            return
        self._told.add(problem)
        _log.warning("%s", problem)
        self.window_show_message(
            types.ShowMessageParams(types.MessageType.Warning, f"advise: {problem}")
        )


@contextmanager
def _refused() -> Iterator[None]:
    """Answer a command that names what cannot be with the reason."""
    try:
        yield
    except SettingError as problem:
        raise JsonRpcInvalidParams(str(problem)) from problem


async def _reply(asked: Any, what: str) -> Any:
    """Return the editor's reply to a request; None when it refuses or does not answer."""
    try:
        return await asyncio.wait_for(asked, _SETTINGS_TIMEOUT_S)
    except (JsonRpcException, TimeoutError) as error:
        _log.warning("%s: %s", what, error or "no reply")
        return None


def _may_be_here(machine: str) -> bool:
    from costdb.machines import MachineError, load_machine

    try:
        return load_machine(machine).may_be_here
    except MachineError:
        return False


def _warm_up() -> None:
    from costdb.machines import SHIPPED

    analyse("", _WARM_UP, Options(SHIPPED, {}, (), (), None))
    rule_pages()
    # what is there to stay: to look through it for garbage takes as long as an answer
    gc.freeze()


# Starts the server on the standard streams of the process.

_ENDED_WITHOUT_SHUTDOWN = 1


def serve(machine: str | None, log_file: str | None, version: str) -> int:
    """Serve until the editor ends the session; return the exit code the protocol asks for.

    Raises
    ------
    OSError
        The log file cannot be written.
    """
    if log_file is None:
        handler: logging.Handler = logging.StreamHandler()
    else:
        handler = logging.FileHandler(log_file, encoding="utf-8")
    logging.basicConfig(
        handlers=[handler],
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("pygls.protocol.json_rpc").addFilter(_no_refusal)
    # One stray print, ours or a library's, would break the protocol: from here on standard
    # output is the log, and only the server knows the real one.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        server = AdviseServer(version, Settings(machine=machine))
        server.start_io(sys.stdin.buffer, answers)
    return 0 if server.was_shut_down else _ENDED_WITHOUT_SHUTDOWN


def _no_refusal(record: logging.LogRecord) -> bool:
    """Keep what is no error out of the log: requests that the editor's typing has overtaken."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, JsonRpcContentModified | JsonRpcInvalidParams)
