"""Stores that earlier schemas have written, kept for good: a project with a run that paused in the middle.

`python -m tests.support.old_stores` makes the one of the present schema, once, before `SCHEMA_VERSION` grows.
"""

import asyncio
import socket
import sys
import tarfile
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mimir.domain.run import RunBudget
from mimir.orchestrator.api import Mimir
from mimir.store.schema import SCHEMA_VERSION
from tests.support.environment import isolate_this_process
from tests.support.script_server import PlayServer
from tests.support.whole_run import PLAN_PATH, REST, opened, plan, step, wrote

PLACE = Path(__file__).parents[1] / "stores"
TASKS = plan(step("a"), step("b", "a"), step("c", "a"))
PARTS = [wrote("a"), wrote("b"), wrote("c")]
CALLS = 9
"""Model calls until it pauses: one task is done, others are under way."""


def kept(version: int) -> Path:
    """Return the archive of a schema's store."""
    return PLACE / f"schema-{version}.tar.xz"


@asynccontextmanager
async def resumable(project: Path) -> AsyncGenerator[Mimir]:
    """Open a kept project; the model is a server, as it was then: no path of then is needed."""
    with PlayServer({"parts": [*PARTS, *REST]}) as server:
        flags = {"llm__base_url": server.url, "llm__api_key": "sk-test-0123456789"}
        async with opened(project, [], llm__model="scripted", **flags) as mimir:
            yield mimir


def unpack(version: int, where: Path) -> Path:
    """Unpack a store; its project."""
    with tarfile.open(kept(version)) as archive:
        archive.extractall(where, filter="data")
    return where / "project"


async def _make(project: Path) -> str:
    async with resumable(project) as mimir:
        run = await mimir.create_run(TASKS, PLAN_PATH, only=(), limits=RunBudget())
        limits = RunBudget(max_calls=CALLS)
        ending = await mimir.drive(run, workers=2, apply="never", limits=limits, resumed=False)
    assert ending.exit_code == 75, ending
    return run


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out author and time."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry


def main() -> int:
    """Make it, unless it is there: a kept store is never made anew."""
    target = kept(SCHEMA_VERSION)
    if target.exists():
        print(f"{target.name} is there already", file=sys.stderr)
        return 1
    socket.gethostname = lambda: "host"
    with tempfile.TemporaryDirectory(prefix="mimir-kept-") as name:
        room = Path(name)
        isolate_this_process(room)
        project = room / "project"
        project.mkdir()
        (project / "README.md").write_text("# A project\n", encoding="utf-8")
        run = asyncio.run(_make(project))
        target.parent.mkdir(exist_ok=True)
        with tarfile.open(target, "w:xz") as archive:
            archive.add(project, "project", filter=_plain)
    print(f"{target.name}: {run}, {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
