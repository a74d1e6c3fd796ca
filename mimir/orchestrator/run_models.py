"""How a run asks its models: as was set when it began, whatever is set when it is gone on with; after a pause for its configuration by the models that are set now.

What changed stands in the run's row and in the event that tells of its going on, so that every process of the run, and a replay, asks alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from mimir.attempts.services import ModelChoice
from mimir.domain.task_states import RunStatus
from mimir.orchestrator.services import ProjectServices
from mimir.store import row_fields
from mimir.store.protocol import Row

_PLANNERS = ("ecko", "pm")


def pinned_choice(settings: Mapping[str, object], role: str) -> ModelChoice | None:
    """Return how a role asks its model by pinned settings; None: they do not tell."""
    llm = settings.get("llm")
    if not isinstance(llm, Mapping):
        return None
    own = _members(_members(settings.get("roles")).get(role))
    named = settings.get("model") if role in _PLANNERS else ""  # of a planning run alone
    temperature, most = own.get("temperature", 0.0), own.get("max_tokens")
    return ModelChoice(
        model=str(named or own.get("model") or _members(cast("object", llm)).get("model") or ""),
        temperature=float(temperature) if isinstance(temperature, int | float) else None,
        max_tokens=most if isinstance(most, int) else None,
    )


def services_for_run(parts: ProjectServices, row: Row) -> ProjectServices:
    """Return the parts with which a run is served; `row` is its node."""
    own = apply_pinned_settings(parts, row_fields.json_field(row, "settingsJson"))
    models = row_fields.json_field(row, "modelsJson")
    choices = {
        r: replace(one, model=str(models.get(r) or one.model)) for r, one in own.choices.items()
    }
    return replace(own, choices=choices)


def apply_pinned_settings(
    parts: ProjectServices, settings: Mapping[str, object]
) -> ProjectServices:
    """Return the parts as settings say that a run has pinned; what they do not tell is as it is."""
    choices = {role: pinned_choice(settings, role) or now for role, now in parts.choices.items()}
    tokens = _members(settings.get("run")).get("attempt_tokens")
    most = tokens if isinstance(tokens, int) else parts.attempt_tokens
    return replace(parts, choices=choices, attempt_tokens=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedSettings:
    """How a run is gone on with."""

    parts: ProjectServices
    """As it asks its models now."""
    models: Mapping[str, str]
    """Role → model that is asked in the place of the one before; to be kept with the run."""
    left_aside: Mapping[str, str]
    """Role → model that it goes on with, though another one is set."""


def resume_settings(parts: ProjectServices, row: Row) -> ResumedSettings:
    """Say how a run is gone on with; `row` is its node, from before that."""
    own = services_for_run(parts, row)
    new = {r: one.model for r, one in parts.choices.items() if one.model != own.choices[r].model}
    is_paused = row_fields.text_field(row, "status") == RunStatus.PAUSED.value
    if not (is_paused and row_fields.text_field(row, "pauseReason") == "configuration"):
        aside = {role: own.choices[role].model for role in new}
        return ResumedSettings(parts=own, models={}, left_aside=aside)
    choices = {r: replace(one, model=new.get(r, one.model)) for r, one in own.choices.items()}
    return ResumedSettings(parts=replace(own, choices=choices), models=new, left_aside={})


def _members(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
