"""Verb `plan`: Ecko (optional), the PM, parser and lint turn a request into a plan.

Planning is a run of its own, journaled and resumable like any other.
"""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from mimir.attempts.deliverable import HIDDEN
from mimir.domain.run import INPUT, RunBudget, RunResult
from mimir.domain.task_states import RunStatus
from mimir.errors import AnswerError, ModelError, Paused, RejectedError, Waiting
from mimir.orchestrator import run_models
from mimir.orchestrator.patterns.choose import DIRECT, PatternOptions, read_options
from mimir.orchestrator.patterns.planning_run import PlanningResult, PlanningRun
from mimir.orchestrator.patterns.planning_steps import PLAN_NAME
from mimir.orchestrator.services import ProjectServices
from mimir.planning.format.slug import slug
from mimir.scheduling import lifecycle
from mimir.scheduling.input_pause import expire_due, pause_planning
from mimir.store.operations import budget, runs
from mimir.store.operations.record_loading import load_run
from mimir.store.records.run_records import RunRecord


async def create_planning_run(
    services: ProjectServices,
    request: str,
    *,
    with_ecko: bool,
    output: str,
    model: str,
    limits: RunBudget,
    pattern: PatternOptions = DIRECT,
) -> str:
    """Create a planning run; return its id.

    Raises:
        ConfigurationError: The settings do not allow a model call, or the cost is limited and a model has no price.
    """
    services.check_models()
    if limits.max_cost is not None:
        models = models_of_planning(services, model, pattern)
        budget.must_have_prices(services.prices, models)
    run = services.ids.new("plan")
    base = await services.history.base(run, hidden=HIDDEN)
    new = services.new_run(
        run,
        base,
        replace(limits, seconds=None),  # the conversation with the PM has a time limit of its own
        kind="plan",
        name=" ".join(request.split())[:80] or run,
        request=request,
        plan_path=output or find_free_path(services.project, request),
        settings={
            **services.pinned,
            "ecko": with_ecko,
            "model": model,
            **pattern.as_settings(),
        },
    )
    await services.store.write(partial(runs.create, new=new))
    return run


def models_of_planning(
    services: ProjectServices, model: str, pattern: PatternOptions
) -> frozenset[str]:
    """Return the models that planning may call; a named `model` replaces the set ones."""
    if model:
        return frozenset((model,))
    models = {services.choices[role].model for role in ("ecko", "pm")}
    steps = services.planning_steps().values() if pattern.name != "direct" else ()
    return frozenset(models | {step.model for step in steps if step.model})


async def raise_limits(services: ProjectServices, run: str, limits: RunBudget) -> None:
    """Set new limits of a planning run.

    Raises:
        ConfigurationError: The cost is to be limited, and a model had no price at the start.
    """
    record = await services.store.read(partial(load_run, run=run))
    if limits.max_cost is not None or record.max_cost is not None:
        settings = record.settings.mapping()
        model, pattern = str(settings.get("model") or ""), read_options(settings)
        budget.must_be_priced(record, models_of_planning(services, model, pattern))
    await services.store.write(partial(lifecycle.set_limits, run=run, limits=limits))


async def make_plan(
    services: ProjectServices, run: str, *, models: Mapping[str, str] | None = None
) -> PlanningResult:
    """Continue a planning run from its transcripts, with `models`, and write the plan.

    Raises:
        Paused: The run can be resumed, or the user must answer.
        AnswerError: A model gave no usable answer; the run has failed.
        RejectedError: The user rejected a step too often; the run has failed.
        ModelError: The provider refused the conversation; the run has failed.
    """
    record = await take_planning_run(services, run, models)
    owner, store = services.owner, services.store
    while True:
        try:
            return await hold_conversations(services, record)
        except Waiting:
            paused = await store.write(partial(pause_planning, run=run, owner=owner))
            # The answer came before the pause: the transcripts continue with it.
            if paused is None:
                continue
        except Paused as error:
            paused = error
        pause = partial(lifecycle.pause, run=run, owner=owner, paused=paused, seconds=0.0)
        await store.write(pause)
        raise paused from None


async def take_planning_run(
    services: ProjectServices, run: str, models: Mapping[str, str] | None
) -> RunRecord:
    """Become the process of a planning run, with `models` from now on.

    Raises:
        BusyError: Another process has it.
        UsageError: It has ended.
    """
    take = partial(
        lifecycle.take_run,
        run=run,
        owner=services.owner,
        seconds=services.lease_seconds,
        dead=services.owners.find_dead(),
        resumed=True,
        models=models,
    )
    record = await services.store.write(take)
    # No process waits for an answer, so a question expires when the run is resumed.
    await services.store.write(partial(expire_due, run=run))
    return record


async def hold_conversations(services: ProjectServices, record: RunRecord) -> PlanningResult:
    """Hold the conversations of a planning run to its end; a pause is left to the caller.

    Raises:
        Waiting: Only an answer of the user can continue the run.
        Paused: The run can be resumed.
        AnswerError, RejectedError, ModelError: The run has failed.
    """
    end = partial(lifecycle.end, run=record.id, owner=services.owner)
    try:
        own = run_models.services_for_run(services, record)
        planned = await PlanningRun(own, record).run()
    except (AnswerError, ModelError, RejectedError) as error:
        data: dict[str, object] = {"message": str(error)}
        if isinstance(error, RejectedError):
            data["cause"] = "rejected"
        await services.store.write(partial(end, outcome=RunStatus.FAILED, data=data))
        raise
    data = {"plan": planned.path, "tasks": len(planned.plan.tasks)}
    await services.store.write(partial(end, outcome=planned.outcome, data=data))
    return planned


async def resume_planning(services: ProjectServices, run: str, limits: RunBudget) -> RunResult:
    """Continue a planning run."""
    await raise_limits(services, run, limits)
    record = await services.store.read(partial(load_run, run=run), brief=True)
    settings = run_models.resume_settings(services, record)
    try:
        planned = await make_plan(settings.services, run, models=settings.models)
    except Paused as paused:
        # A pause for an answer is a result: on a terminal, the command asks for it.
        if paused.reason != INPUT:
            raise
        return RunResult(
            run=run,
            outcome=RunStatus.PAUSED,
            exit_code=paused.exit_code,
            message=str(paused),
            next_step=paused.next_step or "",
        )
    # A planning run of `execute` is continued by the command that resumes it.
    is_last = planned.exit_code or read_options(record.settings.mapping()).then == "stop"
    steps = f"Check it: mimir check {planned.path}  Run it: mimir execute {planned.path}"
    return RunResult(
        run=run,
        outcome=planned.outcome,
        exit_code=planned.exit_code,
        plan_path=planned.path,
        next_step=steps if is_last else "",
    )


def find_free_path(project: Path, request: str) -> str:
    """Return a free path `chains/<slug>/chain-output.md`; a number keeps older plans."""
    name = slug(request)
    folders = itertools.chain(
        (f"chains/{name}",), (f"chains/{name}-{number}" for number in itertools.count(2))
    )
    folder = next(one for one in folders if not (project / one).exists())
    return f"{folder}/{PLAN_NAME}"
