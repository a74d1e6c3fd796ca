"""Strict parser of the QC answer; it fails closed: QC receives every fault. Pure.

One table of fields defines the answer. The JSON schema for the provider, the instructions for the model, and the members that this
parser accepts are derived from it. A FAIL in another form with one reading only, such as `"failed"` or `"40/100"`, is read; a PASS never.
An absent member counts as not said (an absent criterion is `unverified`), which never helps a pass.

An answer contradicts itself, and is refused, if
- PASS comes with a score below 80, a `failed` critical criterion or fix, `criteriaImpossible`, or required fixes;
- PASS comes with criteria whose states give less than 80 (100 × points passed ÷ points passed or failed);
- FAIL comes with a score of 80 or more although every criterion is `passed`, no fix is `failed` and nothing is impossible.
A low score on a FAIL needs no further reason, and the model's number may differ from the one computed from its states.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from mimir.domain.json_schema import find_mismatch, fit_value
from mimir.domain.json_value import (
    as_array,
    as_member,
    as_object,
    as_objects,
    as_text,
    as_texts,
    is_array,
    is_object,
)
from mimir.domain.plan import Criterion, weights
from mimir.domain.quoted_text import list_names
from mimir.domain.verdict import CriterionOpinion, FixOpinion, QCAnswer, State
from mimir.errors import AnswerError
from mimir.qc.judgement.json_object import parse_object
from mimir.qc.judgement.quotes import name_source

PASS_SCORE = 80
"""Of 100; the model's score and the computed one must reach it."""
MAX_ITEMS = 200
"""Issues, fixes or criteria in one answer."""
SCHEMA_NAME = "verdict"

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
    _AnswerField("feedback", _TEXT, "your findings, in a few sentences"),
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
            "A criterion that you could not verify is `unverified`; `failed` needs no quote. "
            "`answer` is a source only for tasks that change no file.",
        ]
    )


def parse(text: str, criteria: Sequence[Criterion], fixes: int = 0) -> QCAnswer:
    """Parse the untrusted text of a QC answer about `criteria` and the fixes 1 to `fixes`.

    Raises:
        AnswerError: It is not one valid, consistent answer; the message tells QC the fault.
    """
    try:
        return _read_verdict(parse_object(text, is_exact=True), criteria, fixes)
    except AnswerError as error:
        # Another form may only reject: a pass is read strictly.
        try:
            given = _read_forms(parse_object(text, is_exact=True, is_lenient=True), criteria)
            verdict = _read_verdict(given, criteria, fixes)
        except AnswerError:
            raise error from None
        if verdict.verdict == "PASS":
            raise
        return verdict


def _read_verdict(value: Json, criteria: Sequence[Criterion], fixes: int) -> QCAnswer:
    given = _complete(value, _VERDICT)
    for name, fields in (("criteria", _CRITERION), ("fixes", _FIX)):
        # The schema refuses what is no list of objects.
        if is_array(items := given.get(name)):
            given[name] = [_complete(one, fields) if is_object(one) else one for one in items]
    if fault := find_mismatch(given, VERDICT_SCHEMA, "verdict"):
        raise AnswerError(fault)
    if any(len(as_array(one)) > MAX_ITEMS for one in given.values()):
        raise AnswerError(f"A list of the verdict has more than {MAX_ITEMS} entries.")
    verdict = QCAnswer(
        verdict=as_member(given["verdict"], _DECISIONS) or "FAIL",
        score=_score(given["score"]),
        feedback=as_text(given["feedback"]),
        issues=tuple(as_texts(given["issues"])),
        required_fixes=tuple(as_texts(given["requiredFixes"])),
        criteria=_criteria(as_objects(given["criteria"]), criteria),
        fixes=_fixes(as_objects(given["fixes"]), fixes),
        criteria_impossible=given["criteriaImpossible"] is True,
    )
    if fault := contradiction(verdict, criteria):
        raise AnswerError(f"The verdict contradicts itself: {fault}.")
    return verdict


def _read_forms(given: Json, criteria: Sequence[Criterion]) -> Json:
    """Return an answer in the form of the schema, where another form has one reading only."""
    inner = next(iter(given.values()), None)
    if len(given) == 1 and is_object(inner):
        given = inner
    found = dict(as_object(fit_value(given, VERDICT_SCHEMA)))
    if is_object(states := found.get("criteria")):
        found["criteria"] = [
            {"id": id, **(one if is_object(one) else {"state": one})} for id, one in states.items()
        ]
    if match := _SHARE.fullmatch(as_text(found.get("score"))):
        found["score"] = match[1]
    for name in ("issues", "requiredFixes"):
        if isinstance(one := found.get(name), str):
            found[name] = [one] if one.strip() else []
    fitted = as_object(fit_value(found, VERDICT_SCHEMA))
    opinions = fitted.get("criteria")
    if not is_array(opinions):
        return fitted
    ids = [criterion.id for criterion in criteria]
    return {**fitted, "criteria": [_with_known_id(one, ids) for one in opinions]}


def _with_known_id(opinion: object, ids: Sequence[str]) -> object:
    """Return an opinion with the id that `C1` or `c1: its text` means."""
    match = _ID.fullmatch(as_text(as_object(opinion).get("id")).strip())
    same = [id for id in ids if match and id.casefold() == match[1].casefold()]
    return {**as_object(opinion), "id": same[0]} if len(same) == 1 else opinion


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


_SHARE = re.compile(r"\s*(\d{1,3}(?:\.\d{1,6})?)\s*(?:/\s*100|%)\s*")
_ID = re.compile(r"(?:criterion\s+)?([\w.-]+?)\s*(?:[:)].*)?", re.IGNORECASE | re.DOTALL)
_EMPTY: Json = {"string": "", "array": [], "boolean": False}


def _complete(value: Json, fields: Sequence[_AnswerField]) -> dict[str, object]:
    """Return an object in which an absent member has an empty value."""
    # Models write null for "none".
    said = {name: one for name, one in value.items() if one is not None}
    return {one.name: _EMPTY[str(one.schema["type"])] for one in fields if not one.needed} | said


def _score(value: object) -> Fraction:
    score = Fraction(str(value))
    if not 0 <= score <= 100:
        raise AnswerError("`score` must be a number from 0 to 100.")
    return score


def _criteria(items: Sequence[Json], criteria: Sequence[Criterion]) -> tuple[CriterionOpinion, ...]:
    known = {criterion.id for criterion in criteria}
    opinions: dict[str, CriterionOpinion] = {}
    for item in items:
        id = as_text(item["id"])
        if id not in known:
            raise AnswerError(
                f"There is no criterion {id[:60]!r}; they are {list_names(sorted(known))}."
            )
        if id in opinions:
            raise AnswerError(f"The criterion {id!r} is judged twice.")
        state, quote, source = _opinion(item)
        opinions[id] = CriterionOpinion(id=id, state=state, quote=quote, source=source)
    return tuple(opinions.values())


def _fixes(items: Sequence[Json], count: int) -> tuple[FixOpinion, ...]:
    opinions: dict[int, FixOpinion] = {}
    for item in items:
        index = int(Fraction(str(item["index"])))
        if not 1 <= index <= count:
            known = f"they are numbered 1 to {count}" if count else "there are none to judge"
            raise AnswerError(f"`index` names no required fix of the attempt before; {known}.")
        if index in opinions:
            raise AnswerError(f"The fix {index} is judged twice.")
        state, quote, source = _opinion(item)
        opinions[index] = FixOpinion(index=index, state=state, quote=quote, source=source)
    return tuple(opinions.values())


def _opinion(item: Json) -> tuple[State, str, str]:
    """Return state, quote and source of an opinion."""
    state = as_member(item["state"], _STATES) or "unverified"
    return state, as_text(item["quote"]), name_source(as_text(item["source"]))
