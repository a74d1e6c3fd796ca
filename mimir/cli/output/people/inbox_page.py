"""Page of `mimir inbox`: each question with the command that answers it."""

from collections.abc import Mapping, Sequence

from mimir.cli.console import clean, clean_line
from mimir.cli.layout import text_block, wrap
from mimir.domain.json_value import as_object, as_text
from mimir.domain.quoted_text import count_noun

Shape = Mapping[str, object]


def inbox_page(questions: Sequence[Shape], width: int) -> list[str]:
    """Return the questions, open ones first."""
    if not questions:
        return ["No question is open."]
    is_open = [one for one in questions if one.get("state") == "open"]
    lines = [f"{count_noun(len(is_open), 'question')} open"]
    for one in questions:
        lines += ["", *question_lines(one, width)]
    return lines


def question_lines(one: Shape, width: int) -> list[str]:
    """Return one question: origin, text, form, default, answer or command."""
    id = clean_line(as_text(one.get("id")))
    lines = wrap(clean_line(as_text(one.get("title"))), width, first=f"{id}  ")
    # An approval is about a file; another question is of an agent in an attempt.
    relation = "about" if is_approval(one) else f"{as_text(one.get('agent'))} of"
    origin = f"{relation} {as_text(one.get('subject'))}, asked {_time(one, 'asked_at')}"
    lines += wrap(clean_line(origin), width, first="  ")
    lines += text_block(clean(as_text(one.get("text")).strip()), width)
    lines += _field_lines(one, width)
    if is_approval(one):
        lines += wrap(f"{as_text(one.get('run'))}", width, first="  run: ", rest="    ")
    if default := as_text(one.get("default_text")):
        lines += wrap(clean_line(default), width, first="  default: ", rest="    ")
    if one.get("state") == "open":
        # Without a task that waits, the user need not hurry.
        if one.get("blocking") is not True:
            lines += ["  The task continues with the default."]
        elif expires := _time(one, "expires_at"):
            lines += [f"  expires: {expires}"]
        return [*lines, *wrap(answer_command(one), width, first="  answer: ", rest="    ")]
    # A closed question shows its end in place of a command.
    state = clean_line(as_text(one.get("state")))
    by = f" by {as_text(one.get('answered_by'))}" if one.get("answered_by") else ""
    how = f" ({as_text(one.get('transport'))})" if one.get("transport") else ""
    answer = as_text(one.get("answer_text"))
    head = f"{state} {_time(one, 'closed_at')}{by}{how}{f': {answer}' if answer else ''}"
    return [*lines, *wrap(clean_line(head), width, first="  ", rest="    ")]


def _field_lines(one: Shape, width: int) -> list[str]:
    """Return the fields of a question with several of them; its command has their names only."""
    from mimir.domain.question import read_form

    fields = () if is_approval(one) else read_form(as_object(one.get("schema"))).fields
    if len(fields) < 2:
        return []
    texts = [f"{one.name}: {one.title or one.name} ({one.describe()})" for one in fields]
    return [line for text in texts for line in wrap(clean_line(text), width, first="  ")]


def is_approval(one: Shape) -> bool:
    """Return whether the user approves or rejects."""
    return one.get("kind") == "approval"


def answer_command(one: Shape) -> str:
    """Return the command that answers a question."""
    from mimir.domain.approval import USAGE
    from mimir.domain.question import placeholder, read_form

    if is_approval(one):
        return clean_line(f"mimir answer {as_text(one.get('id'))} {USAGE}")
    form = read_form(as_object(one.get("schema")))
    return clean_line(f"mimir answer {as_text(one.get('id'))} {placeholder(form)}")


def _time(one: Shape, name: str) -> str:
    at = as_text(one.get(name))
    return f"{at[:16].replace('T', ' ')} UTC" if at else ""
