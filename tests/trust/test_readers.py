"""Any text of a model or a stranger is accepted or refused: no crash, no hang, no number out of nothing."""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimir.agents.preambles import frontmatter
from mimir.domain.plan import Criterion
from mimir.errors import AnswerError, PlanError, ToolError
from mimir.llm.openai import api_errors
from mimir.llm.openai.stream import AnswerAssembler, EventStream, StreamError, UnreadableStream
from mimir.planning import parser
from mimir.planning.lint.plan_check import check
from mimir.qc.judgement.json_object import parse_object
from mimir.qc.judgement.verdict_parser import parse as parse_verdict
from mimir.tools.calls import arguments
from mimir.tools.calls.local_tools import describe_tool
from tests.support.broken_plans import WHOLE
from tests.support.trust_sizes import Cases, sized

CRITERIA = (Criterion(id="c1", text="a"), Criterion(id="c2", text="b"))
SPEC = describe_tool(
    "do",
    "Does.",
    {
        "text": {"type": "string"},
        "number": {"type": "integer", "minimum": 0, "maximum": 100},
        "list": {"type": "array", "items": {"type": "string"}},
        "flag": {"type": "boolean"},
    },
    read_only=True,
)


def plan(text: str) -> None:
    check(parser.parse_plan(text), tools=("run",), exists=lambda _: True)


def stream(text: str) -> None:
    events, assembly = EventStream(1_000_000), AnswerAssembler(1_000_000)
    for event in events.feed(text.encode("utf-8", "surrogatepass"), last=True):
        assembly.add(event)
    assembly.answer()


READERS: Mapping[str, tuple[Callable[[str], object], tuple[type[Exception], ...]]] = {
    "plan": (plan, ()),
    "verdict": (lambda text: parse_verdict(text, CRITERIA, 1), (AnswerError,)),
    "arguments": (lambda text: arguments.parse_arguments(text, SPEC), (ToolError,)),
    "front matter": (lambda text: frontmatter.split_frontmatter(text, "f.md"), (PlanError,)),
    "answer of an endpoint": (
        lambda text: AnswerAssembler(10**6).whole(text),
        (UnreadableStream, StreamError),
    ),
    "stream of an endpoint": (stream, (UnreadableStream, StreamError)),
    "error of an endpoint": (
        lambda text: api_errors.classify_error(api_errors.parse_error_body(400, text)),
        (),
    ),
}
"""Reader → its call, and its kind of refusal."""

VERDICT = json.dumps(
    {"verdict": "PASS", "score": 90, "criteria": [{"id": "c1", "state": "passed"}]}
)
SEEDS = (
    WHOLE,
    VERDICT,
    '{"text": "a", "number": 3, "list": ["x"], "flag": true}',
    "---\nrole: Writer\nkind: worker\nuses: 3\n---\n# Body\n",
    '{"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}]}',
    'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n',
    '{"error": {"message": "m", "code": "c"}}',
    '{"tasks": [{"taskId": "a", "prompt": "p", "criteria": ["c"]}]}',
)
PIECES = (
    "{", "}", "[", "]", '"', "'", "\\", "\\u", "\\ud800", ":", ",", "NaN", "Infinity", "-Infinity", "1e999", "-0", "1" * 50, "null", "true",
    "---", "---\n", "\n", "\r", "\t", "\0", "\x1b[2J", "\u2028", "\ud800", "\ufeff", "😀", "é", "#", "##", "**", "**Task ID:** ", "- ", "- [ ] ",
    "```", "```yaml\n", "~~~", "<prompt>", "</prompt>", "<details>", "<!--", "-->", "|", "&a ", "*a", "!!python/object", "<<: ", "%TAG", "? ",
    "data: ", "data:[DONE]\n\n", "event: x\n", '"score": ', '"verdict": "PASS"', "(50 pts) ", "[critical] ", "task-1,", "1.1.1", "%s", "{0}", "$(",
)  # fmt: skip


def reads(name: str, text: str) -> None:
    """Read; any refusal but the reader's own is a fault."""
    reader, noes = READERS[name]
    try:
        reader(text)
    except noes as error:
        said = str(error)
        if not said:
            raise AssertionError("it says no without a word") from error


EXAMPLES = sized(small=10, ci=400, full=6000)


@pytest.mark.parametrize("name", READERS)
def test_any_text_is_read_or_refused_with_a_message(name: str, cases: Cases):
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        st.sampled_from(SEEDS),
        st.lists(
            st.tuples(
                st.integers(0, 2000),
                st.integers(0, 60),
                st.one_of(st.sampled_from(PIECES), st.text(max_size=9)),
            ),
            max_size=6,
        ),
    )
    def holds(seed: str, edits: list[tuple[int, int, str]]) -> None:
        text = seed
        for at, length, piece in edits:
            place = at % (len(text) + 1)
            text = text[:place] + piece + text[place + length :]
        cases.count()
        reads(name, text)

    holds()


# Large and deep.

BYTES = 100_000
SECONDS = 1.0
"""Of processor time, for `BYTES`."""


def large() -> Iterator[tuple[str, str]]:
    """Yield texts of 100 kB that were made to be slow: one piece again and again, nests, and one piece within a frame."""
    for piece in PIECES:
        yield (
            f"{piece[:12]!r} again and again",
            piece * (BYTES // len(piece.encode("utf-8", "surrogatepass"))),
        )
    for opened, closed in (
        ("{", "}"),
        ("[", "]"),
        ('{"a":', "}"),
        ('[{"a":', "}]"),
        ("<prompt>", "</prompt>"),
        ("- a:\n  ", ""),
    ):
        depth = BYTES // len(opened + closed)
        yield f"{opened!r} in itself", opened * depth + closed * depth
    for start, piece, end in (
        ('{"verdict": "', "a", '"}'), ('{"verdict": "', "\\\\", '"}'), ('{"verdict": "', '\\"', '"}'), ('{"a": [', "1,", "1]}"),
        ('{"score": ', "9", "}"), ('{"score": 0.', "9", "}"), ('{"score": 1e', "9", "}"), ("---\n", "a: b\n", "---\n"),
        ("---\nrole: ", "\\", "\n---\n"), ("# Plan\n", "**Task ID:** t\n", ""), ("**Task ID:** t\n**Checks:**\n```yaml\n", "- {a: ", "\n```\n"),
        ("**Task ID:** t\n**Checks:**\n```yaml\n", "&a [*a, ", "\n```\n"), ("**Task ID:** t\n**Dependencies:** ", "t-1, ", ""),
        ("data: ", "{", "\n\n"), ('data: {"choices": [', "{},", "{}]}\n\n"), ('{"error": {"message": "', "model not ", '"}}'),
        ("<html>", "<a ", "</html>"), ("", '{"a": 1}', ""), ("", '"a": ', ""), ("", "a " * 10 + "\n", ""),
    ):  # fmt: skip
        count = BYTES // len(piece)
        yield f"{piece[:12]!r} in {start[:12]!r}", start + piece * count + end


@pytest.mark.parametrize("name", READERS)
def test_no_text_takes_a_second_for_a_hundred_kilobytes(name: str, cases: Cases):
    texts = list(large())
    wanted = sized(small=8, ci=len(texts), full=len(texts))
    for what, text in random.Random(0).sample(texts, wanted):
        with cases.case(what):
            spent = seconds_for(name, text)
            if spent > SECONDS:  # a machine that does much else takes longer for the same
                spent = min(spent, seconds_for(name, text))
            assert spent <= SECONDS, f"{spent:.2f} s"


def seconds_for(name: str, text: str) -> float:
    before = time.thread_time()
    reads(name, text)
    return time.thread_time() - before


# Numbers.

NO_NUMBERS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "1e-400000",
    "0x10",
    "1_0",
    "+5",
    "01",
    ".5",
    "5.",
    "1" * 5000,
    "--5",
    "５",
)


def test_special_number_becomes_no_score_and_no_argument(cases: Cases):
    for number in NO_NUMBERS:
        with cases.case(number[:20]):
            with pytest.raises(AnswerError):
                parse_verdict(VERDICT.replace("90", number), CRITERIA)
            with pytest.raises(ToolError):
                arguments.parse_arguments(f'{{"number": {number}}}', SPEC)
    for deep in range(1, 2000, 97):
        with cases.case(f"{deep} deep"), pytest.raises((AnswerError, ToolError)):
            arguments.parse_arguments('{"list": ' + "[" * (deep + 9) + "]" * (deep + 9) + "}", SPEC)
    for twice in ('{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 1}}', '{"a": [{"b": 1, "b": 2}]}'):
        with cases.case(twice), pytest.raises(AnswerError):
            parse_object(twice)
    with cases.case("twice"), pytest.raises(ToolError):
        arguments.parse_arguments('{"text": "a", "text": "b"}', SPEC)


LABELS = ("Estimated Tool Calls", "Max Retries", "Time Limit", "Estimated Duration")
ODD = ("NaN", "Infinity", "-3", "1e999", "many", "0x10", "0b1", "9" * 400, "∞", "-∞", "√two")


def test_special_number_of_a_plan_becomes_no_silent_default(cases: Cases):
    base = "**Task ID:** t\n**Prompt:**\n<prompt>\nDo it.\n</prompt>\n**Criteria:**\n- a\n"
    plain = {f.code for f in parser.parse_plan(base).findings}
    for label in LABELS:
        for value in ODD:
            with cases.case((label, value)):
                found = {
                    f.code for f in parser.parse_plan(f"{base}**{label}:** {value}\n").findings
                }
                assert found - plain, "nothing is said of it"
    for points in ("NaN", "Infinity", "1e999", "-5"):
        with cases.case(("points", points)):
            parsed = parser.parse_plan(base.replace("- a", f"- ({points} pts) a"))
            [task] = parsed.plan.tasks
            [criterion] = task.criteria
            refused = {f.code for f in check(parsed, tools=(), exists=lambda _: True)}
            assert points in criterion.text or "criterion-points" in refused
