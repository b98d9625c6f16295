"use strict";

const { machineItems, parseSize, serverOptions, sizesWith } = require("./settings");

const SECTION = "advise";

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
    };
    for (const [name, run] of Object.entries(commands)) {
      context.subscriptions.push(this.vscode.commands.registerCommand(name, run));
    }
    context.subscriptions.push(
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
        documentSelector: [{ language: "python" }],
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
