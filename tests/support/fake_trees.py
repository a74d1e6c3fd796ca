"""A history of trees in memory and a sandbox that runs Python functions, for tests of checks."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mimir.domain.globs import matches
from mimir.errors import MimirError

Files = Mapping[str, str]


@dataclass(frozen=True)
class FakeChange:
    path: str
    status: str


@dataclass
class FakeHistory:
    """Trees by the hash of their files."""

    trees: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def put(self, files: Files) -> str:
        id = hashlib.sha1(json.dumps(sorted(files.items())).encode()).hexdigest()
        self.trees[id] = dict(files)
        return id

    async def checkout(self, tree: str, where: Path) -> None:
        write_files(where, self.trees[tree])

    async def diff_trees(self, a: str, b: str) -> tuple[FakeChange, ...]:
        old, new = self.trees[a], self.trees[b]
        return tuple(
            FakeChange(p, "added" if p not in old else "deleted" if p not in new else "modified")
            for p in sorted({*old, *new})
            if old.get(p) != new.get(p)
        )

    async def paths(self, tree: str, globs: Sequence[str] | None = None) -> tuple[str, ...]:
        return tuple(p for p in self.trees[tree] if globs is None or matches(p, globs))

    async def file(self, tree: str, path: str) -> bytes | None:
        text = self.trees[tree].get(path)
        return None if text is None else text.encode()

    async def find_installed(self, names: Sequence[str]) -> tuple[str, ...]:
        return ()

    async def with_files(self, tree: str, from_tree: str, globs: Sequence[str]) -> str:
        kept = {p: t for p, t in self.trees[tree].items() if not matches(p, globs)}
        taken = {p: t for p, t in self.trees[from_tree].items() if matches(p, globs)}
        return self.put(kept | taken)


@dataclass(frozen=True, kw_only=True)
class FakeRan:
    exit_code: int | None = 0
    output: str = ""
    seconds: float = 0.01
    timed_out: bool = False
    advice: str = ""
    is_program_missing: bool = False
    backend: str = "bubblewrap"

    @property
    def output_hash(self) -> str:
        return hashlib.sha256(self.output.encode()).hexdigest()


GREEN = FakeRan(output="1 passed in 0.01s\n")
RED = FakeRan(exit_code=1, output="1 failed\n")
TIMEOUT = FakeRan(exit_code=None, timed_out=True)
MISSING = FakeRan(exit_code=None, is_program_missing=True)
CUT_SHORT = FakeRan()
"""As a test runner whose process the work ends with 0."""


@dataclass(frozen=True)
class Seen:
    """The files and arguments of one command."""

    argv: tuple[str, ...]
    files: Files
    answer: str
    workspace: Path
    number: int
    """1-based, of all runs."""


def write_files(where: Path, files: Files) -> None:
    where.mkdir()
    for path, text in files.items():
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_text(text)


def look(argv: Sequence[str], workspace: Path, answer: Path | None, number: int) -> Seen:
    files = {
        str(p.relative_to(workspace)): p.read_text()
        for p in sorted(workspace.rglob("*"))
        if p.is_file()
    }
    return Seen(tuple(argv), files, answer.read_text() if answer else "", workspace, number)


@dataclass
class FakeSandbox:
    """Runs `program` on the files of a command."""

    program: Callable[[Seen], FakeRan]
    seen: list[Seen] = field(default_factory=list[Seen])
    broken: MimirError | None = None

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        seconds: float,
        extra_ro: Mapping[str, Path] | None = None,
        extra_rw: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
        first: Mapping[str, str] | None = None,
    ) -> FakeRan:
        assert seconds > 0
        if self.broken:
            raise self.broken
        answer = (extra_ro or {}).get((env or {}).get("MIMIR_ANSWER", ""))
        one = look(argv, workspace, answer, len(self.seen) + 1)
        self.seen.append(one)
        ran = self.program(one)
        for folder in (extra_rw or {}).values():
            _write_report(folder, ran)
        return ran


def _write_report(folder: Path, ran: FakeRan) -> None:
    """Write the report of the engine's pytest plugin: the tests of the last line of the output."""
    found = re.findall(r"(\d+) (passed|failed|skipped)", ran.output)
    if ran.exit_code is None or not (found or "no tests ran" in ran.output):
        return
    lines = [["runner", "pytest"]]
    lines += [
        [kind, f"tests/test_a.py::test_{at}"] for count, kind in found for at in range(int(count))
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in [*lines, ["end", "0"]])
    (folder / "pytest-1.jsonl").write_text(text)
