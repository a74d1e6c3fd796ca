"""Agentinator: one model call for each distinct role, once; then a cached file.

A run never stops because a preamble could not be written: then the template alone serves this run, and nothing is cached.
Only errors that would stop any model call (no key, no budget) pass through.
"""

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal

from mimir.agents.context import quotation
from mimir.agents.preambles import templates
from mimir.agents.preambles.preamble_cache import CachedPreamble, Kind, PreambleCache, PreambleKey
from mimir.agents.preambles.trust import OwnPreambles
from mimir.agents.replies import strip_fence
from mimir.domain.message import Answer, Message, ModelRequest
from mimir.domain.plan import NO_REVIEWER
from mimir.domain.quoted_text import storable
from mimir.domain.value_class import value_class
from mimir.errors import AnswerError, ModelError, ToolError
from mimir.llm.protocol import ChatModel

# Characters of a generated preamble.
SHORTEST = 400
LONGEST = 10_000
# Its required headings of the second level.
SECTIONS = ("Expertise", "How to work", "Use of tools", "Output")
# Most characters of a role description in the prompt.
MAX_ROLE = 2_000

# Template and guidance of each kind.
_PARTS: dict[Kind, tuple[templates.Name, templates.Name]] = {
    "worker": ("worker", "tool-execution"),
    "qc": ("qc", "verification"),
}
Recorded = Callable[[int, Kind, str], tuple[str, str] | None]
"""(number of the role, kind, role) → (text, hash)."""


@value_class
class Preamble:
    """The system message of a role."""

    kind: Kind
    role: str
    text: str
    """Ends with the fixed rules."""
    hash: str
    """SHA-256 of the part before the fixed rules; stored with the attempt."""
    path: str
    """Relative to the project; empty for the template."""
    origin: Literal["found", "made", "template"]
    why: str = ""
    """Reason for the template."""
    ignored: str = ""
    """File of the project that is not trusted. Empty: there is none."""


class Agentinator:
    """Preambles for the roles of one run."""

    def __init__(
        self,
        *,
        own: OwnPreambles,
        library: PreambleCache,
        open_model: Callable[[int], Awaitable[ChatModel]],
        asking: ModelRequest,
        created_by: str = "mimir",
        recorded: Recorded | None = None,
    ) -> None:
        """Make no call yet.

        `asking` is the request without messages. `open_model` gets a role's number: each role has its own transcript, so a
        replay finds each call, cached or not. `recorded` returns, in a replay, a preamble that the recorded run did not
        generate.
        """
        self._own = own
        self._library = library
        self._open_model = open_model
        self._asking = asking
        self._created_by = created_by
        self._recorded = recorded
        self._done: dict[str, Preamble] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._numbers: dict[str, int] = {}

    async def preamble(self, kind: Kind, role: str) -> Preamble:
        """Return the preamble of a role: cached, generated, or the template.

        Equal roles cost one call, even in concurrent runs.

        Raises:
            PlanError: A template or a preamble file of the project is invalid.
            ModelError: Scope `run`: no model call can succeed.
            Paused: From the model, or the disk is full.
        """
        template, guidance = (
            templates.load_template(name, self._own.read) for name in _PARTS[kind]
        )
        recipe = PreambleKey(
            kind=kind, role=role, template=template, guidance=guidance, model=self._asking.model
        )
        # Numbered in the order of requests, which a replay repeats.
        self._numbers.setdefault(recipe.key, len(self._numbers) + 1)
        # Concurrent tasks of one role wait for the same call.
        if not role.removeprefix(NO_REVIEWER).strip():
            return _use_template(recipe, "the plan names no role")
        async with self._turns.setdefault(recipe.key, asyncio.Lock()):
            if recipe.key not in self._done:
                self._done[recipe.key] = await self._obtain(recipe)
            return self._done[recipe.key]

    async def _obtain(self, recipe: PreambleKey) -> Preamble:
        found = self._library.find(recipe)
        if found is not None:
            return _preamble(recipe, found, "found")
        number = self._numbers[recipe.key]
        known = self._recorded(number, recipe.kind, recipe.role) if self._recorded else None
        if known is not None:
            text, hash = known
            return Preamble(
                kind=recipe.kind, role=recipe.role, text=text, hash=hash, path="", origin="found"
            )
        async with self._library.lock(recipe):
            # Another run may have written it during the wait.
            found = self._library.find(recipe) or self._library.adopt(recipe)
            if found is not None:
                return _preamble(recipe, found, "found")
            return await self._generate(recipe)

    async def _generate(self, recipe: PreambleKey) -> Preamble:
        try:
            text = f"{await self._ask(recipe)}\n\n{recipe.guidance.text}"
            ignored = recipe.path if self._library.is_ignored(recipe) else ""
            saved = self._library.save(recipe, text, self._created_by)
            preamble = _preamble(recipe, saved, "made")
            return replace(preamble, path="", ignored=ignored) if ignored else preamble
        except (AnswerError, ModelError, ToolError) as error:
            if isinstance(error, ModelError) and error.scope == "run":
                raise
            return _use_template(recipe, str(error))

    async def _ask(self, recipe: PreambleKey) -> str:
        model = await self._open_model(self._numbers[recipe.key])
        brief = (
            Message(role="system", text=templates.system_message("agentinator", self._own.read)),
            Message(role="user", text=_prompt(recipe)),
        )
        return accept_generated(await model.ask(replace(self._asking, messages=brief)))


def use_definition(role: str, prompt: str, schema: str = "") -> Preamble:
    """Return the preamble of an agent definition: its prompt, the fixed rules, its schema."""
    form = f"\n\n`structured` must match this JSON Schema:\n\n{schema}" if schema else ""
    return Preamble(
        kind="worker",
        role=role,
        text=f"{prompt}\n\n{templates.fixed_rules('agent')}{form}",
        hash=templates.digest(prompt),
        path="",
        origin="found",
    )


def _use_template(recipe: PreambleKey, why: str) -> Preamble:
    text = f"{recipe.template.text}\n\n{recipe.guidance.text}"
    entry = CachedPreamble(text=text, hash=templates.digest(text))
    return _preamble(recipe, entry, "template", why=why)


def accept_generated(answer: Answer) -> str:
    """Return the text of a usable preamble; raise `AnswerError` for any other."""
    # The file is used for every later run, so it must be complete.
    if answer.finish in ("length", "content_filter"):
        raise AnswerError(f"The preamble is not complete ({answer.finish}).")
    text = strip_fence(answer.message.text.replace("\r\n", "\n").strip())
    if not SHORTEST <= len(text) <= LONGEST:
        raise AnswerError(f"The preamble has {len(text)} characters, not {SHORTEST} to {LONGEST}.")
    # Control characters could hide text from a user that reads the file.
    if any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t" for c in text):
        raise AnswerError("The preamble holds control characters.")
    headings = {
        line.lstrip("#").strip(" *:").casefold()
        for line in text.splitlines()
        if line.startswith("## ")
    }
    missing = [name for name in SECTIONS if name.casefold() not in headings]
    if missing:
        raise AnswerError(f"The preamble lacks the section {missing[0]!r}.")
    return text


def _preamble(
    recipe: PreambleKey,
    entry: CachedPreamble,
    origin: Literal["found", "made", "template"],
    why: str = "",
) -> Preamble:
    return Preamble(
        kind=recipe.kind,
        role=recipe.role,
        text=f"{entry.text}\n\n{templates.fixed_rules(recipe.kind)}",
        hash=entry.hash,
        path="" if origin == "template" else recipe.path,
        origin=origin,
        why=why,
    )


def _prompt(recipe: PreambleKey) -> str:
    role_kind = "worker" if recipe.kind == "worker" else "reviewer"
    role = storable(" ".join(recipe.role.split())[:MAX_ROLE])
    return (
        "Task: plan\nAttempt 1 of 1\n\n"
        f"Write the preamble of a {role_kind} with this role:\n\n{quotation.fence_block(role)}\n\n"
        f"The template, for what such a preamble covers:\n\n{quotation.fence_block(recipe.template.text)}\n\n"
        "This guidance is added after your text; do not repeat it:\n\n"
        f"{quotation.fence_block(recipe.guidance.text)}\n"
    )
