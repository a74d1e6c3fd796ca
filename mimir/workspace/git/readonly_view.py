"""A git directory for the sandbox: one commit and its history, whose references are fixed.

Its own pack keeps the objects of other attempts out.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.git.hidden_repository import ATTRIBUTES, HiddenRepository
from mimir.workspace.git.ignore_rules import user_rules
from mimir.workspace.git.user_refs import left_out_of
from mimir.workspace.tree_removal import remove_tree

# Longest history, in commits.
DEPTH = 100
# Changes of a command in the view end with the command. A commit or a stash would be lost, so git refuses both.
_HOOK = """#!/bin/sh
[ "$1" = prepared ] || exit 0
while read -r old new name; do
    case $name in HEAD | refs/*) [ "$new" = "$(git rev-parse -q --verify "$name")" ] || {
        echo "The files of the workspace are the work; commits, branches and stashes are not kept." >&2
        exit 1
    } ;; esac
done
"""


async def view(hidden: HiddenRepository, id: str, where: Path | None = None) -> Path:
    """Return a git directory of commit `id`, created once (in `where`, if given)."""
    final = hidden.engine_dir / "views" / id if where is None else where
    if await asyncio.to_thread((final / "HEAD").exists):
        return final
    work_dir = hidden.scratch("view")
    try:
        await to_thread_shielded(_create_files, work_dir, hidden, id, await user_rules(hidden))
        commits, ends = await _history(hidden, id)
        await _pack(hidden, commits, work_dir)
        await hidden.git.run("read-tree", id, index=work_dir / "index")
        await to_thread_shielded(_finish, work_dir, ends, final)
    finally:
        await to_thread_shielded(remove_tree, work_dir)
    return final


async def _history(hidden: HiddenRepository, id: str) -> tuple[list[str], list[str]]:
    """Return the commits to show, and those of them whose parents are not shown.

    History ends where a commit has files that the base left out (plans, reasoning).
    """
    listed = await hidden.git.run("rev-list", "--parents", f"--max-count={DEPTH}", id)
    lines = [line.split(" ") for line in listed.word.split("\n")]
    parents = {words[0]: words[1:] for words in lines}
    hiding = await _find_commits_holding(hidden, list(parents), await left_out_of(hidden, id)) - {
        id
    }
    shown: dict[str, None] = {}
    ends: list[str] = []
    waiting = [id]
    while waiting:
        one = waiting.pop()
        if one in shown:
            continue
        shown[one] = None
        before = parents[one]
        if all(parent in parents and parent not in hiding for parent in before):
            waiting += before
        else:
            ends.append(one)
    return list(shown), ends


async def _find_commits_holding(
    hidden: HiddenRepository, commits: Sequence[str], names: Sequence[str]
) -> set[str]:
    if not names:
        return set()
    asked = [(one, f"{one}:{name}") for one in commits for name in names if "\n" not in name]
    answers = await hidden.git.run(
        "cat-file",
        "--batch-check=%(objecttype)",
        stdin="".join(f"{q}\n" for _, q in asked).encode(),
    )
    kinds = answers.out.decode("utf-8", "replace").splitlines()
    return {
        one for (one, _), answer in zip(asked, kinds, strict=True) if answer in ("tree", "blob")
    }


async def _pack(hidden: HiddenRepository, commits: Sequence[str], made: Path) -> None:
    # A search for deltas would take longer than it saves.
    objects = await hidden.git.run(
        *("rev-list", "--objects", "--no-walk=unsorted", "--missing=allow-any", "--stdin"),
        stdin="".join(f"{one}\n" for one in commits).encode(),
    )
    await hidden.git.run(
        *("pack-objects", "-q", "--window=0", "--missing=allow-any"),
        str(made / "objects/pack/pack"),
        stdin=objects.out,
    )


def _create_files(made: Path, hidden: HiddenRepository, id: str, rules: Sequence[str]) -> None:
    for name in ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info", "hooks"):
        (made / name).mkdir(parents=True)
    extension = "[extensions]\n\tobjectFormat = sha256\n" if hidden.id_length == 64 else ""
    version = 1 if extension else 0
    (made / "config").write_text(
        f"[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n\tlogAllRefUpdates = false\n"
        f"{extension}[gc]\n\tauto = 0\n"
    )
    (made / "info/attributes").write_text(ATTRIBUTES)
    (made / "info/exclude").write_bytes(
        ("\n".join(rules) + "\n").encode("utf-8", "surrogateescape")
    )
    (made / "HEAD").write_text(f"{id}\n")
    (made / "hooks/reference-transaction").write_text(_HOOK)


def _finish(made: Path, ends: Sequence[str], final: Path) -> None:
    """Make it readable for the user of the sandbox, then rename it to its place."""
    if ends:
        (made / "shallow").write_text("".join(f"{one}\n" for one in ends))
    for path in (made, *made.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "hooks" else 0o444)
    final.parent.mkdir(parents=True, exist_ok=True)
    # Another process may have been faster; its view is equal.
    with contextlib.suppress(OSError):
        made.rename(final)
