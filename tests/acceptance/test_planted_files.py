"""Files in a workspace that try to influence mimir, git or the next run: refused, or without effect; bytes are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from tests.support import invariants
from tests.support.hostile import FILES, shell
from tests.support.invariants import listing
from tests.support.run_facts import Outside
from tests.support.whole_run import README, holds, plan, start, step, travel, worker, writes

# Files of the worker.


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Files that a worker leaves in its workspace through `run`."""

    command: str
    cause: str = ""
    """Why the attempt is rejected; empty: it is accepted, and the planted files have no effect."""
    text: str = ""
    """Text in the next attempt's brief; of an accepted attempt: in the brief of QC."""
    gone: tuple[str, ...] = ()
    """Not in the result."""
    there: tuple[str, ...] = ()
    """In the result."""
    files: Mapping[str, str] = field(default_factory=dict)
    """More files of the project."""


REFUSED = "refused_deliverable"
STEERS = "steers mimir itself"
TABLE = "[tool.mimir.run]\nparallel_checks = 3\n"
PLANTED: dict[str, Planted] = {
    "settings": Planted(
        command="echo '[llm]' > mimir.toml", cause=REFUSED, text=STEERS, gone=("mimir.toml",)
    ),
    "table in pyproject": Planted(
        command=f"printf '{TABLE}' >> pyproject.toml",
        cause=REFUSED,
        text="[tool.mimir] in pyproject.toml",
    ),
    "broken pyproject": Planted(
        command="echo '[tool.mimir' >> pyproject.toml",
        cause=REFUSED,
        text="[tool.mimir] in pyproject.toml",
    ),
    "dotted table": Planted(
        command="sed -i '1i tool.mimir.llm.base_url = \"http://evil\"' pyproject.toml",
        cause=REFUSED,
        text="[tool.mimir] in pyproject.toml",
    ),
    "plan": Planted(
        command="mkdir -p chains/x && echo x > chains/x/chain-output.md",
        cause=REFUSED,
        text=STEERS,
        gone=("chains/x/chain-output.md",),
    ),
    "preamble": Planted(
        command="mkdir preambles && echo x > preambles/worker.md",
        cause=REFUSED,
        text=STEERS,
        gone=("preambles/worker.md",),
    ),
    "store": Planted(
        command="mkdir .mimir && echo x > .mimir/mimir.db",
        text="Files in '.mimir' are not in the deliverable",
        gone=(".mimir/mimir.db",),
    ),
    "link out": Planted(
        command="ln -s /etc/passwd leak",
        cause=REFUSED,
        text="leads out of the workspace",
        gone=("leak",),
    ),
    "link above": Planted(
        command="ln -s ../../../mimir.db leak", cause=REFUSED, text="leads out", gone=("leak",)
    ),
    "link to a directory": Planted(
        command="mkdir sub && ln -s / sub/root", cause=REFUSED, text="leads out", gone=("sub/root",)
    ),
    "link inside": Planted(command="ln -s README.md also", there=("also",)),
    "nested repository": Planted(
        command="mkdir lib && cd lib && git init -q . && git config core.fsmonitor 'touch /workspace/x' "
        "&& echo y > y.txt && git add . && git commit -qm one",
        text="The nested repository 'lib' was removed",
        there=("lib/y.txt",),
        gone=("lib/.git/config",),
    ),
    "own git": Planted(
        command="rm -f .git; mkdir -p .git/hooks && echo '[core] fsmonitor = touch /tmp/evil' > .git/config; true"
    ),
    "ignore rules": Planted(
        command="printf '*\\n' > .gitignore; echo z > z.txt", there=("z.txt", ".gitignore")
    ),
    "attributes": Planted(
        command="printf '* text eol=crlf ident\\n' > .gitattributes; printf 'a\\nb\\n' > z.txt",
        there=("z.txt", ".gitattributes"),
    ),
    "filter": Planted(
        command="printf '*.bin filter=evil\\n' > .gitattributes; printf 'a\\n' > z.bin",
        cause=REFUSED,
        text="through a filter",
        gone=("z.bin",),
    ),
    "special files": Planted(
        command="mkfifo pipe; python -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"; true",
        gone=("pipe", "sock"),
    ),
    "closed directory": Planted(
        command="mkdir d && echo q > d/q.txt && chmod 000 d/q.txt && chmod 311 d",
        there=("d/q.txt",),
    ),
    "set-uid": Planted(command="cp /bin/true t && chmod 6755 t", there=("t",)),
}


@pytest.mark.parametrize("name", list(PLANTED))
async def test_planted_file_is_refused_or_without_effect(name: str, tmp_path: Path):
    planted = PLANTED[name]
    project = start(tmp_path, {**FILES, **planted.files})
    before = listing(project)
    told = {"when": {"brief_has": planted.text}} if planted.cause else {}
    parts = [
        worker(
            "a",
            {"calls": [shell(f"({planted.command}); printf 'VALUE = 1\\n' > a.py")]},
            "It is done.",
            attempt=1,
        ),
        worker("a", writes("b.txt", "another\n"), "Without it now.", attempt=2, **told),
    ]
    files = ("**", "pyproject.toml")
    task = step("a", files=files, checks=(holds("a.py", "VALUE = 1"),), max_retries=1)

    journey = await travel(project, plan(task), parts, apply="auto")

    assert journey.statuses == {"a": "completed"}
    attempts = journey.facts.attempts("a")
    assert len(attempts) == (2 if planted.cause else 1)
    if planted.cause:
        assert (attempts[0]["endCause"], attempts[0]["judged"]) == (planted.cause, True)
        [retried] = journey.facts.events_of_kind(EventKind.TASK_RETRIED)
        assert planted.text in str(retried.data["issues"])
        assert planted.text in journey.flat_report
    elif planted.text:
        assert planted.text in str(journey.facts.calls("a", role="qc")[0]["deltaJson"])
    files = journey.facts.git.files(str(journey.facts.row["headTree"]))
    assert not set(planted.gone) & files.keys()
    assert {*planted.there, "a.py", *FILES} <= files.keys()
    assert journey.ending.exit_code == 0
    for path in planted.gone:
        assert not (project / path).exists() or path.startswith(("chains", ".mimir"))
    now = listing(project)
    changed = {p for p in before if before[p] != now.get(p)}
    assert changed <= {".gitignore", "pyproject.toml"} & {".gitignore"}
    assert invariants.broken(journey.facts, Outside(before=before)) == []


async def test_bytes_are_delivered_as_they_were_written(tmp_path: Path):
    project = start(
        tmp_path, {**README, ".gitattributes": "* text eol=crlf ident\n*.bin filter=x\n"}
    )
    odd = "one\r\ntwo\n$Id$\n"
    parts = [worker("a", writes("a.txt", "a\n"), writes("odd.txt", odd), "Done.")]

    journey = await travel(project, plan(step("a")), parts, apply="auto")

    assert journey.ending.exit_code == 0
    assert (project / "odd.txt").read_bytes() == odd.encode()
