"""Completions for a shell, read within a tenth of a second: no settings are validated.

A damaged file or store completes nothing; it is never an error.
"""

import contextlib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from mimir.bootstrap import local_store
from mimir.domain.json_value import as_object, as_text
from mimir.domain.question import read_form
from mimir.domain.question_states import OPEN
from mimir.errors import MimirError
from mimir.store.protocol import ReadOps
from mimir.store.schema import NodeLabel, unpack

T = TypeVar("T")

MOST_RUNS = 200
Candidates = Sequence[tuple[str, str]]
"""(word, description)."""


def complete_runs(project: Path) -> Candidates:
    """Return the newest runs of the project's SQLite store with their titles."""
    return _read(project, _load_runs) or ()


def _load_runs(reads: ReadOps) -> Candidates:
    rows = reads.find(
        NodeLabel.RUN, {}, order=("-createdAt",), limit=MOST_RUNS, only=("title", "name")
    )
    return [(str(row["id"]), str(row.get("title") or row.get("name") or "")) for row in rows]


def complete_tasks(project: Path, run: str) -> Candidates:
    """Return the tasks of a run with their titles; an empty `run` is the newest one."""
    runs = [id for id, _ in complete_runs(project) if id.startswith(run) and id.startswith("run")]
    if not runs:
        return ()

    def load(reads: ReadOps) -> Candidates:
        rows = reads.find(NodeLabel.TASK, {"runId": runs[0]}, order=("seq",), only=("title",))
        # The id of a task's node is that of its run and its own.
        return [(str(r["id"]).partition("/")[2], str(r.get("title") or "")) for r in rows]

    return _read(project, load) or ()


def complete_questions(project: Path) -> Candidates:
    """Return the open questions of the project with their titles."""

    def load(reads: ReadOps) -> Candidates:
        rows = reads.find(
            NodeLabel.QUESTION, {"state": OPEN}, order=("createdAt", "id"), only=("name",)
        )
        return [(str(row["id"]), str(row.get("name") or "")) for row in rows]

    return _read(project, load) or ()


def complete_answers(project: Path, question: str) -> Candidates:
    """Return the answers to choose from of a question whose id begins so."""

    def load(reads: ReadOps) -> Candidates:
        rows = reads.find(NodeLabel.QUESTION, {"state": OPEN}, only=("schemaJson",))
        found = [row for row in rows if str(row["id"]).startswith(question)]
        if len(found) != 1:
            return ()
        form = read_form(as_object(unpack(str(found[0].get("schemaJson")))))
        only = form.fields[0]
        words = ("yes", "no") if only.kind == "boolean" else only.options
        return [(word, "") for word in words] if len(form.fields) == 1 else ()

    return _read(project, load) or ()


def complete_models(project: Path) -> Candidates:
    """Return the models that the settings files and the environment name."""
    names = [os.environ.get("MIMIR_MODEL", "")]
    names += _models(local_store.read_own_file(os.environ))
    with contextlib.suppress(OSError, ValueError):
        names += _models(tomllib.loads((project / "mimir.toml").read_text(encoding="utf-8")))
    return [(name, "") for name in dict.fromkeys(names) if name]


def _models(tree: Mapping[str, object]) -> Iterator[str]:
    llm = as_object(tree.get("llm"))
    yield as_text(llm.get("model"))
    yield from as_object(llm.get("prices"))
    for role in as_object(tree.get("roles")).values():
        yield as_text(as_object(role).get("model"))


def _read(project: Path, work: Callable[[ReadOps], T]) -> T | None:
    with contextlib.suppress(MimirError, OSError, ValueError):
        uri = local_store.find_uri()
        if uri is not None:
            return local_store.look(
                project, uri, lambda reads, place: work(reads), say=lambda warning: None
            )
    return None
