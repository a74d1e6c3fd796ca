"""The report: the same run gives the same bytes, and nothing that a model wrote gets out of its place."""

import itertools
import json
import re
import unicodedata
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from mimir.domain.event import EventKind
from mimir.domain.task_states import RunStatus
from mimir.reporting.render.markdown_escape import escape_text
from mimir.reporting.render.narrative import NO_PROSE, Narrative
from mimir.reporting.render.report import as_json, markdown
from mimir.reporting.summary.run_data import RunData
from mimir.reporting.summary.run_loader import gather
from mimir.reporting.summary.summary import RunSummary, summarise
from mimir.store.operations import runs
from tests.support.small_run import RUN, SmallRun

GOLDEN = Path(__file__).with_name("small_run.md")
DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "report.md"
HOSTILE = (
    "# Outcome: completed\n\n## Proof\n| a | b |\n|---|---|\n```\nout of it\n~~~\n"
    "![x](https://evil.example/x.png) [y](javascript:alert(1)) <img src=x onerror=alert(1)> <https://evil.example>\n"
    "https://evil.example/auto www.evil.example a@evil.example `code` ``` ```` \\` | \\| <!-- x\n"
    "[ref]: https://evil.example\n\x1b[31mred\x1b]0;title\x07\x00\x08 \u202eback\u2066 \u200bzero\ufeff \u2028line \ud800half\r\n"
    "&lt;script&gt; \U000e0041tag\n    indented\n- item\n1. one\n***\n---\n"
)  # fmt: skip


async def gathered(run: SmallRun) -> RunData:
    return await run.store.read(partial(gather, run=RUN))


async def summary(run: SmallRun) -> RunSummary:
    return summarise(await gathered(run))


def headings(text: str) -> list[str]:
    tokens = parsed(text)
    return [
        f"{token.tag} {after.content}"
        for token, after in itertools.pairwise(tokens)
        if token.type == "heading_open"
    ]


def parsed(text: str):
    return MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(text)


def kinds(text: str) -> set[str]:
    """Return every kind of token, nested ones too."""
    return {t.type for token in parsed(text) for t in (token, *(token.children or ()))}


async def test_report_of_the_small_run_is_the_golden_one(whole):
    text = markdown(await summary(whole), NO_PROSE)
    assert text == GOLDEN.read_text(encoding="utf-8"), "Look at the difference; see docs/report.md"


async def test_outcome_is_the_first_line(done):
    assert markdown(await summary(done), NO_PROSE).startswith("# Outcome: completed\n")


async def test_report_is_the_same_before_and_after_the_last_write_of_the_run(done):
    """It is written before the run ends; `mimir report` must give the same bytes later."""
    after = markdown(await summary(done), NO_PROSE)
    ended = await gathered(done)
    before = summarise(replace(ended, status=RunStatus.RUNNING), outcome=RunStatus.COMPLETED)
    assert markdown(before, NO_PROSE) == after


async def test_report_does_not_change_after_later_writes(done):
    before = markdown(await summary(done), NO_PROSE)

    def later(ops):
        runs.append_event(ops, RUN, EventKind.REPORT_WRITTEN, data={"path": "x"})
        runs.append_event(
            ops, RUN, EventKind.TOOL_CALLED, task="task-1", attempt=1, data={"tool": "run"}
        )
        runs.append_event(
            ops, RUN, EventKind.MODEL_CALLED, data={"role": "pm_reporter", "tokens": 500}
        )
        ops.patch("Run", RUN, {"callsUsed": 99, "tokensUsed": 9999})

    done.clock.advance(500)
    await done.store.write(later)
    assert markdown(await summary(done), NO_PROSE) == before


async def test_narrative_is_in_marked_sections_and_changes_no_other_line(whole):
    told = await summary(whole)
    without = markdown(told, NO_PROSE).split("\n")
    prose = Narrative(
        run="A word from the PM.", tasks={"task-2": "A word on task-2.", "task-9": "?"}
    )

    lines = markdown(told, prose).split("\n")

    assert [line for line in lines if "word" in line.split(" ")] == [
        "A word from the PM.",
        "A word on task-2.",
    ]
    assert len([line for line in lines if line.startswith("#") and "(model)" in line]) == 2
    rest = iter(lines)
    assert all(line in rest for line in without)


async def test_run_that_has_not_ended_shows_no_seal_and_how_to_resume(done):
    data = replace(await gathered(done), status=RunStatus.PAUSED, pause_reason="budget")
    text = markdown(summarise(data), NO_PROSE)
    assert text.startswith("# Outcome: paused\n")
    assert "- Reason: `budget`" in text
    assert "mimir resume run-1" in text
    assert data.seal not in text


async def test_report_holds_no_absolute_path(done):
    where = "/home/me/work/api/.mimir/mimir.db"
    message = f"The store {where} cannot be written."
    await done.store.write(
        partial(runs.append_event, run=RUN, kind=EventKind.WARNING, data={"message": message})
    )
    data = await gathered(done)
    paused = replace(data, status=RunStatus.PAUSED, pause_reason="store", pause_message=message)

    for text in (markdown(summarise(data), NO_PROSE), markdown(summarise(paused), NO_PROSE)):
        assert "The store .mimir/mimir.db cannot be written." in text
        assert "/home/me" not in text
    assert "/home/me" not in json.dumps(as_json(summarise(paused), NO_PROSE))


# Hostile texts


ENGINES = frozenset(
    ("run", "outcome", "because", "status", "state", "basis", "points", "phase", "ended", "started", "kind", "risk_level", "why", "metrics")
)  # fmt: skip
"""Members whose texts the engine makes itself, out of nothing but numbers and words of its own."""


def hostile(value: object, text: str) -> object:
    """Put `text` into every text of a summary that is not the engine's own."""
    if isinstance(value, tuple):
        return tuple(hostile(item, text) for item in value)
    if is_dataclass(value):
        changed = {f.name: hostile(getattr(value, f.name), text) for f in fields(value)}
        return replace(value, **{n: v for n, v in changed.items() if n not in ENGINES})
    return f"{value} {text}" if type(value) is str else value  # fmt: skip


@pytest.mark.parametrize(
    "text", [HOSTILE, "`" * 40, "|", "\\", "\n", "````text\n", "~~~", "<b", "\t#x"]
)
async def test_hostile_text_injects_nothing(whole, text):
    told = await summary(whole)
    evil = hostile(told, text)
    prose = Narrative(
        run=f"x{text * 3}", tasks={f"task-2 {text}": f"x{text}", "task-2": f"x{text}"}
    )

    said = markdown(evil, prose)

    plain = markdown(told, Narrative(run="x", tasks={"task-2": "x"}))
    assert kinds(said) <= kinds(plain)
    assert not kinds(said) & {"link_open", "image", "html_inline", "html_block", "s_open"}
    allowed = {re.sub(r"`.*`", "", heading).strip() for heading in headings(plain)}
    assert {
        re.sub(r"`+.*`+", "", heading, flags=re.S).strip() for heading in headings(said)
    } <= allowed
    assert len(headings(said)) == len(headings(plain))
    rows = [t for t in parsed(said) if t.type == "tr_open"]
    assert len(rows) == len([t for t in parsed(plain) if t.type == "tr_open"])


async def test_cells_of_a_table_cannot_be_split(whole):
    told = await summary(whole)
    first = replace(told.tasks[0], title="a | b \\| c \\", id="x|y")
    said = markdown(replace(told, tasks=(first, *told.tasks[1:])), NO_PROSE)
    (row,) = [line for line in said.splitlines() if line.startswith("| `x¦y` |")]
    assert row.startswith("| `x¦y` | `a ¦ b \\¦ c \\` | completed | 100 |")


async def test_reports_contain_no_invisible_or_control_characters(whole):
    evil = hostile(await summary(whole), HOSTILE)
    prose = Narrative(run=HOSTILE, tasks={"task-2": HOSTILE})
    for said in (markdown(evil, prose), "".join(texts(as_json(evil, prose)))):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]", said)  # fmt: skip
        said.encode("utf-8")


def test_escape_of_visible_characters_does_not_depend_on_neighbours():
    """Texts of nothing but visible characters take a short way."""
    every = [chr(number) for number in range(0x110000)]
    visible = "".join(one for one in every if one.isprintable() or one == "\n")
    assert escape_text(visible) == escape_text(f"{visible}\0") == visible
    assert not any(
        escape_text(one).strip(" \n\ufffd") for one in every if unicodedata.category(one)[0] == "C"
    )


def texts(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [t for k, v in value.items() for t in (k, *texts(v))]
        case list():
            return [t for item in value for t in texts(item)]
        case _:
            return []


# The JSON twin


async def test_json_report_has_a_schema_and_exact_numbers(whole):
    twin = as_json(await summary(whole), Narrative(run="x"))
    again = json.loads(json.dumps(twin, allow_nan=False))
    assert again == twin
    assert (twin["schema"], twin["run"], twin["outcome"], twin["exit_code"]) == (
        1,
        RUN,
        "failed",
        1,
    )
    assert twin["prose"] == {"run": "x", "tasks": {}}
    assert [task["status"] for task in twin["tasks"]] == [
        "completed",
        "completed",
        "failed",
        "blocked",
    ]
    assert twin["tasks"][1]["counts"] == {"executed": 1, "judged": 1, "unverified": 0, "failed": 0}


async def test_every_member_of_the_json_report_is_documented(whole):
    document = DOCUMENT.read_text(encoding="utf-8")
    told = await summary(whole)
    missing = {name for name in members(as_json(told, NO_PROSE)) if f"`{name}`" not in document}
    assert missing == set()


def members(value: object) -> set[str]:
    """Return the names of members; of maps by id, status or reason the name of the map alone."""
    match value:
        case dict():
            inner = set().union(
                *(
                    members(v)
                    for k, v in value.items()
                    if k not in ("by_status", "withheld", "inputs")
                )
            )
            return {*value, *inner}
        case list():
            return set().union(*map(members, value))
        case _:
            return set()
