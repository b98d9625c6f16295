"use strict";

const { execFile } = require("node:child_process");
const { promisify } = require("node:util");
const { commandLine, machineItems, parseSize, serverOptions, sizesWith } = require("./settings");

const SECTION = "advise";
const LARGEST_REPORT_BYTES = 1 << 26;

/** Files, and texts that are none yet; not the cells of notebooks, which the command line reads. */
const SELECTOR = [
  { language: "python", scheme: "file" },
  { language: "python", scheme: "untitled" },
];

/** Starts the language server and offers its choices; everything else is the server's. */
class Extension {
  /**
   * @param vscode the editor's API
   * @param Client the class of `vscode-languageclient` that runs a server
   */
  constructor(vscode, Client) {
    this.vscode = vscode;
    this.Client = Client;
    this.client = undefined;
  }

  register(context) {
    const commands = {
      "advise.chooseMachine": () => this.chooseMachine(),
      "advise.chooseSize": () => this.chooseSize(),
      "advise.restart": () => this.restart(),
      "advise.report": (uri) => this.report(uri),
      "advise.verify": (uri) => this.verify(uri),
    };
    for (const [name, run] of Object.entries(commands)) {
      context.subscriptions.push(this.vscode.commands.registerCommand(name, run));
    }
    context.subscriptions.push(
      this.vscode.languages.registerCodeActionsProvider(SELECTOR, {
        provideCodeActions: (document, _, { diagnostics }) => this.actions(document, diagnostics),
      }),
      this.vscode.workspace.onDidChangeConfiguration((event) =>
        event.affectsConfiguration(`${SECTION}.server`) ? this.restart() : undefined,
      ),
    );
  }

  async start() {
    const client = new this.Client(
      SECTION,
      "Kernel Advisor",
      serverOptions(this.settings().get("server.command")),
      {
        documentSelector: SELECTOR,
        // sent when they change; the server asks for their values itself
        synchronize: { configurationSection: SECTION },
      },
    );
    try {
      await client.start();
      this.client = client;
    } catch (error) {
      this.vscode.window.showErrorMessage(
        `Kernel Advisor: the server does not start (${error.message}). It needs ` +
          "pip install 'kernel-advisor[lsp]', and advise.server.command when advise is not on the path.",
      );
    }
  }

  async stop() {
    const client = this.client;
    this.client = undefined;
    await client?.stop();
  }

  async restart() {
    await this.stop();
    await this.start();
  }

  /** What there is to do about a finding beside what the server offers: rewrites, "measure". */
  actions(document, diagnostics) {
    if (document.isUntitled || !diagnostics.some(({ source }) => source === SECTION)) {
      return [];
    }
    return [
      ["advise.report", "Show the report of this file, with pictures"],
      ["advise.verify", "Verify: run this file's kernels and compare (runs its code)"],
    ].map(([command, title]) => ({ title, command, arguments: [document.uri] }));
  }

  /** Show what `advise FILE --output-format html` writes, beside the text. */
  async report(uri) {
    const file = this.file(uri);
    if (!file) {
      return;
    }
    const options = ["--output-format", "html", "--exit-zero", ...this.given(), file];
    const [program, ...parameters] = this.commandLine("check", ...options);
    try {
      const { stdout } = await promisify(execFile)(program, parameters, {
        cwd: this.folder(uri),
        maxBuffer: LARGEST_REPORT_BYTES,
      });
      const { createWebviewPanel } = this.vscode.window;
      // it is one document without scripts
      const title = `Advise: ${file.split(/[\\/]/).pop()}`;
      const panel = createWebviewPanel("advise.report", title, this.vscode.ViewColumn.Beside, {
        enableScripts: false,
        localResourceRoots: [],
      });
      panel.webview.html = stdout;
    } catch (error) {
      this.vscode.window.showErrorMessage(`Kernel Advisor: ${error.stderr?.trim() || error.message}`);
    }
  }

  /** Run `advise verify FILE` where its output can be seen: it runs the file's kernels. */
  verify(uri) {
    const file = this.file(uri);
    if (!file) {
      return undefined;
    }
    const [program, ...parameters] = this.commandLine("verify", file);
    const { ProcessExecution, Task, TaskScope, tasks } = this.vscode;
    const execution = new ProcessExecution(program, parameters, { cwd: this.folder(uri) });
    return tasks.executeTask(
      new Task({ type: SECTION }, TaskScope.Workspace, "verify", SECTION, execution),
    );
  }

  /** The saved file that is meant: that of an action, else that of the editor in front. */
  file(uri) {
    const document = this.vscode.window.activeTextEditor?.document;
    const path = (uri ?? document?.uri)?.fsPath;
    if (!path) {
      this.vscode.window.showErrorMessage("Kernel Advisor: open a file of Python first");
    } else if (document?.isDirty && document.uri.fsPath === path) {
      this.vscode.window.showErrorMessage("Kernel Advisor: save the file first");
      return undefined;
    }
    return path;
  }

  folder(uri) {
    const place = uri ?? this.vscode.window.activeTextEditor?.document.uri;
    return (
      this.vscode.workspace.getWorkspaceFolder(place)?.uri.fsPath ??
      this.vscode.workspace.workspaceFolders?.[0]?.uri?.fsPath
    );
  }

  commandLine(...parameters) {
    return commandLine(this.settings().get("server.command"), parameters);
  }

  /** Machine and sizes of the settings as the command line takes them. */
  given() {
    const machine = this.settings().get("machine");
    const sizes = Object.entries(this.settings().get("sizes") ?? {});
    return [
      ...(machine ? ["--machine", machine] : []),
      ...sizes.flatMap(([name, value]) => ["-D", `${name}=${value}`]),
    ];
  }

  async chooseMachine() {
    const machines = await this.ask("advise.machines");
    const picked = await this.vscode.window.showQuickPick(
      machineItems(machines, this.settings().get("machine")),
      { placeHolder: "Predict for which machine?", matchOnDescription: true },
    );
    if (picked) {
      await this.save("machine", picked.label);
    }
  }

  async chooseSize() {
    const text = await this.vscode.window.showInputBox({
      prompt: "A size to predict for; without a number, the one in the source again",
      placeHolder: "N = 4096",
      validateInput: (typed) => parseSize(typed).problem,
    });
    if (text !== undefined) {
      const { name, value } = parseSize(text);
      await this.save("sizes", sizesWith(this.settings().get("sizes"), name, value));
    }
  }

  settings() {
    return this.vscode.workspace.getConfiguration(SECTION);
  }

  /** For this workspace when there is one, so that every project has its machine. */
  save(name, value) {
    const target = this.vscode.ConfigurationTarget;
    const place = this.vscode.workspace.workspaceFolders?.length ? target.Workspace : target.Global;
    return this.settings().update(name, value, place);
  }

  ask(command, ...parameters) {
    if (!this.client) {
      throw new Error("the server of Kernel Advisor is not running");
    }
    return this.client.sendRequest("workspace/executeCommand", { command, arguments: parameters });
  }
}

module.exports = { Extension, SECTION };
