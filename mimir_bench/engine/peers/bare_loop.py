"""Bare agent loops over httpx2 or OpenAI's client: the floor of any engine's cost."""

import contextlib
import importlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import httpx2

from mimir_bench.engine.peers import shared_task
from mimir_bench.engine.workload import Workload

Row = Mapping[str, object]
Post = Callable[[Row, str], Awaitable[Row]]
"""(body, conversation) → message of the answer."""
_SCHEMAS = [shared_task.tool_schema(*tool) for tool in shared_task.TOOLS]


@contextlib.asynccontextmanager
async def over_httpx2(url: str) -> AsyncGenerator[Post]:
    """Return a client that uses only HTTP."""
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as client:

        async def post(body: Row, lane: str) -> Row:
            response = await client.post(
                f"{url}/chat/completions",
                content=json.dumps(body).encode(),
                headers={"content-type": "application/json", "x-mimir-lane": lane},
            )
            return cast("Row", json.loads(response.content)["choices"][0]["message"])

        yield post


@contextlib.asynccontextmanager
async def over_sdk(url: str) -> AsyncGenerator[Post]:
    """Return a client that uses OpenAI's SDK."""
    openai = importlib.import_module("openai")
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def post(body: Row, lane: str) -> Row:
            made = await client.chat.completions.create(
                **body, extra_headers={"x-mimir-lane": lane}
            )
            return cast("Row", made.choices[0].message.model_dump(exclude_none=True))

        yield post


async def work(post: Post, load: Workload, room: Path, slots: int) -> None:
    """Run a workload, and request the closing report."""

    async def one(at: int) -> None:
        answer = await _converse(
            post, room, shared_task.lane(at, "worker"), shared_task.brief(load, at)
        )
        asked = shared_task.review_prompt(load, at, answer, shared_task.check(room, load, at))
        json.loads(await _converse(post, room, shared_task.lane(at, "qc"), asked))

    await shared_task.run(load, slots, one)
    await _converse(post, room, "peer/plan/1/pm_reporter", "Report.")


async def _converse(post: Post, room: Path, lane: str, asked: str) -> str:
    messages: list[Row] = [
        {"role": "system", "content": shared_task.SYSTEM},
        {"role": "user", "content": asked},
    ]
    while True:
        body: Row = {"model": "bench", "messages": messages, "tools": _SCHEMAS, "temperature": 0}
        said = await post(body, lane)
        messages.append(said)
        calls = cast("Sequence[Mapping[str, object]]", said.get("tool_calls") or ())
        if not calls:
            return str(said["content"])
        messages += [_result(room, call) for call in calls]


def _result(room: Path, call: Row) -> Row:
    function = cast("Mapping[str, str]", call["function"])
    given = cast("dict[str, str]", json.loads(function["arguments"]))
    tool = {"read_file": shared_task.read_file, "write_file": shared_task.write_file}[
        function["name"]
    ]
    return {"role": "tool", "tool_call_id": call["id"], "content": tool(room, **given)}
