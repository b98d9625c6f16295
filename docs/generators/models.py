"""An index of the model pages: what each is about, and which machines have its numbers."""

from __future__ import annotations

from pathlib import Path

from costdb.machines import built_in_names, load_machine
from generators.markdown import first_sentence, table


def pages(root: Path) -> dict[str, str]:
    """Return the index of models."""
    rows = []
    for path in sorted((root / "docs" / "models").glob("*.md")):
        title, _, body = path.read_text(encoding="utf-8").partition("\n")
        machines = [name for name in built_in_names() if load_machine(name).section(path.stem)]
        links = ", ".join(f"[{name}](../machines/{name}.md)" for name in machines)
        rows.append(
            [f"[{title.removeprefix('# ')}]({path.name})", first_sentence(body), links or "any"]
        )
    text = (
        "# Models\n\n"
        "What a kernel, a program or a description does is priced by the model that its work "
        "belongs to. A model's coefficients stay symbols until a machine's numbers are put in; "
        "what a machine has no number for is not priced, and the answer says what is missing.\n\n"
    )
    return {"models/index.md": text + table(("Model", "In short", "Machines"), rows)}
