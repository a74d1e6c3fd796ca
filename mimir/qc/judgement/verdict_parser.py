"""Strict parser of the QC answer; it fails closed: QC receives every fault. Pure.

One table of fields defines the answer. The JSON schema for the provider, the instructions for the model, and the members that this
parser accepts are derived from it. An absent member counts as not said (an absent criterion is `unverified`), which never helps a pass.

An answer contradicts itself, and is refused, if
- PASS comes with a score below 80, a `failed` critical criterion or fix, `criteriaImpossible`, or required fixes;
- PASS comes with criteria whose states give less than 80 (100 × points passed ÷ points passed or failed);
- FAIL comes with a score of 80 or more although every criterion is `passed`, no fix is `failed` and nothing is impossible.
A low score on a FAIL needs no further reason, and the model's number may differ from the one computed from its states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar, get_args

from mimir.domain.json_value import as_member
from mimir.domain.plan import Criterion, weights
from mimir.domain.verdict import CriterionOpinion, FixOpinion, QCAnswer, State
from mimir.errors import AnswerError
from mimir.qc.judgement.json_object import as_list, as_object, parse_object

PASS_SCORE = 80
"""Of 100; the model's score and the computed one must reach it."""
MAX_ITEMS = 200
"""Issues, fixes or criteria in one answer."""
SCHEMA_NAME = "verdict"

T = TypeVar("T")
Json = Mapping[str, object]
_DECISIONS: tuple[Literal["PASS", "FAIL"], ...] = ("PASS", "FAIL")
_STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, slots=True)
class _AnswerField:
    """One member of the answer."""

    name: str
    schema: Json
    says: str
    """Meaning, for the model."""
    needed: bool = False
    """False: an absent member counts as empty."""


_TEXT: Json = {"type": "string"}
_STATE: Json = {"type": "string", "enum": list(_STATES)}
_NUMBER: Json = {"type": "integer"}
_OPINION = (
    _AnswerField("state", _STATE, "passed, failed or unverified", needed=True),
    _AnswerField("quote", _TEXT, "words copied from the source, at least 12 characters"),
    _AnswerField(
        "source",
        _TEXT,
        "where the quote stands: check:<id>, file:<path>, qc:<number of your tool call>, "
        "call:<number of the worker's tool call>, or answer",
    ),
)
_CRITERION = (
    _AnswerField("id", _TEXT, "id of the criterion", needed=True),
    *_OPINION,
)
_FIX = (
    _AnswerField("index", _NUMBER, "number of the required fix of the attempt before", needed=True),
    *_OPINION,
)


def _schema(fields: Sequence[_AnswerField]) -> Json:
    """Return the schema of an object."""
    # Strict mode of providers demands that every member is required and no other allowed.
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in fields],
        "properties": {field.name: {**field.schema, "description": field.says} for field in fields},
    }


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


_VERDICT = (
    _AnswerField(
        "verdict",
        {"type": "string", "enum": list(_DECISIONS)},
        f"PASS only if the deliverable deserves {PASS_SCORE} or more",
        needed=True,
    ),
    _AnswerField("score", {"type": "number"}, "0 to 100", needed=True),
    _AnswerField("feedback", _TEXT, "what you found, in a few sentences"),
    _AnswerField("issues", _list(_TEXT), "each thing that is wrong"),
    _AnswerField(
        "requiredFixes",
        _list(_TEXT),
        "each thing that must be done before it can pass; empty with PASS",
    ),
    _AnswerField(
        "criteria", _list(_schema(_CRITERION)), "one entry for each criterion", needed=True
    ),
    _AnswerField(
        "fixes",
        _list(_schema(_FIX)),
        "one entry for each required fix of the attempt before; empty if there was none",
    ),
    _AnswerField(
        "criteriaImpossible",
        {"type": "boolean"},
        "true only with FAIL, and only if no deliverable could ever meet the criteria",
    ),
)

VERDICT_SCHEMA: Json = _schema(_VERDICT)
"""JSON Schema of the answer, for providers that enforce one."""


def instructions() -> str:
    """Return the form of the answer, for QC's preamble and the repeated question."""
    return "\n".join(
        [
            "Answer with exactly one JSON object and no other brace, with these keys:",
            *_lines(_VERDICT),
            "Each entry of `criteria` has:",
            *_lines(_CRITERION),
            "Each entry of `fixes` has:",
            *_lines(_FIX),
            "A `passed` counts only with a quote that stands word for word in its source. "
            "What you could not verify is `unverified`; `failed` needs no quote. "
            "`answer` is a source only for tasks that change no file.",
        ]
    )


def parse(text: str, criteria: Sequence[Criterion], fixes: int = 0) -> QCAnswer:
    """Parse the untrusted text of a QC answer about `criteria` and the fixes 1 to `fixes`.

    Raises:
        AnswerError: It is not one valid, consistent answer; the message tells QC the fault.
    """
    fields = _fields(parse_object(text), _VERDICT, "The verdict")
    verdict = QCAnswer(
        verdict=_option(fields["verdict"], _DECISIONS, "`verdict`"),
        score=_score(fields["score"]),
        feedback=_text(fields["feedback"], "`feedback`"),
        issues=_texts(fields["issues"], "`issues`"),
        required_fixes=_texts(fields["requiredFixes"], "`requiredFixes`"),
        criteria=_criteria(fields["criteria"], criteria),
        fixes=_fixes(fields["fixes"], fixes),
        criteria_impossible=_flag(fields["criteriaImpossible"], "`criteriaImpossible`"),
    )
    if fault := contradiction(verdict, criteria):
        raise AnswerError(f"The verdict contradicts itself: {fault}.")
    return verdict


def contradiction(verdict: QCAnswer, criteria: Sequence[Criterion]) -> str:
    """Return the contradiction between decision, score, criteria and fixes; empty: none."""
    if verdict.verdict == "PASS":
        return _contradiction_of_pass(verdict, criteria)
    states = {opinion.id: opinion.state for opinion in verdict.criteria}
    all_passed = all(states.get(criterion.id) == "passed" for criterion in criteria)
    fix_failed = any(fix.state == "failed" for fix in verdict.fixes)
    # Without any stated reason, FAIL and a high score cannot both be meant.
    blameless = all_passed and not fix_failed and not verdict.criteria_impossible
    if blameless and verdict.score >= PASS_SCORE:
        return f"FAIL with a score of {PASS_SCORE} or more, and every criterion passed"
    return ""


def _contradiction_of_pass(verdict: QCAnswer, criteria: Sequence[Criterion]) -> str:
    failed = {opinion.id for opinion in verdict.criteria if opinion.state == "failed"}
    passed = {opinion.id for opinion in verdict.criteria if opinion.state == "passed"}
    critical = [c.id for c in criteria if c.critical and c.id in failed]
    share = weights(tuple(criteria))
    # Exact fractions: with floats a share of 80 could compare as 79.99.
    won = sum((share[id] for id in passed), Fraction(0))
    decided = won + sum((share[id] for id in failed), Fraction(0))
    faults = (
        (verdict.score < PASS_SCORE, f"PASS with a score below {PASS_SCORE}"),
        (bool(critical), f"PASS although the critical criterion {''.join(critical[:1])} failed"),
        (any(f.state == "failed" for f in verdict.fixes), "PASS although a required fix failed"),
        (verdict.criteria_impossible, "PASS although the criteria are called impossible"),
        (bool(verdict.required_fixes), "PASS although fixes are required"),
        (
            bool(failed) and won * 100 < decided * PASS_SCORE,
            f"PASS although its own criteria give less than {PASS_SCORE} points",
        ),
    )
    return next((words for wrong, words in faults if wrong), "")


def _lines(fields: Sequence[_AnswerField]) -> list[str]:
    return [f"- `{field.name}`: {field.says}" for field in fields]


def _fields(
    found: dict[str, object], fields: Sequence[_AnswerField], what: str
) -> dict[str, object]:
    """Return every member of the table; absent ones as the empty value of their type."""
    names = {field.name for field in fields}
    if unknown := sorted(set(found) - names):
        raise AnswerError(f"{what} has an unknown key {unknown[0][:60]!r}.")
    if missing := [field.name for field in fields if field.needed and field.name not in found]:
        raise AnswerError(f"{what} has no key {missing[0]!r}.")
    return {
        field.name: found.get(field.name, _EMPTY[str(field.schema["type"])]) for field in fields
    }


_EMPTY: Json = {"string": "", "array": [], "boolean": False, "number": None, "integer": None}


def _option(value: object, options: tuple[T, ...], what: str) -> T:
    option = as_member(value, options)
    if option is None:
        *others, last = (f'"{one}"' for one in options)
        raise AnswerError(f"{what} must be {', '.join(others)} or {last}.")
    return option


def _score(value: object) -> Fraction:
    if not isinstance(value, Fraction) or not 0 <= value <= 100:
        raise AnswerError("`score` must be a number from 0 to 100.")
    return value


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise AnswerError(f"{what} must be true or false.")
    return value


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise AnswerError(f"{what} must be a text.")
    return value


def _evidence(value: object, what: str) -> str:
    # Models write null for "none"; without a quote nothing passes.
    return "" if value is None else _text(value, what)


def _texts(value: object, what: str) -> tuple[str, ...]:
    return tuple(_text(item, f"Each entry of {what}") for item in _items(value, what))


def _opinion(fields: Json, what: str) -> tuple[State, str, str]:
    """Read state, quote and source of an opinion."""
    state: State = _option(fields["state"], _STATES, f"The state of {what}")
    return state, _evidence(fields["quote"], "`quote`"), _evidence(fields["source"], "`source`")


def _items(value: object, what: str) -> Sequence[object]:
    items = as_list(value, what)
    if len(items) > MAX_ITEMS:
        raise AnswerError(f"{what} has more than {MAX_ITEMS} entries.")
    return items


def _criteria(value: object, criteria: Sequence[Criterion]) -> tuple[CriterionOpinion, ...]:
    known = {criterion.id for criterion in criteria}
    opinions: dict[str, CriterionOpinion] = {}
    for item in _items(value, "`criteria`"):
        fields = _fields(as_object(item, "Each criterion"), _CRITERION, "A criterion")
        id = _text(fields["id"], "The id of a criterion")
        if id not in known:
            raise AnswerError(f"There is no criterion {id[:60]!r}; they are {_format_ids(known)}.")
        if id in opinions:
            raise AnswerError(f"The criterion {id!r} is judged twice.")
        state, quote, source = _opinion(fields, f"criterion {id!r}")
        opinions[id] = CriterionOpinion(id=id, state=state, quote=quote, source=source)
    return tuple(opinions.values())


def _fixes(value: object, count: int) -> tuple[FixOpinion, ...]:
    opinions: dict[int, FixOpinion] = {}
    for item in _items(value, "`fixes`"):
        fields = _fields(as_object(item, "Each fix"), _FIX, "A fix")
        index = _index(fields["index"], count)
        if index in opinions:
            raise AnswerError(f"The fix {index} is judged twice.")
        state, quote, source = _opinion(fields, f"fix {index}")
        opinions[index] = FixOpinion(index=index, state=state, quote=quote, source=source)
    return tuple(opinions.values())


def _index(value: object, count: int) -> int:
    # Numbers are fractions here; `1.0` is accepted as 1, `1.5` is not.
    if isinstance(value, Fraction) and value.denominator == 1 and 1 <= value <= count:
        return int(value)
    known = f"they are numbered 1 to {count}" if count else "there are none to judge"
    raise AnswerError(f"`index` names no required fix of the attempt before; {known}.")


def _format_ids(ids: set[str]) -> str:
    return ", ".join(sorted(ids)[:20]) or "none"
