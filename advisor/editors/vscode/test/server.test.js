"use strict";

// The extension against the real server. VS Code itself is not here: a stand-in answers what the
// extension asks of it, and a small client speaks the protocol with the pieces that
// vscode-languageclient is made of.

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const protocol = require("vscode-languageserver-protocol/node");
const manifest = require("../package.json");
const { Extension } = require("../src/extension");

const PYTHON = process.env.ADVISE_PYTHON ?? "python3";
const URI = "file:///kernels/smooth.py";
const KERNEL = `from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

ranks = Mesh(rank=17)


@kernel(N=1000)
def smooth(
    field: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=ranks)],
) -> NDArray[np.float64]:
    above = field.copy()
    above[:, 1:] = field[:, :-1]
    return above
`;

/** The editor's API, as far as the extension uses it. */
function standIn(settings) {
  const properties = manifest.contributes.configuration.properties;
  const listeners = [];
  const commands = new Map();
  const editor = {
    settings,
    commands: {
      registerCommand(name, run) {
        commands.set(name, run);
        return { dispose() {} };
      },
      executeCommand: (name) => commands.get(name)(),
    },
    window: {
      errors: [],
      panels: [],
      showErrorMessage: (text) => editor.window.errors.push(text),
      createWebviewPanel(kind, title, place, options) {
        const panel = { kind, title, place, options, webview: {} };
        editor.window.panels.push(panel);
        return panel;
      },
    },
    ViewColumn: { Beside: -2 },
    TaskScope: { Workspace: 2 },
    ProcessExecution: class {
      constructor(process, args, options) {
        Object.assign(this, { process, args, options });
      }
    },
    Task: class {
      constructor(definition, scope, name, source, execution) {
        Object.assign(this, { definition, scope, name, source, execution });
      }
    },
    tasks: { executeTask: async (task) => task },
    languages: {
      registerCodeActionsProvider(selector, provider) {
        editor.provider = provider;
        return { dispose() {} };
      },
    },
    workspace: {
      workspaceFolders: [{}],
      getWorkspaceFolder: () => undefined,
      getConfiguration: (section) => ({
        get: (name) => settings[name] ?? properties[`${section}.${name}`].default,
        async update(name, value, target) {
          assert.equal(target, editor.ConfigurationTarget.Workspace);
          settings[name] = value;
          const affectsConfiguration = (key) => `${section}.${name}`.startsWith(key);
          for (const listener of listeners) {
            await listener({ affectsConfiguration });
          }
        },
      }),
      onDidChangeConfiguration(listener) {
        listeners.push(listener);
        return { dispose() {} };
      },
    },
    ConfigurationTarget: { Global: 1, Workspace: 2 },
  };
  return editor;
}

/** What vscode-languageclient does for the extension: run the server, answer it, pass requests. */
function clientOf(editor) {
  return class Client {
    constructor(id, name, server, options) {
      this.server = server;
      this.section = options.synchronize.configurationSection;
      const schemes = options.documentSelector.map(({ language, scheme }) => [language, scheme]);
      assert.deepEqual(schemes, [["python", "file"], ["python", "untitled"]]);
    }

    async start() {
      this.process = spawn(this.server.command, this.server.args, { stdio: ["pipe", "pipe", "pipe"] });
      this.errors = "";
      this.process.stderr.on("data", (data) => (this.errors += data));
      await new Promise((resolve, reject) => {
        this.process.once("spawn", resolve);
        this.process.once("error", reject);
      });
      this.connection = protocol.createProtocolConnection(
        new protocol.StreamMessageReader(this.process.stdout),
        new protocol.StreamMessageWriter(this.process.stdin),
      );
      this.connection.onRequest(protocol.ConfigurationRequest.type, ({ items }) =>
        items.map(({ section }) => {
          assert.equal(section, this.section);
          return { ...editor.settings };
        }),
      );
      this.refreshed = 0;
      this.connection.onRequest(protocol.DiagnosticRefreshRequest.type, () => {
        this.refreshed += 1;
      });
      this.connection.onRequest(protocol.RegistrationRequest.type, () => {});
      this.pushed = 0;
      this.connection.onNotification(protocol.PublishDiagnosticsNotification.type, () => {
        this.pushed += 1;
      });
      this.connection.listen();
      const started = await this.connection.sendRequest(protocol.InitializeRequest.type, {
        processId: process.pid,
        rootUri: null,
        capabilities: {
          workspace: {
            configuration: true,
            didChangeConfiguration: { dynamicRegistration: true },
            diagnostics: { refreshSupport: true },
            workspaceEdit: { documentChanges: true },
          },
          textDocument: {
            diagnostic: {},
            hover: { contentFormat: ["markdown"] },
            codeAction: {
              codeActionLiteralSupport: { codeActionKind: { valueSet: [] } },
              dataSupport: true,
              resolveSupport: { properties: ["edit"] },
            },
          },
        },
      });
      this.capabilities = started.capabilities;
      await this.connection.sendNotification(protocol.InitializedNotification.type, {});
    }

    sendRequest(method, parameters) {
      return this.connection.sendRequest(method, parameters);
    }

    async stop() {
      await this.connection.sendRequest(protocol.ShutdownRequest.type);
      const ended = new Promise((resolve) => this.process.once("exit", resolve));
      await this.connection.sendNotification(protocol.ExitNotification.type);
      assert.equal(await ended, 0, this.errors);
      this.connection.dispose();
    }
  };
}

let editor;
let extension;
const open = () =>
  extension.client.connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, {
    textDocument: { uri: URI, languageId: "python", version: 1, text: KERNEL },
  });
const pull = () =>
  extension.client.connection.sendRequest(protocol.DocumentDiagnosticRequest.type, {
    textDocument: { uri: URI },
  });
const changed = () =>
  extension.client.connection.sendNotification(protocol.DidChangeConfigurationNotification.type, {
    settings: null,
  });

before(async () => {
  editor = standIn({
    machine: "sp2",
    minSpeedup: 1.01,
    "server.command": [PYTHON, "-m", "advisor", "lsp"],
  });
  extension = new Extension(editor, clientOf(editor));
  const context = { subscriptions: [] };
  extension.register(context);
  assert.equal(context.subscriptions.length, 7);
  await extension.start();
  assert.deepEqual(editor.window.errors, []);
  await open();
});

after(() => extension.stop());

test("what the manifest offers is there", () => {
  const offered = manifest.contributes.commands.map(({ command }) => command);
  const served = extension.client.capabilities.executeCommandProvider.commands;
  for (const command of offered) {
    const local = [
      "advise.chooseMachine",
      "advise.chooseSize",
      "advise.restart",
      "advise.report",
      "advise.verify",
    ].includes(command);
    // one that both sides had would be registered twice, which VS Code refuses
    assert.notEqual(local, served.includes(command), command);
  }
});

test("a finding is shown, explained and applied", async () => {
  const report = await pull();
  assert.equal(report.kind, "full");
  assert.equal(report.items.length, 1);
  const [found] = report.items;
  // a class each: a plan is a hint
  assert.equal(found.severity, 4);
  assert.match(found.message, /^PLAN 1\.\d\dx .* ranks of sp2: distribute/);
  assert.equal(extension.client.pushed, 0);
  const hover = await extension.client.sendRequest("textDocument/hover", {
    textDocument: { uri: URI },
    position: found.range.start,
  });
  assert.match(hover.contents.value, /\| before \| after \|/);
  const [action] = await extension.client.sendRequest("textDocument/codeAction", {
    textDocument: { uri: URI },
    range: found.range,
    context: { diagnostics: [found] },
  });
  assert.equal(action.edit, undefined);
  const { edit } = await extension.client.sendRequest("codeAction/resolve", action);
  const [{ edits, textDocument }] = edit.documentChanges;
  assert.deepEqual(textDocument, { uri: URI, version: 1 });
  const lines = KERNEL.split("\n");
  for (const { range, newText } of [...edits].reverse()) {
    const line = lines[range.start.line];
    lines[range.start.line] =
      line.slice(0, range.start.character) + newText + line.slice(range.end.character);
  }
  assert.equal(lines.join("\n"), KERNEL.replace('None, Block("rank")', 'Block("rank"), None'));
});

test("the report of a file is shown beside it, and verifying is a task", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "advise-"));
  const file = path.join(folder, "smooth.py");
  fs.writeFileSync(file, KERNEL);
  const uri = { fsPath: file };
  const source = { source: "advise" };
  const document = { uri, isUntitled: false };
  assert.deepEqual(editor.provider.provideCodeActions(document, {}, { diagnostics: [] }), []);
  const actions = editor.provider.provideCodeActions(document, {}, { diagnostics: [source] });
  assert.deepEqual(
    actions.map(({ command }) => command),
    ["advise.report", "advise.verify"],
  );
  await extension.report(uri);
  assert.deepEqual(editor.window.errors, []);
  const [panel] = editor.window.panels;
  assert.match(panel.webview.html, /^<!doctype html>[^]*ADV101[^]*<\/html>\s*$/i);
  assert.deepEqual([panel.title, panel.options.enableScripts], ["Advise: smooth.py", false]);
  const { execution } = await extension.verify(uri);
  assert.deepEqual([execution.process, ...execution.args], [PYTHON, "-m", "advisor", "verify", file]);
  editor.window.activeTextEditor = { document: { uri, isDirty: true } };
  assert.equal(extension.verify(), undefined);
  assert.match(editor.window.errors.pop(), /save the file first/);
  editor.window.activeTextEditor = undefined;
  await extension.report();
  assert.match(editor.window.errors.pop(), /open a file of Python first/);
  await extension.report({ fsPath: path.join(folder, "gone.py") });
  assert.match(editor.window.errors.pop(), /gone.py: No such file/);
  fs.rmSync(folder, { recursive: true });
});

test("choosing a machine asks the server which there are, and predicts for it", async () => {
  editor.window.showQuickPick = async (items) => {
    assert.equal(items[0].label, "sp2");
    return items.find(({ label }) => label === "t3e");
  };
  await editor.commands.executeCommand("advise.chooseMachine");
  assert.equal(editor.settings.machine, "t3e");
  await changed();
  const { items } = await pull();
  assert.match(items[0].message, / ranks of t3e: /);
  assert.ok(extension.client.refreshed > 0);
});

test("choosing a size predicts for it", async () => {
  editor.window.showInputBox = async ({ validateInput }) => {
    assert.ok(validateInput("N = many"));
    assert.equal(validateInput("N = 50"), undefined);
    return "N = 50";
  };
  await editor.commands.executeCommand("advise.chooseSize");
  assert.deepEqual(editor.settings.sizes, { N: 50 });
  await changed();
  const { items } = await pull();
  const hover = await extension.client.sendRequest("textDocument/hover", {
    textDocument: { uri: URI },
    position: items[0].range.start,
  });
  assert.match(hover.contents.value, /N = 50 \(editor\)/);
});

test("a server that cannot start is said to the user, and a right command starts it", async () => {
  const configuration = editor.workspace.getConfiguration("advise");
  const working = configuration.get("server.command");
  await configuration.update("server.command", ["no-such-program-anywhere"], 2);
  assert.equal(editor.window.errors.length, 1);
  assert.match(editor.window.errors[0], /kernel-advisor\[lsp\]/);
  assert.throws(() => extension.ask("advise.machines"), /not running/);
  await configuration.update("server.command", working, 2);
  await open();
  assert.equal((await pull()).items.length, 1);
});
