"""Models of a run: those of its start, also after a resume with other settings.

Only a run that paused because of its configuration takes the models that are set now. The change is stored with the run and in its
event, so that every process of the run, and a replay, calls the same models.
"""

from collections.abc import Mapping
from dataclasses import replace

from mimir.attempts.delivered_paths import DeliverableLimits
from mimir.attempts.services import ModelChoice
from mimir.domain.agent import name_model
from mimir.domain.json_value import (
    as_member,
    as_number,
    as_object,
    as_text,
    as_whole_number,
    is_object,
)
from mimir.domain.run import APPLY_OPTIONS, Apply
from mimir.domain.task_states import RunStatus
from mimir.domain.value_class import value_class
from mimir.orchestrator.services import ProjectServices
from mimir.store.records.run_records import RunRecord

_PLANNERS = ("ecko", "pm")


@value_class
class ResumedSettings:
    """Models with which a run is resumed."""

    services: ProjectServices
    """Services with these models."""
    models: Mapping[str, str]
    """Role → model that replaces the earlier one; to be stored with the run."""
    ignored: Mapping[str, str]
    """Role → model that the run keeps, although another one is set."""


def pinned_choice(settings: Mapping[str, object], role: str) -> ModelChoice | None:
    """Return the model choice of a role in pinned settings; None: they have none."""
    llm = settings.get("llm")
    if not is_object(llm):
        return None
    own = as_object(as_object(settings.get("roles")).get(role))
    # `--model` of `mimir chain` is pinned outside the roles.
    named = settings.get("model") if role in _PLANNERS else ""  # set by planning runs alone
    temperature = as_number(own.get("temperature", 0.0))
    return ModelChoice(
        model=str(
            named
            or name_model(
                as_text(own.get("endpoint", "")),
                as_text(own.get("model", "")),
                as_text(llm.get("model", "")),
            )
        ),
        temperature=None if temperature is None else float(temperature),
        max_tokens=as_whole_number(own.get("max_tokens")),
    )


def pinned_apply(run: RunRecord) -> Apply:
    """Return whether a run applies its result, by its pinned settings."""
    own = as_object(run.settings.mapping().get("run"))
    return as_member(own.get("apply"), APPLY_OPTIONS) or "never"


def apply_pinned_settings(
    services: ProjectServices, settings: Mapping[str, object]
) -> ProjectServices:
    """Return the services with a run's pinned settings; absent ones stay as they are."""
    choices = {
        role: replace(pinned_choice(settings, role) or now, context_tokens=now.context_tokens)
        for role, now in services.choices.items()
    }
    run = as_object(settings.get("run"))
    now = services.deliverable_limits
    return replace(
        services,
        choices=choices,
        attempt_tokens=as_whole_number(run.get("attempt_tokens")) or services.attempt_tokens,
        deliverable_limits=DeliverableLimits(
            files=as_whole_number(run.get("deliverable_files")) or now.files,
            megabytes=as_whole_number(run.get("deliverable_mb")) or now.megabytes,
        ),
    )


def services_for_run(services: ProjectServices, run: RunRecord) -> ProjectServices:
    """Return the services with which a run is served."""
    own = apply_pinned_settings(services, run.settings.mapping())
    models = run.models.mapping()
    return _with_models(own, {role: str(model) for role, model in models.items() if model})


def resume_settings(services: ProjectServices, run: RunRecord) -> ResumedSettings:
    """Decide the models of a run that is resumed; `run` is its record from before that."""
    own = services_for_run(services, run)
    new = {r: c.model for r, c in services.choices.items() if c.model != own.choices[r].model}
    # The user was asked to change the configuration, so today's models are intended.
    if run.status is RunStatus.PAUSED and run.pause_reason == "configuration":
        return ResumedSettings(services=_with_models(own, new), models=new, ignored={})
    ignored = {role: own.choices[role].model for role in new}
    return ResumedSettings(services=own, models={}, ignored=ignored)


def _with_models(services: ProjectServices, models: Mapping[str, str]) -> ProjectServices:
    choices = {
        role: replace(choice, model=models.get(role, choice.model))
        for role, choice in services.choices.items()
    }
    return replace(services, choices=choices)
