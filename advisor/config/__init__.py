"""What ``[tool.advise]`` in a ``pyproject.toml`` says, and what holds for a file in the end."""
