"""Traces of an attempt as nodes, for users: its preambles and changed files.

No operation of the engine reads them. They are written in the transaction of the change that they show.
"""

from collections.abc import Sequence
from typing import Literal

from mimir.domain.text_hash import hash_text
from mimir.store.protocol import Row, WriteOps
from mimir.store.schema import EdgeType, NodeLabel

# Paths of one attempt that get a node; `filesChanged` holds all.
MOST_FILES = 500
_NAME_CHARS = 80
_ROLE_CHARS = 2000


def used_preamble(
    ops: WriteOps, attempt: str, project: str, kind: Literal["worker", "qc"], role: str, sha256: str
) -> None:
    """Link an attempt to the preamble of one of its agents; `sha256` is that of its text."""
    # Two roles may share a text, where the template alone was used: each has its node, so that none changes the other's name.
    id = f"{project}#preamble-{kind}-{_digest(f'{role} {sha256}')}"
    named = " ".join(role.split())
    row: Row = {
        "id": id, "name": f"{kind}: {named[:_NAME_CHARS]}", "projectId": project, "kind": kind, "role": role[:_ROLE_CHARS],
        "hash": sha256,
    }  # fmt: skip
    ops.upsert(NodeLabel.PREAMBLE, [row])
    ops.link(EdgeType.USED_PREAMBLE, [(attempt, id)])


def left_files(ops: WriteOps, run: str, attempt: str, paths: Sequence[str]) -> None:
    """Link an accepted attempt to its changed files; tasks that share a file share its node."""
    # A task may change thousands of files; the graph shows the first ones.
    rows = [_file(run, path) for path in paths[:MOST_FILES]]
    if rows:
        ops.upsert(NodeLabel.ARTIFACT, rows)
        ops.link(EdgeType.PRODUCED, [(attempt, str(row["id"])) for row in rows])


def _file(run: str, path: str) -> Row:
    # A path may be longer than an id, or hold bytes that no id does.
    id = f"{run}#file-{_digest(path)}"
    return {"id": id, "name": path, "runId": run, "kind": "file", "path": path}


def _digest(text: str) -> str:
    return hash_text(text)[:16]
