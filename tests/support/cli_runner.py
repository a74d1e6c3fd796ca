"""The command line in this process: arguments in; exit code, both streams and the files out.

The model is a script behind a real HTTP server: only the start of a process is left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mimir.cli.main import run
from tests.support.script_server import PlayServer

KEY = "sk-test-0123456789"


@dataclass(frozen=True, kw_only=True)
class Said:
    """The result of one command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout; any other text there is an error."""
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The JSON lines on stdout; any other text there is an error."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> list[str]:
        """The lines of the error, without warnings."""
        return [line for line in self.err.splitlines() if not line.startswith("warning:")]


class Desk:
    """A directory, an endpoint, and `mimir` typed there."""

    def __init__(
        self, project: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.project = project
        self._capsys = capsys
        self._patch = patch
        project.mkdir(exist_ok=True)
        patch.chdir(project)

    def ask(self, server: PlayServer, **settings: object) -> "Desk":
        """Let the model be at this server; `settings` as environment variables of mimir, such as `LLM__TRIES=2`."""
        self.environ(OPENAI_BASE_URL=server.url, OPENAI_API_KEY=KEY, MIMIR_LLM__LANE_HEADER="true")
        self.environ(**{f"MIMIR_{name}": value for name, value in settings.items()})
        return self

    def environ(self, **variables: object) -> None:
        """Set variables of the environment."""
        for name, value in variables.items():
            self._patch.setenv(name, str(value))

    def unset(self, *names: str) -> None:
        """Take variables out of the environment."""
        for name in names:
            self._patch.delenv(name, raising=False)

    def type(self, *words: str) -> Said:
        """Type `mimir` with these words, to its end."""
        self._capsys.readouterr()
        code = run(words)
        out, err = self._capsys.readouterr()
        return Said(code=code, out=out, err=err)

    def write(self, path: str, text: str) -> Path:
        """Write a file of the project."""
        target = self.project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def files(self, *, work: bool = False) -> set[str]:
        """Return all files of the project; `.mimir/work` only if wanted."""
        found = (p.relative_to(self.project) for p in self.project.rglob("*") if p.is_file())
        return {str(p) for p in found if work or p.parts[:2] != (".mimir", "work")}

    def status(self) -> dict[str, Any]:
        """Return `status --json`."""
        return self.type("status", "--json").json

    def statuses(self) -> Mapping[str, str]:
        """Return the status of each task of the newest run."""
        return {task["id"]: task["status"] for task in self.status()["tasks"]}


def asked_twice(server: PlayServer) -> Sequence[str]:
    """Return the lanes of a run's tasks in which an equal request came more than once."""
    seen = [(s.caller.lane, s.turn, s.hash) for s in server.requests]
    return sorted({lane for lane, turn, hash in seen if seen.count((lane, turn, hash)) > 1})
