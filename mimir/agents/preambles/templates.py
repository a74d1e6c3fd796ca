"""Templates of preambles: shipped with the package, or the project's own file of the same name, which wins.

The fixed rules are not among them: they come from the package alone and close every system message, so that no template, no generated
preamble and no edited file can override them.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal

from mimir.agents.preambles import frontmatter
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
"""Of the package, and of a project that has its own."""
MAX_BYTES = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PreambleTemplate:
    """A text that makes a system message, or a part of one."""

    name: Name
    version: str
    """`<version of its head>-<first 8 hex of its hash>`: an edit is another version even if nobody counts it up."""
    text: str
    own: bool = False
    """True: the project's own file."""

    @property
    def mark(self) -> str:
        """Name and version, as preambles made from it say."""
        return f"{self.name}@{self.version}"


def load_template(name: Name, project: Path | None) -> PreambleTemplate:
    """Return a template: the project's own file where there is one, else the shipped one.

    Args:
        name: Of the file, without `.md`.
        project: Top of the project; None: the shipped one.

    Raises:
        PlanError: The project's file cannot be read: no UTF-8, a broken head, too long, a link, empty.
    """
    own = None if project is None else read_own(project, f"{FOLDER}/{name}.md")
    if own is None:
        return _shipped(name)
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
    """Return the rules that close a system message: those of every agent, and the role's own where it has some."""
    every = _packaged("fixed/every.md")
    return f"{every}\n{_packaged(f'fixed/{kind}.md')}" if kind in ("worker", "qc") else every


def system_message(name: Name, project: Path | None) -> str:
    """Return the whole system message of a role that needs no generated preamble: planner, reporters, Ecko."""
    return f"{load_template(name, project).text}\n\n{fixed_rules(name)}"


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def read_own(project: Path, path: str) -> str | None:
    """Read a preamble file of a project; None: there is none.

    No link is followed: a cloned repository could lead one to a secret, and the text goes to a model.

    Raises:
        PlanError: It is there and cannot be read.
    """
    tree = DirectoryTree(project)
    try:
        if not tree.exists(path):
            return None
        data = tree.read(path, max_bytes=MAX_BYTES + 1)
        text = data.decode("utf-8")
    except (ToolError, WorkspaceError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from None
    if len(data) > MAX_BYTES:
        raise _unreadable(path, f"it has more than {MAX_BYTES} bytes")
    return text


def _unreadable(path: str, why: str) -> PlanError:
    return PlanError(
        f"{path} cannot be read: {why}",
        at=Location(file=path, line=1),
        code="unreadable-preamble",
        next_step=f"Correct {path}, or delete it.",
    )


@lru_cache(maxsize=32)
def _shipped(name: Name) -> PreambleTemplate:
    values, text = frontmatter.split_frontmatter(_packaged(f"{name}.md"), f"{name}.md")
    return _template(name, values["version"], text.strip(), own=False)


def _template(name: Name, version: str, text: str, *, own: bool) -> PreambleTemplate:
    return PreambleTemplate(name=name, version=f"{version}-{digest(text)[:8]}", text=text, own=own)


@lru_cache(maxsize=32)
def _packaged(path: str) -> str:
    package = resources.files("mimir")
    folder = package.joinpath(FOLDER)
    # A wheel ships the templates in the package; a checkout has them next to it.
    if not folder.is_dir():
        folder = Path(str(package)).parent / FOLDER
    return folder.joinpath(*path.split("/")).read_text(encoding="utf-8").strip()
