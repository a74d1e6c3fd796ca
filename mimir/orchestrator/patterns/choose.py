"""Choice of the pattern of a request, from facts that quotes support. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal, get_args

from mimir.domain.json_value import as_member, as_object, as_text, as_texts, as_whole_number
from mimir.domain.question import remove_control
from mimir.domain.value_class import value_class

PatternName = Literal["direct", "ask", "sdd", "auto"]
PATTERNS: tuple[PatternName, ...] = get_args(PatternName)
Stops = Literal["direct", "ask", "sdd"]
Following = Literal["stop", "confirm", "execute"]
"""After the plan: nothing, its execution after a confirmation, or its execution."""
KEPT = ("workers", "apply", "max_calls", "max_tokens", "max_cost", "time_limit_minutes")
"""Settings `run.*` of a planning run that hold for the execution after it."""
MAX_MISSING = 3

CHOICE_REQUEST = """\
Write no specification now. Decide two facts about the request from its own words. Answer with one JSON object and nothing else:

{"clear": true or false, "missing": ["at most 3 open points"], "new_feature": true or false,
 "quotes": {"clear": "words of the request", "new_feature": "words of the request"}}

- clear: a developer could begin without a question to its author. If false, `missing` names what decides the result and is not said.
- new_feature: it asks for behaviour that does not exist yet, not for a correction, a removal or a small change.
- Each quote is copied from the request, word for word, and supports the fact. Leave a fact out if nothing in the request supports it."""


@value_class
class PatternOptions:
    """Pattern of a planning run, with its options; the run pins them."""

    name: PatternName = "direct"
    rounds: int = 3
    """Rounds of questions of the interviewer."""
    rejections: int = 5
    """Rejections of one subject that end the run."""
    is_terminal: bool = False
    """Whether the user can be asked on a terminal."""
    then: Following = "stop"
    """Next step after the plan."""
    only: tuple[str, ...] = ()
    """Tasks of the execution; empty: all."""
    from_run: str = ""
    """Run of which the execution reuses completed tasks; empty: none."""

    def as_settings(self) -> Mapping[str, object]:
        """Return the pinned settings; none for `direct`, as in runs of older versions."""
        return {} if self.name == "direct" else {"pattern": asdict(self)}


DIRECT = PatternOptions()


@value_class
class PlanFollowing:
    """Next step after a plan, with its arguments."""

    path: str
    """Of the plan."""
    then: Following
    only: tuple[str, ...] = ()
    from_run: str = ""
    settings: Mapping[str, object]
    """Settings of the planning run by their path."""


def read_options(settings: Mapping[str, object]) -> PatternOptions:
    """Return the pattern of pinned settings."""
    own = as_object(settings.get("pattern"))
    return PatternOptions(
        name=as_member(own.get("name"), PATTERNS) or "direct",
        rounds=as_whole_number(own.get("rounds")) or 0,
        rejections=as_whole_number(own.get("rejections")) or 1,
        is_terminal=own.get("is_terminal") is True,
        then=as_member(own.get("then"), get_args(Following)) or "stop",
        only=tuple(as_texts(own.get("only"))),
        from_run=as_text(own.get("from_run")),
    )


@value_class
class RequestFacts:
    """Facts that a model found about a request; None: unknown."""

    clear: bool | None
    new_feature: bool | None
    missing: tuple[str, ...] = ()


@value_class
class PatternChoice:
    """The chosen pattern."""

    pattern: Stops
    reason: str = ""
    """Empty: the user chose it."""
    warning: str = ""
    """Warning for the user; empty: none."""


def read_facts(answer: str, request: str) -> RequestFacts:
    """Return the facts of an answer; a fact without a quote from the request is unknown."""
    found = _parse(answer)
    quotes = as_object(found.get("quotes"))
    words = _plain(request)

    def fact(name: str) -> bool | None:
        # White space apart, the quote must be there word for word.
        quote, value = _plain(as_text(quotes.get(name))), found.get(name)
        return value if isinstance(value, bool) and quote and quote in words else None

    missing = [_plain(remove_control(one))[:200] for one in as_texts(found.get("missing"))]
    return RequestFacts(
        clear=fact("clear"),
        new_feature=fact("new_feature"),
        missing=tuple(one for one in missing if one)[:MAX_MISSING],
    )


def choose_pattern(facts: RequestFacts, *, is_terminal: bool) -> PatternChoice:
    """Return the pattern: not clear → ask; a new feature → sdd; otherwise direct.

    An unknown fact counts as not clear on a terminal, and as clear with a warning elsewhere.
    """
    warning = ""
    is_clear = facts.clear
    if None in (facts.clear, facts.new_feature) and facts.clear is not False:
        is_clear = not is_terminal
        if is_clear:
            warning = "It is unknown whether the request is clear; it is taken as clear, because no terminal can ask."
    if not is_clear:
        named = f": {'; '.join(facts.missing)}" if facts.missing else ""
        return PatternChoice(pattern="ask", reason=f"the request is not clear{named}")
    if facts.new_feature:
        return PatternChoice(
            pattern="sdd", reason="the request is clear and a new feature", warning=warning
        )
    return PatternChoice(
        pattern="direct", reason="the request is clear and no new feature", warning=warning
    )


def _parse(answer: str) -> Mapping[str, object]:
    # Models wrap their JSON in words or a fence.
    start, end = answer.find("{"), answer.rfind("}")
    try:
        return as_object(json.loads(answer[start : end + 1]))
    except ValueError:
        return {}


def _plain(text: str) -> str:
    return " ".join(text.split())
