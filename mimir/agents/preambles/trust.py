"""Trust in the preamble files of a project, which become system messages.

A file is used if it is shipped, was generated in this project, or is trusted as it is; a cloned repository may bring others. That trust is kept in the
user's own directory; hashes of generated files are kept in the state directory of the project, which no repository brings.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from mimir.agents.preambles import templates
from mimir.domain.value_class import value_class
from mimir.errors import PlanError, UsageError
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git.discovery import read_if_exists
from mimir.workspace.paths import DirectoryTree
from mimir.workspace.safe_walk import quote_path

USER_FILE = "trusted-preambles"
STATE_FILE = "generated-preambles"
GENERATED = "generated-agents"

State = Literal["shipped", "generated", "trusted", "ignored"]


@value_class
class ListedPreamble:
    """A preamble file of a project."""

    path: str
    hash: str
    state: State


@value_class
class OwnPreambles:
    """The preamble files of one project."""

    project: Path
    user_directory: Path | None
    """The user's own settings directory. None: there is none, so nothing can be trusted."""
    state_directory: Path

    def read(self, path: str) -> str | None:
        """Return the text of a file that may be used; None: absent or ignored.

        Raises:
            PlanError: The file cannot be read, for example because it is a link.
        """
        text = templates.read_own(self.project, path)
        return None if text is None or self._state(path, text) == "ignored" else text

    def is_ignored(self, path: str) -> bool:
        """Return whether a file exists and may not be used."""
        try:
            return templates.read_own(self.project, path) is not None and self.read(path) is None
        except PlanError:
            return False

    def list_files(self) -> tuple[ListedPreamble, ...]:
        """List the templates and generated files of the project, sorted by path."""
        return tuple(self._list_files())

    def _list_files(self) -> Iterator[ListedPreamble]:
        tree = DirectoryTree(self.project)
        known = {f"{templates.FOLDER}/{name}.md" for name in get_args(templates.Name)}
        found = [path for path in known if tree.exists(path)]
        found += tree.walk(f"{GENERATED}/*.md")
        for path in sorted(found):
            try:
                text = templates.read_own(self.project, path)
            except PlanError:
                continue  # the run itself refuses it
            if text is not None:
                state = self._state(path, text)
                yield ListedPreamble(path=path, hash=templates.digest(text), state=state)

    def trust(self, path: str) -> ListedPreamble:
        """Trust a file as it is now.

        Raises:
            UsageError: There is no such preamble file, or no directory of the user.
        """
        listed = {one.path: one for one in self.list_files()}
        one = listed.get(path.removeprefix("./"))
        if one is None:
            raise UsageError(
                f"{quote_path(path)} is no preamble file of this project.",
                next_step="List them: mimir preambles",
            )
        if self.user_directory is None:
            raise UsageError(
                "There is no directory for your own settings, so nothing can be trusted.",
                next_step="Set HOME or MIMIR_CONFIG.",
            )
        _add_line(self.user_directory / USER_FILE, f"{one.hash}  {one.path}")
        return replace(one, state="trusted")

    def remember_generated(self, path: str, text: str) -> None:
        """Record a file that mimir is about to write; it stays usable without a question."""
        _add_line(self.state_directory / STATE_FILE, f"{templates.digest(text)}  {path}")

    def _state(self, path: str, text: str) -> State:
        line = f"{templates.digest(text)}  {path}"
        if path.startswith(f"{GENERATED}/"):
            if line in _read_lines(self.state_directory / STATE_FILE):
                return "generated"
        elif templates.is_shipped(path, text):
            return "shipped"
        directory = self.user_directory
        is_trusted = directory is not None and line in _read_lines(directory / USER_FILE)
        return "trusted" if is_trusted else "ignored"


def describe_ignored(path: str) -> str:
    """Return the warning about a file that is ignored."""
    return f"{path} is ignored: it may come from the repository. Read it, then use it: mimir preambles trust {path}"


def _read_lines(file: Path) -> list[str]:
    return (read_if_exists(file) or b"").decode("utf-8", "replace").splitlines()


def _add_line(file: Path, line: str) -> None:
    lines = _read_lines(file)
    if line not in lines:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(file, "".join(f"{one}\n" for one in (*lines, line)).encode())
