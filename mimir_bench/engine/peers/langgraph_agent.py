"""Agent of LangGraph's functional API and LangChain, as documented; without checkpointer."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingTypeArgument=false, reportMissingTypeStubs=false
import json
from collections.abc import Sequence
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint
from langgraph.func import task as step

from mimir_bench.engine.peers import shared_task
from mimir_bench.engine.workload import Workload


async def work(url: str, load: Workload, room: Path, slots: int) -> None:
    """Run a workload, and request the closing report."""

    def read_file(path: str) -> str:
        """Read a file of the project."""
        return shared_task.read_file(room, path)

    def write_file(path: str, content: str) -> str:
        """Write a file of the project."""
        return shared_task.write_file(room, path, content)

    model = ChatOpenAI(
        model="bench",
        base_url=url,
        api_key="none",  # pyright: ignore[reportArgumentType]
        temperature=0,
        # A retry would hide an error of the benchmark's server, and cost extra time.
        max_retries=0,
        # The model server implements the chat protocol only.
        use_responses_api=False,
    )
    # Made once, as in an application with agents that differ only in their requests.
    agent = create_agent(model, [read_file, write_file], system_prompt=shared_task.SYSTEM)

    async def ask(lane: str, asked: str) -> str:
        # The header of the conversation cannot be set for each call, so that the text names it.
        state = await agent.ainvoke({"messages": [HumanMessage(f"Lane: {lane}\n{asked}")]})
        return str(state["messages"][-1].content)

    @step
    async def one(at: int) -> object:
        answer = await ask(shared_task.lane(at, "worker"), shared_task.brief(load, at))
        asked = shared_task.review_prompt(load, at, answer, shared_task.check(room, load, at))
        return json.loads(await ask(shared_task.lane(at, "qc"), asked))

    @entrypoint()
    async def whole(numbers: Sequence[int]) -> int:
        await shared_task.run(load, slots, one)
        await ask("peer/plan/1/pm_reporter", "Report.")
        return len(numbers)

    await whole.ainvoke(list(range(load.tasks)))
