"""Trust in definitions of a project: hashes that the user approved."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mimir.errors import UsageError
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git.discovery import read_if_exists

FILE = "trusted-agents"


@dataclass(kw_only=True)
class AgentTrust:
    """The approved definitions of one project."""

    directory: Path | None
    """The user's own directory of states. None: there is none, so nothing can be trusted."""
    project_id: str

    def holds(self, hash: str, path: str) -> bool:
        """Return whether a definition is approved as it is now."""
        return self._line(hash, path) in self._lines

    def add(self, hash: str, path: str) -> None:
        """Approve a definition as it is now; the file is for its owner alone (0600).

        Raises:
            UsageError: There is no directory of the user.
        """
        if self.directory is None:
            raise UsageError(
                "There is no directory for your own state, so nothing can be trusted.",
                next_step="Set HOME or XDG_STATE_HOME.",
            )
        line = self._line(hash, path)
        if line in self._lines:
            return
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self.directory / FILE
        write_atomically(file, "".join(f"{one}\n" for one in (*self._lines, line)).encode())
        file.chmod(0o600)
        self._lines.append(line)

    @cached_property
    def _lines(self) -> list[str]:
        if self.directory is None:
            return []
        data = read_if_exists(self.directory / FILE) or b""
        return data.decode("utf-8", "replace").splitlines()

    def _line(self, hash: str, path: str) -> str:
        # A path may hold any sign except NUL, so a line break is escaped.
        return f"{hash}  {self.project_id}  {path.encode('unicode_escape').decode()}"
