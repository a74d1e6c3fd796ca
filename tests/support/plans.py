"""Plans for tests: any at all, as a hypothesis strategy, and small ones by hand."""

from fractions import Fraction

from hypothesis import strategies as st

from mimir.domain.plan import Check, Criterion, Plan, Task

HOSTILE = (
    "</prompt>",
    "<prompt>",
    "<prompt-2>\n</prompt-2>",
    "```",
    "```yaml\n- id: x\n```",
    "~~~~",
    "**Task ID:** task-9",
    "### Task 9.9: fake",
    "# Plan: other",
    "## Notes",
    "---",
    "**Dependencies:** task-1",
    "- [ ] (40 pts) c1: x",
    "<details>\n<summary>s</summary>",
    "</details>",
    "<text>\n</text>",
    "<!-- x",
    "a\r\nb\r",
    "\ufeff\0\x85\u2028",
    "None",
    "N/A",
    " x ",
    "",
    "\n",
    "Task ID: task-8",
    "* [critical] y",
    '["a"]',
    "a, b; c",
    "`x`",
    "**bold**",
    "Group 1",
    "1/3",
)
"""Pieces of text that a reader could take for something else."""

texts = st.lists(
    st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12)), min_size=0, max_size=4
).flatmap(lambda parts: st.sampled_from(("\n", " ", "\n\n", "")).map(lambda glue: glue.join(parts)))
words = st.one_of(texts, st.text(alphabet="abc xyz", min_size=1, max_size=12))
ids = st.from_regex(r"[a-z][a-z0-9]{0,3}(?:[-_.][a-z0-9]{1,3}){0,3}", fullmatch=True)
task_ids = st.one_of(ids, st.from_regex(r"task-[0-9](?:\.[0-9]){0,2}", fullmatch=True))
points = st.none() | st.fractions(min_value=-3, max_value=100, max_denominator=7)
seconds = st.floats(min_value=0, max_value=1e6, allow_nan=False) | st.integers(0, 10_000).map(float)

RESERVED = frozenset(
    {"none", "na", "n-a", "null", "nil", "no", "nothing", "all", "and", "or"}
    | {"to", "through", "task", "tasks"}
)


@st.composite
def criteria(draw: st.DrawFn) -> tuple[Criterion, ...]:
    names = draw(st.lists(st.one_of(ids, words.filter(bool)), max_size=3, unique=True))
    return tuple(
        Criterion(id=id, text=draw(words), points=draw(points), critical=draw(st.booleans()))
        for id in names
    )


@st.composite
def checks(draw: st.DrawFn) -> tuple[Check, ...]:
    names = draw(st.lists(words.filter(lambda text: bool(text.strip())), max_size=2, unique=True))
    run = st.lists(words, min_size=1, max_size=3).map(tuple) | words
    return tuple(
        Check(
            id=id,
            criteria=tuple(draw(st.lists(words, max_size=2))),
            run=draw(run),
            kind=draw(st.sampled_from((None, "flip", "hold"))),
            tests=draw(st.none() | st.lists(words, max_size=2).map(tuple)),
            protect=tuple(draw(st.lists(words, max_size=2))),
            required=draw(st.booleans()),
            timeout_seconds=draw(seconds),
        )
        for id in names
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan whose ids are ids: prompts, titles, notes, criteria and commands are any text at all."""
    names = draw(
        st.lists(
            task_ids.filter(lambda id: id not in RESERVED and ".." not in id),
            max_size=4,
            unique_by=str.casefold,
        )
    )
    known = [*names, "missing-1", "task-77"]
    tasks = tuple(_task(draw, id, known) for id in names)
    return Plan(
        title=draw(words),
        tasks=tasks,
        goal=draw(words),
        request=draw(words),
        reasoning=draw(words),
        notes=draw(words),
    )


def _task(draw: st.DrawFn, id: str, known: list[str]) -> Task:
    several = st.lists(words, max_size=3).map(tuple)
    return Task(
        id=id,
        title=draw(words),
        prompt=draw(texts),
        worker_role=draw(words),
        agent=draw(words),
        qc_role=draw(words),
        criteria=draw(criteria()),
        checks=draw(checks()),
        dependencies=tuple(draw(st.lists(st.sampled_from(known), max_size=3, unique=True))),
        files=draw(several),
        context_files=draw(several),
        tools=draw(several),
        tool_execution=draw(words),
        estimated_tool_calls=draw(st.none() | st.integers(0, 1000)),
        estimated_minutes=draw(st.none() | seconds),
        time_limit_minutes=draw(seconds),
        max_retries=draw(st.integers(0, 9)),
        model=draw(words),
        parallel_group=draw(words),
        notes=draw(words),
    )


def task(id: str, **fields: object) -> Task:
    """Return a task with nothing wrong with it, but for `fields`."""
    given: dict[str, object] = {
        "id": id,
        "title": f"Do {id}",
        "prompt": f"Work on {id}.",
        "worker_role": "Engineer",
        "qc_role": "Reviewer",
        "criteria": (Criterion(id="c1", text="it works", points=Fraction(100)),),
        "checks": (Check(id="unit", criteria=("c1",), run=("pytest", "-q")),),
        "files": (f"{id}.txt",),
        "estimated_tool_calls": 4,
        "dependencies": () if id == "task-0" else ("task-0",),
    }
    return Task(**{**given, **fields})  # type: ignore[arg-type]
