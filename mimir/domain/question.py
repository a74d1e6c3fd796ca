"""Questions of agents to the user: their form, their limits, their answers. Pure."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from mimir.domain.json_value import (
    as_array,
    as_number,
    as_object,
    as_text,
    as_texts,
    is_array,
    is_object,
)
from mimir.domain.question_states import QuestionKind, QuestionState
from mimir.domain.value_class import value_class

FieldKind = Literal["string", "number", "boolean", "choice", "choices"]

MAX_FIELDS = 10
MAX_OPTIONS = 50
MAX_TITLE = 200
MAX_TEXT = 4000
MAX_ANSWER = 20_000
"""Most characters of one answered text."""
WHOLE = "answer"
"""Name of the field of a question without a schema."""

# Invisible characters and those that turn text around would forge the text for the user.
# Patterns are compiled at their first use: each look at runs reads this module.
_CONTROL = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_SECRET = r"(?:pass(?:word|phrase|code)|secret|credentials?|private[ _-]?key|(?:api|access|secret)[ _-]?key|(?:api|access|auth|bearer)[ _-]?token)"
# A question about secrets is permitted, a request for one is not.
_ASKED_SECRET = rf"(?i)\b(?:what(?:'s| is| are)|give|enter|provide|tell|type|paste|share|send|supply|need)\b[^.?!\n]{{0,40}}?\b{_SECRET}s?\b"
_SECRET_NAME = "(?i)" + _SECRET.replace("[ _-]?", r"[ _-]*")
_YES, _NO = ("yes", "y", "true"), ("no", "n", "false")


@value_class
class QuestionLimits:
    """Limits of the questions of a run."""

    open_per_task: int = 3
    open_per_run: int = 10
    expire_days: float = 7
    """0: questions do not expire."""
    fields: int = MAX_FIELDS
    """Most fields of one question."""


@value_class
class FormField:
    """One value that the user gives."""

    name: str
    kind: FieldKind
    title: str = ""
    options: tuple[str, ...] = ()
    """Of a choice."""
    is_optional: bool = False
    """True: the schema does not require it."""

    def describe(self) -> str:
        """Describe the permitted values."""
        match self.kind:
            case "string":
                return "text"
            case "number":
                return "a number"
            case "boolean":
                return "yes or no"
            case "choice":
                return f"one of {', '.join(self.options)}"
            case "choices":
                return f"one or more of {', '.join(self.options)}"


@value_class
class QuestionForm:
    """Fields that an answer fills."""

    fields: tuple[FormField, ...] = (FormField(name=WHOLE, kind="string"),)

    def as_schema(self) -> Mapping[str, object]:
        """Return the form as a flat JSON Schema."""
        return {
            "type": "object",
            "properties": {one.name: _field_schema(one) for one in self.fields},
            "required": [one.name for one in self.fields if not one.is_optional],
        }

    def field(self, name: str) -> FormField | None:
        """Return a field by its name; None if there is none."""
        return next((one for one in self.fields if one.name == name), None)


@value_class
class NewQuestion:
    """Question that an agent asks."""

    title: str
    text: str
    form: QuestionForm
    default: Mapping[str, object] | None
    """Values by field; None: there is no default."""
    is_blocking: bool
    limits: QuestionLimits
    subject: str = ""
    """File that the user approves or rejects. Empty: it asks for input."""
    subject_hash: str = ""
    """SHA-256 of its text."""

    @property
    def kind(self) -> QuestionKind:
        """Kind of the question."""
        return "approval" if self.subject else "input"


@value_class
class QuestionClosing:
    """End of a question."""

    state: QuestionState
    values: Mapping[str, object] | None
    """Answer by field; None: there is none."""
    by: str
    """Principal that answered; empty: mimir closed it."""
    transport: str
    """How: `terminal`, `file`; empty: mimir closed it."""
    replaced_by: str = ""
    """Question that follows, as the subject changed. Empty: none."""
    subject_hash: str = ""
    """Of the changed subject."""
    text: str = ""
    """Of the question that follows: it quotes the changed subject."""


def read_form(schema: Mapping[str, object]) -> QuestionForm:
    """Return the form of a flat JSON Schema.

    Raises:
        ValueError: It has another form; the message names the member.
    """
    properties = as_object(schema.get("properties"))
    if not properties or len(properties) > MAX_FIELDS:
        raise ValueError(f"schema needs properties: 1 to {MAX_FIELDS} fields")
    fields = tuple(_read_field(name, as_object(one)) for name, one in properties.items())
    return QuestionForm(fields=fields)


def choice_form(options: Sequence[str]) -> QuestionForm:
    """Return the form with one choice.

    Raises:
        ValueError: The options are no choice.
    """
    return QuestionForm(fields=(FormField(name=WHOLE, kind="choice", options=_options(options)),))


def check_values(form: QuestionForm, values: Mapping[str, object]) -> Mapping[str, object]:
    """Return typed values of all fields.

    Raises:
        ValueError: A field is missing, unknown or of another type.
    """
    for name in values:
        if form.field(name) is None:
            raise ValueError(f"there is no field {name!r}; the fields are {_names(form)}")
    for one in form.fields:
        if one.name not in values:
            raise ValueError(f"the field {one.name!r} has no value ({one.describe()})")
    return {one.name: _check_value(one, values[one.name]) for one in form.fields}


def parse_answer(
    form: QuestionForm, text: str | None, fields: Mapping[str, str]
) -> Mapping[str, object]:
    """Return the values of an answer that was typed: a text, or a text for each field.

    Raises:
        ValueError: It does not fit the form.
    """
    given: dict[str, str] = dict(fields)
    if text is not None:
        if len(form.fields) > 1:
            raise ValueError(f"it has {len(form.fields)} fields: {_names(form)}")
        # A field that is named too wins over the text.
        given.setdefault(next(iter(form.fields)).name, text)
    known = {one.name: one for one in form.fields}
    # An unknown name is kept, so that the check of all fields names it.
    typed = {
        name: _parse(known[name], raw) if name in known else raw for name, raw in given.items()
    }
    return check_values(form, typed)


def describe_values(values: Mapping[str, object]) -> str:
    """Return an answer on one line: the value, or names and values as JSON."""
    if set(values) == {WHOLE, "reason"}:  # of a rejection
        return f"{values[WHOLE]}: {values['reason']}"
    if len(values) == 1:
        (one,) = values.values()
        return one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
    return json.dumps(dict(values), ensure_ascii=False)


def placeholder(form: QuestionForm) -> str:
    """Return the part of the command that the user replaces."""
    if len(form.fields) > 1:
        return " ".join(f"--field {one.name}=VALUE" for one in form.fields)
    only = next(iter(form.fields))
    match only.kind:
        case "boolean":
            return "yes|no"
        case "number":
            return "NUMBER"
        case "choice":
            return "|".join(only.options)
        case "choices":
            return ",".join(only.options)
        case "string":
            return '"TEXT"'


def answer_text(closing: QuestionClosing) -> str:
    """Return the result of the call that asked, for the model."""
    if closing.state == "answered" and closing.values is not None:
        return f"The user answered: {describe_values(closing.values)}"
    why = "The user declined to answer" if closing.state == "rejected" else "No answer came in time"
    # The agent must not take a default for the user's words.
    if closing.values is not None:
        return f"{why}. The default holds: {describe_values(closing.values)}"
    return (
        f"{why}, and there is no default. Do what is possible without it, "
        "and name in your closing answer what is missing."
    )


def is_unanswered(state: str, values: object) -> bool:
    """Return whether a question has ended with neither an answer nor a default."""
    return state in ("expired", "rejected") and not values


def describe_unanswered(task: str, id: str, title: str) -> str:
    """Describe a task that has continued without an answer."""
    return f"{task} has no answer to {id} ({title})."


def assumed_text(values: Mapping[str, object]) -> str:
    """Return the result of a question that does not wait."""
    return f"Not waiting. Assumption: {describe_values(values)} (the default; the user may answer later)"


def correction_text(
    id: str, title: str, *, assumed: Mapping[str, object], answer: Mapping[str, object]
) -> str:
    """Return the required fix of a task whose assumption the user has corrected."""
    return (
        f"The user answered {id} ({title}): {describe_values(answer)}. "
        f"The work assumed {describe_values(assumed)}: change it to the answer."
    )


def refused_text(reason: str) -> str:
    """Return the result of a question that was not asked."""
    return f"not asked: {reason}"


def find_secret(title: str, text: str, form: QuestionForm) -> str:
    """Return the words that ask for a secret; empty: there are none."""
    found = re.search(_ASKED_SECRET, f"{title}. {text}")
    if found:
        return found[0]
    for one in form.fields:
        named = one.kind == "string" and re.search(_SECRET_NAME, f"{one.name} {one.title}")
        if named:
            return named[0]
    return ""


def require_plain(text: str, name: str, limit: int, *, one_line: bool = False) -> None:
    """Refuse a text that is empty, too long, or has control characters.

    Raises:
        ValueError: It is; the message names it.
    """
    if not text:
        raise ValueError(f"the {name} is empty")
    if len(text) > limit:
        raise ValueError(f"the {name} has {len(text):,} characters; {limit:,} are the maximum")
    if control := find_control(text) or ("U+000A" if one_line and "\n" in text else ""):
        raise ValueError(f"the {name} holds the control character {control}")


def remove_control(text: str) -> str:
    """Return a text without control characters."""
    return re.sub(_CONTROL, "", text)


def find_control(text: str) -> str:
    """Return the first control character of a text, named; empty: there is none."""
    found = re.search(_CONTROL, text)
    return f"U+{ord(found[0]):04X}" if found else ""


def _read_field(name: str, schema: Mapping[str, object]) -> FormField:
    # The user types the name on a command line.
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,59}", name):
        raise ValueError(f"schema has a field with an invalid name: {name[:60]!r}")
    title = as_text(schema.get("title")) or as_text(schema.get("description"))
    if len(title) > MAX_TITLE or find_control(title):
        raise ValueError(f"the title of the field {name!r} is too long or has control characters")
    kind: FieldKind
    options: tuple[str, ...] = ()
    match schema.get("type"), schema.get("enum"):
        case (("string" | None), enum) if is_array(enum):
            kind, options = "choice", _options(enum)
        case "string", None:
            kind = "string"
        case "number" | "integer", None:
            kind = "number"
        case "boolean", None:
            kind = "boolean"
        case "array", None:
            kind, options = (
                "choices",
                _options(as_array(as_object(schema.get("items")).get("enum"))),
            )
        case _:
            raise ValueError(
                f"the field {name!r} is not a string, number, boolean, enum, or array with items.enum"
            )
    # Several options are typed with commas between them.
    if kind == "choices" and any("," in one for one in options):
        raise ValueError(f"the options of the field {name!r} may not hold commas")
    return FormField(name=name, kind=kind, title=title, options=options)


def _options(values: Sequence[object]) -> tuple[str, ...]:
    texts = as_texts(values)
    if len(texts) != len(values) or not 2 <= len(texts) <= MAX_OPTIONS:
        raise ValueError(f"a choice needs 2 to {MAX_OPTIONS} texts")
    if len(set(texts)) != len(texts) or any(
        not one.strip() or len(one) > MAX_TITLE or find_control(one) for one in texts
    ):
        raise ValueError("the options of a choice are different short texts")
    return tuple(texts)


def _field_schema(one: FormField) -> Mapping[str, object]:
    title = {"title": one.title} if one.title else {}
    match one.kind:
        case "choice":
            return {"type": "string", "enum": list(one.options), **title}
        case "choices":
            items = {"type": "string", "enum": list(one.options)}
            return {"type": "array", "items": items, **title}
        case _:
            return {"type": one.kind, **title}


def _parse(one: FormField, raw: str) -> object:
    """Return a typed text as the type of its field; a text that is none stays one."""
    text = raw.strip()
    match one.kind:
        case "number":
            try:
                return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else float(text)
            except ValueError:
                return raw
        case "boolean":
            # Only clear words: anything else stays a text, which the check refuses.
            known = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}
            return known.get(text.lower(), raw)
        case "choices":
            return [part.strip() for part in text.split(",") if part.strip()]
        case "choice":
            # Two options may differ in case alone: then only the exact one is meant.
            near = [option for option in one.options if option.lower() == text.lower()]
            return near[0] if len(near) == 1 else text
        case "string":
            return raw


def _check_value(one: FormField, value: object) -> object:
    if not _is_fitting(one, value):
        shown = value if isinstance(value, str) else json.dumps(value)
        raise ValueError(f"{one.name!r} must be {one.describe()}, not {shown[:80]!r}")
    if isinstance(value, str):
        if len(value) > MAX_ANSWER:
            raise ValueError(
                f"{one.name!r} has {len(value):,} characters; at most {MAX_ANSWER:,} are taken"
            )
        if control := find_control(value):
            raise ValueError(f"{one.name!r} holds the control character {control}")
    return value


def _is_fitting(one: FormField, value: object) -> bool:
    match one.kind:
        case "string":
            return isinstance(value, str) and bool(value.strip())
        case "number":
            number = as_number(value)
            return number is not None and math.isfinite(number)
        case "boolean":
            return isinstance(value, bool)
        case "choice":
            return value in one.options
        case "choices":
            chosen = as_texts(value)
            is_list = is_array(value) and len(chosen) == len(value) > 0
            return is_list and len(set(chosen)) == len(chosen) and set(chosen) <= set(one.options)


def _names(form: QuestionForm) -> str:
    return ", ".join(one.name for one in form.fields)


def read_default(form: QuestionForm, value: object) -> Mapping[str, object]:
    """Return the default of a form: its values, or the value of its only field.

    Raises:
        ValueError: It does not fit the form.
    """
    if is_object(value):
        return check_values(form, value)
    if len(form.fields) != 1:
        raise ValueError(f"the default is an object with the fields {_names(form)}")
    only = form.fields[0]
    typed = _parse(only, value) if isinstance(value, str) else value
    return check_values(form, {only.name: typed})
