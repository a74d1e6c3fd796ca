"""Check of the models for `mimir doctor`: endpoint, key, and one short call on demand."""

import importlib.util
import json
from collections.abc import Sequence

from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.models.endpoints import ModelUse, describe_models
from mimir.bootstrap.models.registry import make_endpoints
from mimir.domain.json_value import is_object
from mimir.domain.message import Answer, Message, ModelRequest, ToolSpec
from mimir.domain.value_class import value_class
from mimir.errors import MimirError
from mimir.llm.config import split_provider
from mimir.settings.layers import LoadedSettings
from mimir.tools.secrets import Redactor

MOST_TOKENS = 16
"""Longest answer of the call of `--ask`."""
_TOOL = "report_ready"
_SCHEMA = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}
_REQUEST = ModelRequest(
    messages=(
        Message(role="system", text=f"Call the tool {_TOOL} once, without any other text."),
        Message(role="user", text="Are you ready?"),
    ),
    tools=(
        ToolSpec(
            name=_TOOL,
            description="Report that you are ready.",
            input_schema={"type": "object", "properties": {}},
        ),
    ),
    max_tokens=MOST_TOKENS,
    schema=_SCHEMA,
    schema_name="ready",
)


@value_class
class DoctorFinding:
    """One requirement of mimir, and whether this machine meets it."""

    subject: str
    ok: bool
    detail: str
    fix: str = ""
    """Next step; empty if it works."""


async def check_models(loaded: LoadedSettings, *, ask: bool) -> Sequence[DoctorFinding]:
    """Return whether the models can be asked; with `ask`, one call to each endpoint."""
    found: list[DoctorFinding] = []
    asked: set[str] = set()
    # The worker makes most of the calls.
    uses = sorted(describe_models(loaded), key=lambda use: "worker" not in use.roles)
    for use in uses:
        if use.where not in asked:
            asked.add(use.where)
            found += [*_check_key(use), await _check_model(loaded, use, ask=ask)]
    return found


def _check_key(use: ModelUse) -> Sequence[DoctorFinding]:
    return [DoctorFinding(subject="key", ok=True, detail=f"from {use.key}")] if use.key else []


async def _check_model(loaded: LoadedSettings, use: ModelUse, *, ask: bool) -> DoctorFinding:
    settings = loaded.settings
    name = f"{use.model or 'the default model'} at {use.where}"
    provider = "" if use.base_url else split_provider(use.model)[0]
    if provider and importlib.util.find_spec(f"langchain_{provider.replace('-', '_')}") is None:
        fix = f"Install it: pip install langchain-{provider}"
        return DoctorFinding(subject="model", ok=False, detail=f"{use.model}: no package", fix=fix)
    once = settings.model_copy(
        update={"llm": settings.llm.model_copy(update={"tries": 1, "structured": "json_schema"})}
    )
    endpoints = make_endpoints(once, SystemClock(), Redactor(loaded.secrets))
    try:
        model = endpoints.for_lane("worker", "doctor", use.model)
        if not ask:
            detail = f"{name}; not asked: mimir doctor --ask"
            return DoctorFinding(subject="model", ok=True, detail=detail)
        began = SystemClock().monotonic()
        answer = await model.ask(_REQUEST)
        seconds = SystemClock().monotonic() - began
    except MimirError as error:
        fix = error.next_step or use.note
        return DoctorFinding(subject="model", ok=False, detail=f"{name}: {error}", fix=fix)
    finally:
        await endpoints.close()
    notices = " ".join(endpoints.notices())
    facts = (
        f"{name} answered in {seconds:.1f} s",
        f"tool calls: {_describe_calls(answer)}",
        f"structured answers: {_describe_schema(answer, notices)}",
        f"usage: {answer.usage.total} tokens" if answer.usage else "usage: not counted",
    )
    return DoctorFinding(
        subject="model", ok=True, detail="; ".join(facts), fix=_advise(answer, use)
    )


def _describe_calls(answer: Answer) -> str:
    if any(call.name == _TOOL for call in answer.message.calls):
        return "yes"
    return f"cut off at {MOST_TOKENS} tokens" if answer.finish == "length" else "none was made"


def _describe_schema(answer: Answer, notices: str) -> str:
    if "response_format" in notices:
        return "refused together with tools"
    if answer.message.calls:
        return "accepted"
    try:
        is_kept = is_object(json.loads(answer.message.text))
    except ValueError:
        is_kept = False
    return "yes" if is_kept else f"the answer is none (cut off at {MOST_TOKENS} tokens, or ignored)"


def _advise(answer: Answer, use: ModelUse) -> str:
    return "" if answer.message.calls else use.note
