"""Work that all peers share: task graph, tools, files and prompts; nothing is stored."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

from mimir_bench.engine import workload
from mimir_bench.engine.workload import Workload

SYSTEM = f"{workload.PREAMBLE}\n\n{workload.PREAMBLE}"
"""About as long as the system message of the engine's agents."""
TOOLS = (
    ("read_file", "Read a file of the project.", ("path",)),
    ("write_file", "Write a file of the project.", ("path", "content")),
)


def read_file(room: Path, path: str) -> str:
    """Read a file of the project."""
    return (room / path).read_text(encoding="utf-8")


def write_file(room: Path, path: str, content: str) -> str:
    """Write a file of the project."""
    place = room / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content, encoding="utf-8")
    return f"{path} is written."


def check(room: Path, load: Workload, at: int) -> str:
    """Run the plan's check, without a sandbox."""
    if load.work == "answers":
        return ""
    done = subprocess.run(["grep", "-q", "it holds", str(room / workload.path(at))], check=False)
    return f"exit code {done.returncode}"


def brief(load: Workload, at: int) -> str:
    """Return the brief of a worker."""
    return f"Task: {workload.name(at)}\n\n{workload.prompt(load, at)}"


def review_prompt(load: Workload, at: int, answer: str, checked: str) -> str:
    """Return the brief of QC."""
    shown = workload.content(at) if load.work == "files" else ""
    return f"{brief(load, at)}\n\nThe answer:\n{answer}\n\n{shown}\n{checked}\nJudge it."


def lane(at: int, role: str) -> str:
    """Return the name of a conversation, as in the engine."""
    return f"peer/{workload.name(at)}/1/{role}"


def tool_schema(name: str, description: str, fields: tuple[str, ...]) -> dict[str, object]:
    """Return a tool in OpenAI's form."""
    properties = {field: {"type": "string"} for field in fields}
    parameters = {"type": "object", "properties": properties, "required": list(fields)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


async def run(load: Workload, slots: int, one: Callable[[int], Awaitable[object]]) -> None:
    """Run every task once its dependencies are done and a slot is free."""
    free = asyncio.Semaphore(slots)
    # Dependencies first, then the slot: a waiting task must not occupy one.
    done = [asyncio.Event() for _ in range(workload.count(load))]

    async def do(at: int) -> None:
        for needed in workload.needs(load, at):
            await done[needed].wait()
        async with free:
            await one(at)
        done[at].set()

    async with asyncio.TaskGroup() as group:
        for at in range(len(done)):
            group.create_task(do(at))
