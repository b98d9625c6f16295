"use strict";

/** How the client starts the server: a program and its arguments, over standard input and output. */
function serverOptions(command) {
  const [program, ...parameters] = command?.length ? command : ["advise", "lsp"];
  return { command: program, args: parameters };
}

/** The program as the server is started, with another command in the place of `lsp`. */
function commandLine(command, parameters) {
  const { command: program, args } = serverOptions(command);
  const place = args.lastIndexOf("lsp");
  return [program, ...args.slice(0, place < 0 ? args.length : place), ...parameters];
}

/** Machines as lines to pick from, the chosen one first. */
function machineItems(machines, chosen) {
  const items = machines.map(({ name, title }) => ({
    label: name,
    description: title,
    picked: name === chosen,
  }));
  return items.sort((one, other) => Number(other.picked) - Number(one.picked));
}

/** Reads "N = 4096", or "N" to let the source decide; `problem` says what is wrong. */
function parseSize(text) {
  const found = /^\s*([A-Za-z_][\w.]*)\s*(?:=\s*(\S*)\s*)?$/.exec(text);
  if (!found) {
    return { problem: "a name and a number, such as N = 4096" };
  }
  const [, name, written] = found;
  if (!written) {
    return { name };
  }
  const value = Number(written);
  if (!Number.isFinite(value) || value <= 0) {
    return { problem: `${written} is not a positive number` };
  }
  return { name, value };
}

/** The sizes with one bound, or unbound when it has no value. */
function sizesWith(sizes, name, value) {
  const changed = { ...sizes };
  delete changed[name];
  return value === undefined ? changed : { ...changed, [name]: value };
}

module.exports = { commandLine, machineItems, parseSize, serverOptions, sizesWith };
