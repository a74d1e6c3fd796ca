"""Input of the PM: request, earlier steps, repository, sandbox, memory."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from mimir.agents.context.inputs import FileView, PMInput
from mimir.agents.preambles import templates
from mimir.domain.invocation import PlanningStep
from mimir.domain.requirement import Requirement
from mimir.domain.value_class import value_class
from mimir.orchestrator.delegation.material import find_memory
from mimir.orchestrator.sandbox_facts import describe_sandbox
from mimir.orchestrator.services import ProjectServices
from mimir.planning.format.labels import format_instructions
from mimir.store.records.run_records import RunRecord
from mimir.workspace.paths import DirectoryTree

READ_FIRST = (
    "README.md",
    "README.rst",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
    "package.json",
)
READ_FIRST_BYTES = 40_000
PM_ALONE = PlanningStep(prompt="")
"""Of a plan without a definition."""


@value_class
class PlanMaterial:
    """Material that earlier steps made for the PM."""

    text: str
    is_approved: bool = False
    planner: PlanningStep = PM_ALONE
    """The definition `planner`; its prompt is added to that of the PM."""
    requirements: tuple[Requirement, ...] = ()


async def read_pm_input(
    services: ProjectServices, record: RunRecord, checkout: Path, found: PlanMaterial
) -> PMInput:
    """Return the input of the PM of a planning run, whose base is checked out."""
    sizes = await asyncio.to_thread(_file_sizes, checkout)
    # The recording grows during the run, so the PM's context would differ in a replay.
    sizes.pop(services.recording, None)
    return PMInput(
        preamble=templates.system_message(
            "pm", services.own_preambles.read, addition=found.planner.prompt
        ),
        request=record.request,
        specification=found.text,
        is_approved=found.is_approved,
        repository=tuple(sorted(sizes.items())),
        files=tuple(
            [await _load_file(services, record, path) for path in READ_FIRST if path in sizes]
        ),
        sandbox=await _describe_sandbox(services, checkout, tuple(sizes)),
        memory=await find_memory(services, record.request, before=record.created_at),
        form=format_instructions(),
    )


async def _describe_sandbox(
    services: ProjectServices, checkout: Path, paths: Sequence[str]
) -> tuple[str, ...]:
    if not services.has_sandbox:
        return ()
    return await describe_sandbox(services, checkout, paths)


async def _load_file(services: ProjectServices, record: RunRecord, path: str) -> FileView:
    content = await services.history.file(record.base_tree, path) or b""
    # A large file would displace the rest of the context; the PM can read it by tool.
    if len(content) > READ_FIRST_BYTES:
        return FileView(path=path, size=len(content), text=None, note="large")
    text = services.redact(content.decode("utf-8", "replace"))
    return FileView(path=path, size=len(content), text=text)


def _file_sizes(directory: Path) -> dict[str, int]:
    """Return the size in bytes of each regular file of a checkout, by its path."""
    tree = DirectoryTree(directory)
    return {path: tree.size(path) for path in tree.walk()}
