"""Bare agent loops over httpx2 or OpenAI's client: the floor of any engine's cost."""

import contextlib
import importlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import httpx2

from mimir.domain.json_value import JsonObject, as_object, as_objects
from mimir_bench.engine.peers import shared_task
from mimir_bench.engine.workload import Workload

Post = Callable[[JsonObject, str], Awaitable[JsonObject]]
"""(body, conversation) → message of the answer."""
_SCHEMAS = [shared_task.tool_schema(*tool) for tool in shared_task.TOOLS]


@contextlib.asynccontextmanager
async def over_httpx2(url: str) -> AsyncGenerator[Post]:
    """Return a client that uses only HTTP."""
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as client:

        async def post(body: JsonObject, lane: str) -> JsonObject:
            response = await client.post(
                f"{url}/chat/completions",
                content=json.dumps(body).encode(),
                headers={"content-type": "application/json", "x-mimir-lane": lane},
            )
            return as_object(json.loads(response.content)["choices"][0]["message"])

        yield post


@contextlib.asynccontextmanager
async def over_sdk(url: str) -> AsyncGenerator[Post]:
    """Return a client that uses OpenAI's SDK."""
    # Imported here, so that the httpx2 loop does not pay for the SDK.
    openai = importlib.import_module("openai")
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def post(body: JsonObject, lane: str) -> JsonObject:
            made = await client.chat.completions.create(
                **body, extra_headers={"x-mimir-lane": lane}
            )
            return as_object(made.choices[0].message.model_dump(exclude_none=True))

        yield post


async def work(post: Post, load: Workload, room: Path, slots: int) -> None:
    """Run a workload, and request the closing report."""

    async def one(at: int) -> None:
        answer = await _converse(
            post, room, shared_task.lane(at, "worker"), shared_task.brief(load, at)
        )
        asked = shared_task.review_prompt(load, at, answer, shared_task.check(room, load, at))
        # The verdict is parsed, as every peer does, and then not needed.
        json.loads(await _converse(post, room, shared_task.lane(at, "qc"), asked))

    await shared_task.run(load, slots, one)
    # The engine asks for a report at the end of a run, so that the peers do too.
    await _converse(post, room, "peer/plan/1/pm_reporter", "Report.")


async def _converse(post: Post, room: Path, lane: str, asked: str) -> str:
    messages: list[JsonObject] = [
        {"role": "system", "content": shared_task.SYSTEM},
        {"role": "user", "content": asked},
    ]
    while True:
        body: JsonObject = {
            "model": "bench",
            "messages": messages,
            "tools": _SCHEMAS,
            "temperature": 0,
        }
        said = await post(body, lane)
        messages.append(said)
        calls = as_objects(said.get("tool_calls"))
        if not calls:
            return str(said["content"])
        messages += [_result(room, call) for call in calls]


def _result(room: Path, call: JsonObject) -> JsonObject:
    function = as_object(call["function"])
    tools = {"read_file": shared_task.read_file, "write_file": shared_task.write_file}
    content = tools[str(function["name"])](room, **json.loads(str(function["arguments"])))
    return {"role": "tool", "tool_call_id": call["id"], "content": content}
