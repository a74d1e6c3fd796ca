# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false, reportUnknownVariableType=false
# langgraph's own signatures contain unsolved generics.
"""One try at one task: the table of moves, compiled to LangGraph once a process for each status that an attempt begins at.

Every phase inside an attempt is a node, every move of the table is an edge, and the machine may be entered at any node, so that a
resumed attempt goes on where it was. LangGraph takes seconds to import: it is, with the first attempt.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypedDict, cast

from mimir.attempts.results import AttemptState
from mimir.domain.task_states import MOVES, NODES, TaskStatus

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.runtime import Runtime
    from langgraph.types import Command


class MachineState(TypedDict):
    """State of the machine."""

    status: TaskStatus
    course: AttemptState


class PhaseNode(Protocol):
    """The work of one status."""

    async def __call__(self, course: AttemptState, /) -> tuple[TaskStatus, AttemptState]:
        """Do it, record the move, return where the task stands now.

        Returning the status it was entered with ends the machine: what follows is scheduling's (a rejection without QC).
        """
        ...


class PhaseNodes(Protocol):
    """The nodes of the machine, by status."""

    def __getitem__(self, status: TaskStatus, /) -> PhaseNode:
        """Return the node of `status`."""
        ...


@dataclass(frozen=True, slots=True)
class MachineServices:
    """What the nodes of one attempt do; handed in with the call."""

    phases: PhaseNodes


class _GraphNode(Protocol):
    async def __call__(
        self, state: MachineState, *, runtime: "Runtime[MachineServices]"
    ) -> "Command[str]": ...


def _node(status: TaskStatus, exits: Mapping[TaskStatus, str]) -> _GraphNode:
    from langgraph.types import Command

    async def run(state: MachineState, *, runtime: "Runtime[MachineServices]") -> "Command[str]":
        to, course = await runtime.context.phases[status](state["course"])
        # With the state goes where it leads: a branch after the node would read it once more.
        return Command(update={"status": to, "course": course}, goto=exits[to])

    return run


@cache
def compile_machine(
    entry: TaskStatus,
) -> "CompiledStateGraph[MachineState, MachineServices, MachineState, MachineState]":
    """Compile the table, entered at a status: nodes and edges come from `MOVES` alone. To choose the entry while it runs costs a step more."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(MachineState, context_schema=MachineServices)
    for status in NODES:
        exits = {to: to.value if to in NODES else END for to in MOVES[status]} | {status: END}
        node = _node(status, exits)
        graph.add_node(status.value, node, destinations=tuple(dict.fromkeys(exits.values())))
    graph.add_edge(START, entry.value)
    return graph.compile()


async def run_attempt(
    status: TaskStatus, course: AttemptState, phases: PhaseNodes
) -> tuple[TaskStatus, AttemptState]:
    """Run an attempt, or continue it, from `status` to where scheduling takes over."""
    if status not in NODES:
        return status, course
    start: MachineState = {"status": status, "course": course}
    from langsmith import tracing_context

    # LANGSMITH_TRACING in the user's environment would post every prompt to a third party.
    with tracing_context(enabled=False):
        end = cast(
            "MachineState",
            await compile_machine(status).ainvoke(start, context=MachineServices(phases)),
        )
    return end["status"], end["course"]
