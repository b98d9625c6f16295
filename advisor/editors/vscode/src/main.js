"use strict";

// The only file that needs VS Code; what it does is in extension.js, where tests reach it.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { Extension } = require("./extension");

let extension;

exports.activate = async function activate(context) {
  extension = new Extension(vscode, LanguageClient);
  extension.register(context);
  await extension.start();
};

exports.deactivate = function deactivate() {
  return extension?.stop();
};
