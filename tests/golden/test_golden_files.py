"""Golden files of the interfaces for scripts: JSON of the command line, a recording, and a store's dump.

Sources are the stores that earlier schemas have written (`tests/stores`), plans with and without findings (`tests/golden/plans`),
and one new run with a scripted model. `tests/support/golden_parts.py` defines the parts of a document:

- `*.machine.jsonl`: members, order, types, codes, formatting. A rename of code leaves them as they are, byte for byte.
- `*.prose.jsonl`: free text. They change if a message or a prompt is rewritten.
- `*.derived.json`: token counts, and the hashes that are equal in two runs. They change with prompts, too.
- `*.dump.*`: the export of an old store, whole. Only the absolute path of its project is replaced.

Write all golden files again: `MIMIR_WRITE_GOLDEN=1 .venv/bin/python -m pytest -q -n0 tests/golden`. Review the diff of each part.
"""

import json
import os
import sys
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
import yaml

from mimir.planning.renderer import render
from tests.support.crash.process_forge import run_python
from tests.support.environment import WRITE_GOLDEN
from tests.support.golden_parts import Parts, compare, split, without_paths
from tests.support.projects import make_project
from tests.support.whole_run import REST, Part, calls, plan, step, worker, writes, wrote

HERE = Path(__file__).parent
FILES = HERE / "files"
STORES = HERE.parent / "stores"
PLANS = sorted((HERE / "plans").glob("*.md"))
VERSIONS = (1, 2)
WRITE = os.environ.get(WRITE_GOLDEN) == "1"
DATE = "2030-01-02T03:04:05Z"

TASKS = plan(step("first"), step("second", "first", max_retries=1), title="Two small files")
LOOK = {"calls": [calls("read_file", path="README.md"), calls("list_files", glob="*")]}
PARTS: Sequence[Part] = (
    worker("first", LOOK, writes("first.txt", "first\n"), "first.txt is written."),
    worker("second", writes("second.txt", "wrong\n"), "Done.", attempt=1),
    wrote("second", attempt=2),
    *REST,
)
RUN = (
    "execute", "plan.md", "--yes", "--json", "--workers", "1", "--apply", "never",
    "--model", "play:../play.yaml", "--record", "run.jsonl",
)  # fmt: skip
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run-events": RUN,
    "run-status": ("status", "--json"),
    "run-report": ("report", "--json"),
    "run-verify": ("verify", "--json"),
    "run-dump": ("export", "--format", "jsonl"),
    "run-replay": ("replay", "run.jsonl", "--json"),
}
NEW_RUN = (*COMMANDS, "run-recording", "run-files")
CHECKS = tuple(f"check-{path.stem}" for path in PLANS)
KEPT = tuple(f"schema-{n}-{what}" for n in VERSIONS for what in ("status", "report", "verify"))
DUMPS = tuple(f"schema-{n}.dump.{form}" for n, form in ((1, "jsonl"), (2, "jsonl"), (2, "cypher")))


def mimir(project: Path, *words: str, exit_code: int | None = 0) -> str:
    """Run a command in a process of its own; its standard output."""
    own = {
        "PYTHONPATH": str(HERE.parents[1]),
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "MIMIR_RUN__PARALLEL_CHECKS": "1",  # two at once would be numbered in either order
    }
    command = [sys.executable, "-m", "mimir", *words]
    done = run_python(command, cwd=project, env={**os.environ, **own})
    assert exit_code in (None, done.returncode), done.stderr
    return done.stdout


def new_run(where: Path) -> Mapping[str, str]:
    """Run the scripted plan in a new project; its documents by name."""
    files = {
        "README.md": "# Two small files\n",
        "first.txt": "",
        "second.txt": "",
        "plan.md": render(TASKS),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_AUTHOR_DATE", DATE)
        patch.setenv("GIT_COMMITTER_DATE", DATE)
        project = make_project(where / "project", files)
    play = yaml.safe_dump({"parts": list(PARTS)})
    (where / "play.yaml").write_text(play, encoding="utf-8")
    made = {name: mimir(project, *words) for name, words in COMMANDS.items()}
    made["run-recording"] = (project / "run.jsonl").read_text(encoding="utf-8")
    found = (path.relative_to(project) for path in project.rglob("*") if path.is_file())
    names = sorted(str(p) for p in found if p.parts[0] != ".git" and p.parts[:2] != WORK)
    made["run-files"] = "".join(f"{json.dumps(name)}\n" for name in names)
    return made


WORK = (".mimir", "work")
"""Folder of workspaces and of the hidden repository: no script reads it."""


class Sources:
    """All documents, each made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.parts = cache(self.parts)  # type: ignore[method-assign]
        self.run = cache(self.run)  # type: ignore[method-assign]
        self._kept = cache(self._kept)  # type: ignore[method-assign]

    def parts(self, name: str) -> Parts:
        """Return the parts of a document."""
        if name in NEW_RUN:
            return self._split(name, self.run(1)[name])
        if name in CHECKS:
            text = mimir(
                HERE / "plans",
                "check",
                f"{name.removeprefix('check-')}.md",
                "--json",
                exit_code=None,
            )
            return split(text)
        version, what = name.removeprefix("schema-").split("-")
        return split(mimir(self._kept(int(version)), what, "--json"))

    def dump(self, name: str) -> str:
        """Return the export of an old store."""
        store, _, form = name.split(".")
        text = mimir(self._kept(int(store[-1])), "export", "--format", form)
        return without_paths(text)

    def run(self, number: int) -> Mapping[str, str]:
        """Return the documents of a new run; equal runs differ in volatile values only."""
        where = self._folder / f"run-{number}"
        where.mkdir()
        return new_run(where)

    def stable_hashes(self, name: str) -> Mapping[str, str]:
        """Return the hashes of a document that a second run has too, by their numbers."""
        first, second = self.parts(name).hashes, self._split(name, self.run(2)[name]).hashes
        pairs = enumerate(zip(first, second, strict=True), start=1)
        return {f"hash-{number}": one for number, (one, other) in pairs if one == other}

    def _split(self, name: str, text: str) -> Parts:
        return split(text, is_new_run=True, in_any_order=name == "run-recording")

    def _kept(self, version: int) -> Path:
        where = self._folder / f"schema-{version}"
        with tarfile.open(STORES / f"schema-{version}.tar.xz") as archive:
            archive.extractall(where, filter="data")
        return where / "project"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """The documents of this module."""
    return Sources(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", [*NEW_RUN, *CHECKS, *KEPT])
def test_members_codes_and_formatting_are_those_of_the_golden_file(
    name: str, sources: Sources
) -> None:
    text = "".join(f"{line}\n" for line in sources.parts(name).machine)
    compare(FILES / f"{name}.machine.jsonl", text, write=WRITE)


@pytest.mark.parametrize("name", [*NEW_RUN, *CHECKS, *KEPT])
def test_narrative_equals_the_golden_file(name: str, sources: Sources) -> None:
    compare(FILES / f"{name}.prose.jsonl", sources.parts(name).prose_text(), write=WRITE)


@pytest.mark.parametrize("name", NEW_RUN)
def test_hashes_and_token_counts_are_those_of_the_golden_file(name: str, sources: Sources) -> None:
    parts, golden = sources.parts(name), FILES / f"{name}.derived.json"
    if WRITE:
        stable = sources.stable_hashes(name)
    else:
        kept = json.loads(golden.read_text(encoding="utf-8"))["hashes"]
        numbered = {f"hash-{n}": one for n, one in enumerate(parts.hashes, start=1)}
        stable = {number: numbered.get(number, "none") for number in kept}
    derived = {"hashes": stable, "tokens": dict(parts.tokens)}
    compare(golden, json.dumps(derived, indent=0) + "\n", write=WRITE)


@pytest.mark.parametrize("name", DUMPS)
def test_dump_of_an_old_store_is_the_golden_file_byte_for_byte(name: str, sources: Sources) -> None:
    dump = sources.dump(name)
    comments = [line for line in dump.splitlines() if line.startswith("//")]
    data = "".join(line for line in dump.splitlines(True) if not line.startswith("//"))
    compare(FILES / name, data, write=WRITE)
    if comments:
        compare(FILES / f"{name}.comments", "\n".join(comments) + "\n", write=WRITE)


def test_golden_files_are_those_of_the_tests_and_name_no_directory_of_a_machine() -> None:
    parts = {
        f"{name}.{part}.jsonl"
        for name in (*NEW_RUN, *CHECKS, *KEPT)
        for part in ("machine", "prose")
    }
    derived = {f"{name}.derived.json" for name in NEW_RUN}
    files = {path.name: path.read_text(encoding="utf-8") for path in FILES.iterdir()}
    assert files.keys() == {*parts, *derived, *DUMPS, "schema-2.dump.cypher.comments"}
    assert sum(map(len, files.values())) < 1_000_000
    for name, text in files.items():
        assert not any(root in text for root in ("/tmp/", "/home/", "/root/", "/var/")), name
