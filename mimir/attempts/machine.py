# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false, reportUnknownVariableType=false
# langgraph's own signatures contain unsolved generics.
"""State machine of one attempt: the table of moves, compiled to LangGraph.

It is compiled once for each entry status: each phase is a node, each move an edge. The machine can be entered at any node, so a resumed attempt continues
where it stopped.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypedDict, cast

from mimir.attempts.deferred_package import defer_package
from mimir.attempts.nodes.check import run_checks
from mimir.attempts.nodes.judge import judge_attempt
from mimir.attempts.nodes.work import run_worker
from mimir.attempts.results import AttemptState, Checking, Judging, Working, status_of
from mimir.attempts.services import AttemptServices
from mimir.domain.task_states import MOVES, NODES, TaskStatus

# LangGraph takes seconds to import, so the first attempt imports it.
if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime
    from langgraph.types import Command

Advance = Callable[[AttemptState], Awaitable[AttemptState]]
"""Does the work of a phase and records the move; an unchanged status ends the machine."""


class MachineState(TypedDict):
    """State of the machine."""

    attempt: AttemptState


@dataclass(frozen=True, slots=True)
class MachineServices:
    """Context of one invocation of the machine."""

    advance: Advance


async def advance_attempt(services: AttemptServices, state: AttemptState) -> AttemptState:
    """Run the node of the attempt's phase; a state without a node is returned."""
    match state:
        case Working():
            return await run_worker(services)
        case Checking():
            return await run_checks(services, state)
        case Judging():
            return await judge_attempt(services, state)
        case _:
            return state


def _make_node(exits: Mapping[TaskStatus, str]) -> "Callable[..., Awaitable[Command[str]]]":
    from langgraph.types import Command

    async def run(state: MachineState, *, runtime: "Runtime[MachineServices]") -> "Command[str]":
        attempt = await runtime.context.advance(state["attempt"])
        # The command names the next node: a branch after the node would read the state again.
        return Command(update={"attempt": attempt}, goto=exits[status_of(attempt)])

    return run


@cache
def compile_machine(
    entry: TaskStatus,
) -> "CompiledStateGraph[MachineState, MachineServices, MachineState, MachineState]":
    """Compile the machine with an entry status; nodes and edges come from `MOVES` alone."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(MachineState, context_schema=MachineServices)
    for status in NODES:
        # An unchanged status means a rejection without QC: scheduling decides.
        exits = {to: to.value if to in NODES else END for to in MOVES[status]} | {status: END}
        destinations = tuple(dict.fromkeys(exits.values()))
        graph.add_node(status.value, _make_node(exits), destinations=destinations)
    # One machine for each entry: a choice at run time would cost a further step.
    graph.add_edge(START, entry.value)
    return graph.compile()


async def run_attempt(state: AttemptState, advance: Advance) -> AttemptState:
    """Run or continue an attempt until scheduling takes over; return its state."""
    entry = status_of(state)
    if entry not in NODES:
        return state
    start: MachineState = {"attempt": state}
    # LangGraph imports one part of each, and both would import all the rest: a third of a second.
    for package in ("langsmith.types", "langgraph_sdk"):
        defer_package(package)
    from langsmith import tracing_context

    # LANGSMITH_TRACING in the user's environment would send every prompt to a third party.
    with tracing_context(enabled=False):
        end = cast(
            "MachineState",
            await compile_machine(entry).ainvoke(start, context=MachineServices(advance)),
        )
    return end["attempt"]
