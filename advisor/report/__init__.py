"""Reports: the same facts for a person, a script, an editor or a build server."""
