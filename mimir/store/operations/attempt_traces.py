"""What an attempt used and left, as nodes of their own: for people who look at the graph. No verb of the engine reads them.

They are written in the transaction of what they tell of, so that a picture never shows more, or less, than happened.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal

from mimir.store.protocol import Row, WriteOps
from mimir.store.schema import EdgeType, NodeLabel

MOST_FILES = 500
"""Paths of one attempt that have a node; all of them stand in `filesChanged`."""
_NAME_CHARS = 80
_ROLE_CHARS = 2000


def used_preamble(
    ops: WriteOps, attempt: str, project: str, kind: Literal["worker", "qc"], role: str, sha256: str
) -> None:
    """Tell which preamble an agent of an attempt began with; one node for all attempts of the project that share role and text.

    Args:
        ops: The transaction.
        attempt: Its node.
        project: Whose preamble it is.
        kind: Of agent.
        role: As the plan describes it.
        sha256: Of the preamble's text, in hex.
    """
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
    """Tell which files an accepted attempt changed; one node a path and run, so that tasks that share a file meet there."""
    rows = [_file(run, path) for path in paths[:MOST_FILES]]
    if rows:
        ops.upsert(NodeLabel.ARTIFACT, rows)
        ops.link(EdgeType.PRODUCED, [(attempt, str(row["id"])) for row in rows])


def _file(run: str, path: str) -> Row:
    # A path may be longer than an id, or hold bytes that no id does.
    id = f"{run}#file-{_digest(path)}"
    return {"id": id, "name": path, "runId": run, "kind": "file", "path": path}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
