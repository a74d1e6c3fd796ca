"""Rules of memory proposals: operations, relevance, contradictions, principals. Pure."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from mimir.domain.json_value import JsonObject, as_objects, as_text, as_texts
from mimir.domain.value_class import value_class

Verb = Literal["accept", "reject", "edit"]
USER = "user"
"""Name of the user in decisions."""
ENGINE = "engine"
ENTITIES, OBSERVATIONS, RELATIONS = "create_entities", "add_observations", "create_relations"
KINDS: Mapping[str, str] = {ENTITIES: "entity", OBSERVATIONS: "observation", RELATIONS: "relation"}
MAX_OBSERVATION = 2_000
"""Characters of one observation."""
MAX_MEMORY = 20_000
ENOUGH_RELEVANCE = 0.5
"""Least relevance of a proposal that the engine accepts alone."""
RESULT_WEIGHT = 1 / 3
"""Weight of a word that only results of tools have: a read file proves no relevance."""
LOW_OVERLAP = 0.2
"""Share of equal words below which two memories about one entity may contradict."""
_WORD = re.compile(r"\w{4,}")


@value_class
class MemoryDecision:
    """Decision of a principal about one proposal."""

    id: str
    """Its id, or the beginning of it."""
    verb: Verb
    text: str = ""
    """Reason of a rejection, or the new text of an edit."""
    supersedes: str = ""
    """Accepted memory whose place it takes. Empty: none."""


@value_class
class ProposedMemory:
    """One memory operation as a memory would hold it."""

    text: str
    entities: tuple[str, ...]
    refusal: str = ""
    """Reason of its refusal as a proposal. Empty: it is kept."""


def read_operation(operation: str, data: JsonObject, core: Collection[str]) -> ProposedMemory:
    """Return the memory of an operation; `core` are names of the project and of engine facts."""
    texts: list[str] = []
    if operation == ENTITIES:
        items = as_objects(data.get("entities")) or [data]
        names = [_name(one) for one in items]
        observed = [as_texts(one.get("observations")) for one in items]
        texts = [text for own in observed for text in own]
        heads = [
            f"{name} {_describe_entity(one)}".strip()
            for name, one in zip(names, items, strict=True)
        ]
        lines = [
            "; ".join(filter(None, (head, *own))) for head, own in zip(heads, observed, strict=True)
        ]
    elif operation == OBSERVATIONS:
        items = as_objects(data.get("observations")) or [data]
        names = [as_text(one.get("entity")) for one in items]
        texts = [as_text(one.get("text")) for one in items]
        lines = [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
    else:
        items = as_objects(data.get("relations")) or [data]
        names = [as_text(one.get(end)) for end in ("from", "to") for one in items]
        lines = [
            f"{as_text(one.get('from'))} {one.get('type')} {one.get('to')}".strip() for one in items
        ]
    names = [name.strip() for name in names]
    return ProposedMemory(
        text="\n".join(lines)[:MAX_MEMORY],
        entities=tuple(dict.fromkeys(filter(None, names))),
        refusal=_refuse(operation, names, texts, core),
    )


def _refuse(
    operation: str, names: Sequence[str], texts: Sequence[str], core: Collection[str]
) -> str:
    if not all(names):
        return "its data names no entity"
    if operation == OBSERVATIONS and not all(text.strip() for text in texts):
        return "an observation is empty"
    if any(len(text) > MAX_OBSERVATION for text in texts):
        return f"an observation has over {MAX_OBSERVATION:,} characters"
    # An agent may add to the facts of the engine, but not replace them.
    known = {normalise(name) for name in core}
    protected = [name for name in names if normalise(name) in known]
    if operation != OBSERVATIONS and protected:
        return f"{protected[0][:80]} is a core entity, which accepts observations only"
    return ""


def _name(one: JsonObject) -> str:
    # Nothing may take the place of the project itself.
    return as_text(one.get("name")) if normalise(as_text(one.get("type"))) != "project" else ""


def _describe_entity(one: JsonObject) -> str:
    kind = as_text(one.get("type"))
    return f"({kind})" if kind else ""


def proposal_id(run: str, operation: str, data: JsonObject, number: int) -> str:
    """Return the id of a proposal: a replay of its run has the same."""
    digest = hashlib.sha256(json.dumps([run, operation, data, number]).encode()).hexdigest()
    return f"m-{digest[:12]}"


def hash_task(task: str) -> str:
    """Return the SHA-256 of a task in its normalised form."""
    return hashlib.sha256(normalise(task).encode()).hexdigest()


def normalise(text: str) -> str:
    """Return a text without differences of case and white space."""
    return " ".join(text.casefold().split())


def find_words(text: str) -> frozenset[str]:
    """Return the content words of a text: those of four letters and more."""
    return frozenset(_WORD.findall(text.casefold()))


def measure_relevance(text: str, task: str, results: Iterable[str]) -> float:
    """Return the share of the content words of a proposal that belong to its task, 0 to 1.

    Words that only results of tools have count a third: their text may come from an attacker.
    """
    words = find_words(text)
    if not words:
        return 0.0
    own = words & find_words(task)
    read = set[str]().union(*map(find_words, results)) & (words - own)
    return round((len(own) + RESULT_WEIGHT * len(read)) / len(words), 2)


def overlaps(one: str, other: str) -> bool:
    """Return whether two memories share enough words to say the same."""
    first, second = find_words(one), find_words(other)
    return len(first & second) >= LOW_OVERLAP * len(first | second)


def is_supported(text: str, source: str) -> bool:
    """Return whether a source without a quote has at least half of the words of a proposal."""
    words = find_words(text)
    return bool(words) and 2 * len(words & find_words(source)) >= len(words)


def may_engine_accept(
    sources: Sequence[str], unverified: Sequence[str], relevance: float, contradicts: Sequence[str]
) -> bool:
    """Return whether the engine accepts a proposal alone."""
    is_cited = bool(sources) and not unverified
    return is_cited and relevance >= ENOUGH_RELEVANCE and not contradicts


def refuse_decider(decider: str, *, principal: str, agent: str, accept: str) -> str:
    """Return why a principal may not decide about a proposal; empty: it may.

    Args:
        decider: The principal; `USER`: the user.
        principal: Of the run that proposed. Empty: the user.
        agent: Address of the definition of that run. Empty: a client proposed a note.
        accept: The setting `agents.accept`.
    """
    if decider == USER:
        return ""
    if not agent:
        return "a client proposed it: the user decides"
    # Checked before its principal: an agent may have started the run of its own definition.
    if decider == f"agent:{agent}":
        return "a run never decides about its own proposals"
    if accept == USER:
        return "the setting agents.accept leaves it to the user"
    return "" if decider == principal else "it is not of a run of yours"
