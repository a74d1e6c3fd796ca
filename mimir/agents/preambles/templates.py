"""Preamble templates: shipped with the package, or the project's own trusted file.

The fixed rules come from the package alone and close every system message: no template, generated preamble or edited file can
override them.
"""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal

from mimir.agents.preambles import frontmatter
from mimir.domain.value_class import value_class
from mimir.errors import Location, PlanError, ToolError, WorkspaceError
from mimir.workspace.paths import DirectoryTree

Name = Literal[
    "ecko",
    "pm",
    "agentinator",
    "worker",
    "qc",
    "qc-failure",
    "pm-report",
    "tool-execution",
    "verification",
]
FOLDER = "preambles"
MAX_BYTES = 64_000


@value_class
class PreambleTemplate:
    """Text of a system message, or of a part of one."""

    name: Name
    version: str
    """`<front matter's version>-<8 hex digits of its hash>`: every edit is a new one."""
    text: str
    own: bool = False
    """True: the project's own file."""

    @property
    def mark(self) -> str:
        """Name and version, for preambles generated from it."""
        return f"{self.name}@{self.version}"


OwnReader = Callable[[str], str | None]
"""Returns the text of a preamble file of the project; None: absent or ignored."""


def load_template(name: Name, read: OwnReader | None) -> PreambleTemplate:
    """Return the project's own template, or the shipped one; `PlanError` if it is invalid."""
    own = None if read is None else read(f"{FOLDER}/{name}.md")
    if own is None:
        return _load_shipped(name)
    values, text = frontmatter.split_frontmatter(own, f"{FOLDER}/{name}.md")
    if not text.strip():
        raise PlanError(
            f"{FOLDER}/{name}.md holds no text.",
            at=Location(file=f"{FOLDER}/{name}.md", line=1),
            code="empty-preamble",
            next_step="Write the preamble, or delete the file: the shipped one is then used.",
        )
    return _template(name, values.get("version", "0"), text.strip(), own=True)


def fixed_rules(kind: str) -> str:
    """Return the rules that close a system message: of every agent, and of the role."""
    # An invoked agent is a worker that answers in the response form.
    names = {"worker": ("worker",), "qc": ("qc",), "agent": ("worker", "agent")}.get(kind, ())
    return "\n".join(_read_packaged(f"fixed/{name}.md") for name in ("every", *names))


def system_message(name: Name, read: OwnReader | None, *, addition: str = "") -> str:
    """Return the system message of a role without generated preamble: PM, reporters, Ecko."""
    own = load_template(name, read).text
    return "\n\n".join(part for part in (own, addition, fixed_rules(name)) if part)


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def read_own(project: Path, path: str) -> str | None:
    """Return the text of a project's preamble file; None: absent. `PlanError` if unreadable."""
    # No link is followed: a cloned repository could link to a secret, and the text goes to a model.
    tree = DirectoryTree(project)
    try:
        if not tree.exists(path):
            return None
        data = tree.read(path, max_bytes=MAX_BYTES + 1)
        text = data.decode("utf-8")
        if len(data) > MAX_BYTES:
            raise ToolError(f"it has more than {MAX_BYTES} bytes")
    except (ToolError, WorkspaceError, UnicodeDecodeError) as error:
        raise PlanError(
            f"{path} cannot be read: {error}",
            at=Location(file=path, line=1),
            code="unreadable-preamble",
            next_step=f"Correct {path}, or delete it.",
        ) from None
    return text


def is_shipped(path: str, text: str) -> bool:
    """Return whether a file has the text of the shipped template of its name."""
    return _read_packaged(path.removeprefix(f"{FOLDER}/")) == text.strip()


@lru_cache(maxsize=32)
def _load_shipped(name: Name) -> PreambleTemplate:
    values, text = frontmatter.split_frontmatter(_read_packaged(f"{name}.md"), f"{name}.md")
    return _template(name, values["version"], text.strip(), own=False)


def _template(name: Name, version: str, text: str, *, own: bool) -> PreambleTemplate:
    return PreambleTemplate(name=name, version=f"{version}-{digest(text)[:8]}", text=text, own=own)


@lru_cache(maxsize=32)
def _read_packaged(path: str) -> str:
    package = resources.files("mimir")
    folder = package.joinpath(FOLDER)
    # A wheel ships the templates in the package; a checkout has them next to it.
    if not folder.is_dir():
        folder = Path(str(package)).parent / FOLDER
    return folder.joinpath(*path.split("/")).read_text(encoding="utf-8").strip()
