"""Tools of each role, called through the gateway, and the sandbox that they see."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mimir.attempts.deliverable import FORBIDDEN, HIDDEN
from mimir.attempts.delivered_paths import find_completed_repository
from mimir.attempts.program.journaled_program import JournaledProgram, ServeProgram
from mimir.attempts.services import Stand, WorkerWorkspace
from mimir.bootstrap.agents.programs import SandboxedPrograms
from mimir.domain.agent import (
    ASK_TOOL,
    MEMORY_TOOLS,
    NAMED_TOOLS,
    NOTE_TOOL,
    READ_TOOLS,
    ROLES,
    SKILL_TOOL,
    SPAWN_TOOL,
    grant_notes,
)
from mimir.domain.broken_pipes import forgive_broken_pipes
from mimir.domain.call_outcome import Transcript
from mimir.domain.invocation import SpawnCaller
from mimir.domain.question import QuestionLimits
from mimir.store.operations import evidence
from mimir.store.operations.memory import MemoryScope, ProjectMemory
from mimir.store.protocol import GraphStore
from mimir.tools.builtin.artifacts import ArtifactTools
from mimir.tools.builtin.ask_user import AskUserTool
from mimir.tools.builtin.files import FileTools
from mimir.tools.builtin.memory import MemoryTools
from mimir.tools.builtin.note_assumption import MOST_NOTES, NoteAssumptionTool
from mimir.tools.builtin.probe import ProbeTool
from mimir.tools.builtin.shell import RunTool
from mimir.tools.builtin.skills import SkillScripts, SkillTools
from mimir.tools.builtin.spawn_agent import Spawn, SpawnAgentTool, explain_refusal
from mimir.tools.gateway import Gateway
from mimir.tools.permissions import ToolRights
from mimir.tools.protocol import Toolset
from mimir.tools.scope import PathScope
from mimir.tools.wrappers.lazy_workspace import LazyWorkspaceTools
from mimir.tools.wrappers.quota import CallQuota
from mimir.workspace.git.history import GitHistory
from mimir.workspace.paths import DirectoryTree
from mimir.workspace.sandbox.sandbox import CommandResult, Sandbox

MAX_PROBES = 5
"""Commands that the PM may run for one plan."""
STEP_FIELDS = 3
"""Questions that the agent of a planning step asks at once."""
# The glob matches no path of a project.
READ_ONLY = PathScope(files=("/",), hidden=HIDDEN)


class ToolFactory:
    """Factory of the tools of each role; every call passes the gateway."""

    def __init__(
        self,
        sandbox: "ProjectSandbox",
        store: GraphStore,
        project_id: str,
        redact: Callable[[str], str],
        launcher: SandboxedPrograms,
        question_limits: QuestionLimits,
        spawn: Spawn,
        serve_program: ServeProgram | None = None,
    ) -> None:
        self._serve_program = serve_program
        self._question_limits = question_limits
        self._spawn = spawn
        self._launcher = launcher
        self._sandbox = sandbox
        self._store = store
        self._project_id = project_id
        self._redact = redact

    def show(self, base: str, project_id: str) -> None:
        """Show commands the base of a run, and agents the memory of its project."""
        self._sandbox.base = base
        self._project_id = project_id

    def worker(self, bench: WorkerWorkspace) -> Toolset:
        """Return the worker's tools over its workspace."""
        task = bench.task
        tree = DirectoryTree(bench.where)
        files = FileTools(
            tree,
            PathScope(
                files=task.files,
                forbidden=FORBIDDEN,
                protected=bench.protected,
                hidden=HIDDEN,
                allow_hidden=task.context_files,
                refuse=_scope_rule(bench, tree),
            ),
            redact=self._redact,
        )
        # Beside the workspace: nothing of a script gets into the deliverable.
        scripts = SkillScripts(
            skills=bench.skills, folder=bench.where.parent / f"{bench.where.name}.skills"
        )
        sandbox = self._sandbox.with_view(bench.base_commit, scripts)
        commands = RunTool(sandbox, bench.where, redact=self._redact)
        asking = AskUserTool(self._question_limits, redact=self._redact)
        more = (SKILL_TOOL,) if bench.skills else ()
        # A plan can only narrow the tools of the worker; a task that is to ask names the tool.
        named = grant_notes(task.tools)
        asks = tuple(tool for tool in (ASK_TOOL, NOTE_TOOL) if tool in named)
        more += (SPAWN_TOOL,) if bench.may_spawn else ()
        rights = ToolRights(
            role="worker",
            role_tools=(*ROLES["worker"].tools, *asks, *more),
            plan_tools=(*named, *more) if named else (),
        )
        # A repeated call of the task finds the invocations that it has spawned.
        caller = SpawnCaller(run=bench.run, agent=bench.agent, key=task.id)

        def explain(tool: str) -> str:
            is_spawning = tool == SPAWN_TOOL and not bench.may_spawn
            return explain_refusal(bench.depth) if is_spawning else rights.why(tool)

        reading = [
            self._artifacts(bench.run, bench.artifacts),
            MemoryTools(self._memory(bench.run)),
            asking,
            NoteAssumptionTool(self._redact),
            *([SkillTools(bench.skills)] if bench.skills else []),
            # Also for an agent that may not: then the refusal names the reason.
            *([SpawnAgentTool(self._spawn, caller)] if bench.agent else []),
        ]
        return Gateway(
            # Memory and artifacts need no workspace, so they do not wait until one exists.
            [LazyWorkspaceTools([files, commands], _prepare_call(tree, bench.stand)), *reading],
            granted=rights.granted_tools((*NAMED_TOOLS, *more)),
            transcript=bench.lane,
            snapshot=bench.snapshot,
            redact=self._redact,
            why=explain,
            quota=CallQuota({NOTE_TOOL: MOST_NOTES}),
            base_tree=bench.tree,
            ask=asking.read_question,
        )

    def program(self, bench: WorkerWorkspace) -> JournaledProgram:
        """Return the program of a worker over its workspace."""
        return JournaledProgram(
            launch=self._launcher.launch,
            transcript=bench.lane,
            stand=bench.stand,
            snapshot=bench.snapshot,
            base_commit=bench.base_commit,
            redact=self._redact,
            serve=self._serve_program,
        )

    def judge(
        self,
        run: str,
        where: Path,
        lane: Transcript,
        artifacts: Sequence[str],
        stand: Stand,
        base_commit: str,
    ) -> Toolset:
        """Return QC's tools over a temporary checkout, whose changes are discarded."""
        tree = DirectoryTree(where)
        files = FileTools(tree, READ_ONLY, redact=self._redact)
        # `git diff` shows QC and the worker the same: the changes of this attempt alone.
        commands = RunTool(self._sandbox.with_view(base_commit), where, redact=self._redact)
        rights = ToolRights(role="qc", role_tools=ROLES["qc"].tools)
        placed = LazyWorkspaceTools([files, commands], _prepare_call(tree, stand))
        return self._reading([placed, self._artifacts(run, artifacts)], rights, lane)

    def planner(
        self,
        where: Path,
        lane: Transcript,
        step: CallQuota | None = None,
        named: Collection[str] | None = None,
    ) -> Toolset:
        """Return the PM's tools: read-only files of a checkout, probes, and the memory.

        Of the agent of another planning step, `step` limits its questions; it has no probes.
        `named` are the tools of its definition.
        """
        files = FileTools(DirectoryTree(where), READ_ONLY, redact=self._redact)
        rights = ToolRights(role="pm", role_tools=_narrow(ROLES["pm"].tools, named))
        memory = MemoryTools(self._memory(""))
        if step is not None:
            return self._step_tools([files, memory], lane, step, named)
        # As for a check, the copy is a repository of its own, and git shows no other commit.
        probe = ProbeTool(
            self._sandbox.with_view(""),
            where,
            prepare=self._sandbox.make_repository,
            redact=self._redact,
        )
        tools = [files, probe, memory]
        return self._reading(tools, rights, lane, CallQuota({"probe": MAX_PROBES}))

    def _step_tools(
        self,
        tools: Sequence[Toolset],
        lane: Transcript,
        quota: CallQuota,
        named: Collection[str] | None,
    ) -> Toolset:
        """Return the tools of the agent of a planning step; with a quota, it asks the user."""
        may_ask = quota.limit_of(ASK_TOOL) > 0
        # One call is one round: the user answers its questions together.
        limits = replace(self._question_limits, fields=STEP_FIELDS)
        asking = AskUserTool(limits, redact=self._redact)
        own = _narrow((*READ_TOOLS, *MEMORY_TOOLS), named)
        # Whether a step asks is a rule of the step, not of its definition.
        names = (*own, *((ASK_TOOL,) if may_ask else ()))
        rights = ToolRights(role="planning step", role_tools=names)
        return Gateway(
            [*tools, asking],
            granted=rights.granted_tools(names),
            transcript=lane,
            redact=self._redact,
            why=rights.why,
            quota=quota,
            ask=asking.read_question if may_ask else None,
        )

    def _memory(self, run: str) -> ProjectMemory:
        return ProjectMemory(self._store, MemoryScope(project=self._project_id, hidden_run=run))

    def _artifacts(self, run: str, granted: Sequence[str]) -> ArtifactTools:
        async def read(id: str) -> str | None:
            # Prompts contain no run id.
            return await self._store.read(lambda reads: evidence.artifact(reads, f"{run}/{id}"))

        return ArtifactTools(read, granted, redact=self._redact)

    def _reading(
        self,
        tools: Sequence[Toolset],
        rights: ToolRights,
        lane: Transcript,
        quota: CallQuota | None = None,
    ) -> Toolset:
        """Return tools for a directory whose tree is not recorded."""
        return Gateway(
            tools,
            granted=rights.granted_tools(rights.role_tools),
            transcript=lane,
            redact=self._redact,
            why=rights.why,
            quota=quota,
        )


def _narrow(tools: Sequence[str], named: Collection[str] | None) -> tuple[str, ...]:
    """Return the tools without those that a definition can name and does not; None: all."""
    return tuple(one for one in tools if named is None or one in named or one not in NAMED_TOOLS)


def _scope_rule(bench: WorkerWorkspace, tree: DirectoryTree) -> Callable[[str], str]:
    """Return the rule of the write scope, for the files that the workspace has now."""

    def refuse(path: str) -> str:
        if reason := bench.refuse_write(path, _AbsentPaths(tree)):
            return f"{reason.reason.removesuffix('.')} (rule {reason.rule!r})."
        repository = find_completed_repository(path, tree.exists)
        return (
            f"would make {repository!r} a git repository (rule 'repository')." if repository else ""
        )

    return refuse


@dataclass(frozen=True, slots=True)
class _AbsentPaths:
    """Paths that a workspace does not have."""

    tree: DirectoryTree

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and not self.tree.exists(path)


def _prepare_call(tree: DirectoryTree, stand: Stand) -> Callable[[bool], Awaitable[None]]:
    """Return the preparation of a call: the tree moves to the call's directory."""

    async def prepare(effectful: bool) -> None:
        tree.root = await stand(effectful)

    return prepare


class ProjectSandbox:
    """Sandbox of one project, for its tools and checks, with a view of its history."""

    def __init__(
        self,
        sandbox: Sandbox,
        history: GitHistory,
        project: Path,
        base: str = "",
        scripts: SkillScripts | None = None,
    ) -> None:
        self._scripts = scripts
        self._sandbox = sandbox
        self._history = history
        self._project = project
        self.base = base
        """Commit that git shows inside; empty: none."""

    @property
    def backend(self) -> str:
        """Name of the sandbox in evidence."""
        return self._sandbox.backend

    def with_view(self, base: str, scripts: SkillScripts | None = None) -> "ProjectSandbox":
        """Return this sandbox with another commit in view, and scripts of skills."""
        return ProjectSandbox(self._sandbox, self._history, self._project, base, scripts)

    async def make_repository(self, where: Path) -> None:
        """Make a directory a git repository of its own; its one commit holds every file."""
        await self._history.make_repository(where)

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        seconds: float,
        extra_ro: Mapping[str, Path] | None = None,
        extra_rw: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
        first: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command that sees its workspace and nothing else."""
        if self._scripts and self._scripts.skills:
            mounts = await asyncio.to_thread(self._scripts.mount, workspace)
            extra_ro = {**(extra_ro or {}), **mounts}
        return await self._sandbox.run(
            forgive_broken_pipes(argv),
            workspace=workspace,
            seconds=seconds,
            project=self._project,
            view=await self._history.view(self.base) if self.base else None,
            extra_ro=extra_ro,
            extra_rw=extra_rw,
            env=env,
            first=first,
        )
