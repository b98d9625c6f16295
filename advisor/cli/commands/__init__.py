"""The commands: a module for each, imported only when the command is used."""
