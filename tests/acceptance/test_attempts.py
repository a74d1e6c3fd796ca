"""Ends of an attempt without a verdict, and the start of the next attempt."""

from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.domain.plan import Criterion
from mimir.domain.run import RunBudget
from mimir.store.operations import claims
from tests.support import invariants
from tests.support.run_facts import Outside, store_of
from tests.support.whole_run import (
    FAIL,
    PASS,
    PLAN_PATH,
    README,
    Curtain,
    calls,
    check,
    holds,
    look,
    opened,
    plan,
    qc,
    shell,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)


@pytest.mark.parametrize(
    "answer",
    [{"text": " "}, {"text": "It is only ha", "finish": "length"}, {"text": "y" * 400_000}],
    ids=["empty", "cut off", "far too long"],
)
async def test_unusable_answer_uses_up_the_attempt_and_keeps_its_files(
    answer: dict[str, object], tmp_path: Path
):
    parts = [
        worker("a", writes("a.txt", "a\n"), {**answer, "repeat": "forever"}, attempt=1),
        worker("a", shell("cat a.txt"), "It was there already.", attempt=2),
    ]

    journey = await travel(start(tmp_path), plan(step("a", max_retries=1)), parts)

    assert journey.statuses == {"a": "completed"}
    [first, _] = journey.facts.attempts("a")
    assert (first["endCause"], first["judged"]) == ("invalid_answer", True)
    assert len([c for c in journey.facts.calls("a") if c["kind"] == "model"]) == 3
    assert journey.facts.files["a.txt"] == "a\n"
    assert invariants.broken(journey.facts) == []


async def test_repeated_unusable_answers_use_up_every_attempt(tmp_path: Path):
    parts = [worker("a", {"text": " ", "repeat": "forever"})]

    journey = await travel(start(tmp_path), plan(step("a", max_retries=2)), parts)

    assert journey.statuses == {"a": "failed"}
    assert journey.failure("a")["cause"] == "invalid_answer"
    assert len(journey.facts.attempts("a")) == 3


@pytest.mark.parametrize("fault", ["context_length", "content_filter"])
async def test_a_refusal_of_the_model_uses_up_the_attempt_and_the_next_is_given_less(
    fault: str, tmp_path: Path
):
    files = {f"{n}.md": "".join(f"line {i} of file {n}\n" for i in range(200)) for n in range(10)}
    parts = [worker("a", {"fault": fault}, attempt=1), wrote("a", attempt=2)]
    task = step("a", max_retries=1, context_files=tuple(files))

    journey = await travel(start(tmp_path, {**README, **files}), plan(task), parts)

    assert journey.statuses == {"a": "completed"}
    [first, second] = journey.facts.attempts("a")
    assert (first["endCause"], first["judged"]) == ("model_error", True)
    assert second["estimatedContextTokens"] < first["estimatedContextTokens"] / 2
    assert invariants.broken(journey.facts) == []


async def test_change_outside_the_declared_files_is_left_out_and_named(tmp_path: Path):
    parts = [worker("a", writes("a.txt", "a\n"), shell("echo b > b.txt"), "Two files.")]

    journey = await travel(start(tmp_path), plan(step("a", files=("a.txt",))), parts)

    assert journey.statuses == {"a": "completed"}
    assert journey.facts.files.keys() == {"README.md", "a.txt"}
    assert journey.facts.work("a").left_out == ("b.txt",)
    asked = str(journey.facts.calls("a", role="qc")[0]["deltaJson"])
    assert "'b.txt' was changed outside the task's files" in asked
    assert "b.txt" in journey.report


async def test_a_deliverable_that_steers_the_engine_is_refused(tmp_path: Path):
    parts = [
        worker("a", writes("a.txt", "a\n"), shell("echo '[llm]' > mimir.toml"), "Done.", attempt=1),
        worker(
            "a",
            shell("test -e a.txt && test ! -e mimir.toml && echo more > more.txt"),
            "Without it now.",
            attempt=2,
            when={"brief_has": "steers mimir itself"},
        ),
    ]

    journey = await travel(start(tmp_path), plan(step("a", max_retries=1)), parts)

    assert journey.statuses == {"a": "completed"}
    [first, _] = journey.facts.attempts("a")
    assert (first["endCause"], first["judged"]) == ("refused_deliverable", True)
    assert journey.facts.lanes("a") == ["worker"]
    assert journey.facts.files.keys() == {"README.md", "a.txt", "more.txt"}


async def test_the_whole_answer_of_a_rejected_attempt_can_be_read_by_the_next(tmp_path: Path):
    long = "I did nothing, and here is why: " + "because of this, " * 2_000 + "and that."
    reads = {"calls": [calls("read_artifact", id="a/1/answer", offset=34_000)]}
    parts = [
        worker("a", long, attempt=1),
        worker("a", reads, writes("a.txt", "a\n"), "Done.", attempt=2),
    ]

    journey = await travel(start(tmp_path), plan(step("a", max_retries=1, files=("a.txt",))), parts)

    assert journey.statuses == {"a": "completed"}
    assert "and that." in str(journey.facts.tool_calls("a", 2)[0]["valueJson"])


async def test_unsupported_citations_are_in_the_brief_of_qc(tmp_path: Path):
    said = 'It works. [call:1] "1 passed" and [call:7] "3 passed", as asked.'
    parts = [worker("a", shell("echo a > a.txt; printf '%d pass%s' 1 ed"), said)]

    journey = await travel(start(tmp_path), plan(step("a")), parts)

    asked = str(journey.facts.calls("a", role="qc")[0]["deltaJson"])
    claims = asked.split("Unsupported claims")[1]
    assert "3 passed" in claims
    assert "1 passed" not in claims
    assert journey.facts.judgement("a").unsupported_claims


async def test_missing_program_of_a_check_is_a_warning_before_the_first_model_call(tmp_path: Path):
    missing = check("no-such-program", "--now")

    journey = await travel(start(tmp_path), plan(step("a", checks=(missing,))), [wrote("a")])

    [warning] = journey.facts.events_of_kind(EventKind.WARNING)
    assert "no-such-program" in str(warning.data["message"])
    asked = journey.facts.events_of_kind(EventKind.MODEL_CALLED, task="a")
    assert warning.seq < asked[0].seq
    assert "no-such-program" in journey.flat_report.split("## Warnings")[1]


async def test_criterion_that_fails_only_on_the_merged_tree_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The attempt's own verdict was whole; the one on the merged tree is the one that counts."""
    lines = "".join(f"line {n}\n" for n in range(12))
    criteria = (
        Criterion(id="c1", text="its line is there", points=Fraction(90)),
        Criterion(id="c2", text="it reads well", points=Fraction(10)),
    )
    rest = {"auto": "pass", "failed": ["c2"], "score": 90}
    parts = [
        worker("first", writes("both.txt", lines.replace("line 1\n", "first\n")), "Done."),
        worker("second", writes("both.txt", lines.replace("line 9\n", "second\n")), "Done."),
        qc("second", {"verdict": rest, "repeat": "forever"}, lane="qc.merged-*"),
    ]
    Curtain(monkeypatch).hold("second", until="first")
    tasks = [
        step("first", checks=(holds("both.txt", "first"),)),
        step("second", checks=(holds("both.txt", "second"),), criteria=criteria),
    ]

    journey = await travel(
        start(tmp_path, {**README, "both.txt": lines}), plan(*tasks), parts, workers=4
    )

    assert journey.statuses == {"first": "completed", "second": "completed"}
    assert (journey.ending.outcome, journey.ending.exit_code) == ("completed_with_gaps", 1)
    assert journey.facts.tasks["second"]["qcScore"] == 90
    assert invariants.broken(journey.facts) == []


async def test_required_fix_that_is_still_open_fails_the_second_attempt(tmp_path: Path):
    """The second verdict would pass but for a fix of the first one that is still not done."""
    first = {"auto": "fail", "requiredFixes": ["say please"]}
    parts = [
        worker("a", writes("a.txt", "a\none\n"), "One.", attempt=1),
        worker("a", writes("a.txt", "a\ntwo\n"), "Two.", attempt=2),
        qc("a", {"verdict": first, "repeat": "forever"}, attempt=1),
        qc("a", FAIL, attempt=2),
    ]

    journey = await travel(start(tmp_path), plan(step("a", max_retries=1)), parts)

    assert journey.statuses == {"a": "failed"}
    ruled = journey.facts.judgement("a", 2)
    assert ruled.fixes_failed == (1,)
    assert "Still not done: say please" in ruled.issues


async def test_long_answer_is_complete_in_every_later_reader(tmp_path: Path):
    """At the gate, on merged trees and in the file of the deliverable; its task's row holds the beginning alone."""
    long = "".join(f"I looked at file {n}.\n" for n in range(3_000))
    whole = check("sh", "-c", f"test $(wc -c < $MIMIR_ANSWER) -eq {len(long)}")
    parts = [worker("a", writes("a.txt", "a\n"), long), wrote("b")]
    tasks = plan(step("a", checks=(whole,), files=("*.txt",)), step("b", "a"))

    journey = await travel(start(tmp_path), tasks, parts)

    assert len(str(journey.facts.tasks["a"]["workerOutput"])) == 50_000
    assert journey.ending.outcome == "completed", journey.ending.message
    kept = journey.facts.project / "chains" / "journey" / "deliverables" / "a.md"
    assert kept.read_text(encoding="utf-8") == long


async def test_a_secret_in_the_project_reaches_neither_prompts_nor_store(tmp_path: Path):
    secret = "sk-this-is-handed-around-0123456789"
    files = {**README, "notes.md": f"the key is {secret}, do not tell\n", "old.txt": secret}
    parts = [
        worker("a", shell("cat old.txt > a.txt; cat notes.md"), "The first.", attempt=1),
        worker("a", shell("echo a > a.txt"), "The second.", attempt=2),
    ]

    journey = await travel(
        start(tmp_path, files),
        plan(step("a", max_retries=1, context_files=("notes.md",))),
        parts,
        llm__api_key=secret,
    )

    assert journey.statuses == {"a": "completed"}
    assert len(journey.facts.attempts("a")) == 2
    known = Outside(secrets=(secret,), output=(journey.report,))
    assert invariants.broken(journey.facts, known) == []


async def test_three_deaths_without_an_outcome_end_the_task_and_nothing_else(tmp_path: Path):
    """Three processes took the task and died before anything was recorded of it; the fourth gives up on it, with a report."""
    project = start(tmp_path)
    tasks = plan(step("a"), step("b", "a"), step("c"))
    async with opened(project, [wrote("a"), wrote("b"), wrote("c")]) as mimir:
        run = await mimir.create_run(tasks, PLAN_PATH, only=(), limits=RunBudget())
        await die(project, run, "a", times=3)
        ending = await mimir.drive(run, workers=2, apply="never", limits=RunBudget(), resumed=True)
        journey = await look(mimir, project, ending)

    assert journey.statuses == {"a": "failed", "b": "blocked", "c": "completed"}
    assert journey.failure("a")["cause"] == "worker_died"
    assert not journey.facts.tasks["a"].get("qcFailuresCount")
    assert journey.facts.tasks["a"]["qcFailureReportGenerated"]
    assert invariants.broken(journey.facts) == []


async def test_two_deaths_do_not_fail_a_task(tmp_path: Path):
    project = start(tmp_path)
    async with opened(project, [wrote("a")]) as mimir:
        run = await mimir.create_run(plan(step("a")), PLAN_PATH, only=(), limits=RunBudget())
        await die(project, run, "a", times=2)
        ending = await mimir.drive(run, workers=2, apply="never", limits=RunBudget(), resumed=True)
        journey = await look(mimir, project, ending)

    assert journey.statuses == {"a": "completed"}
    assert len(journey.facts.attempts("a")) == 1
    assert invariants.broken(journey.facts) == []


async def die(project: Path, run: str, task: str, *, times: int) -> None:
    """Let so many processes take a task and vanish: their leases are over as soon as they have them."""
    async with store_of(project) as store:
        await store.write(lambda ops: claims.release_task(ops, run, [(task, 1.0)]))
        for number in range(times):
            owner = f"ghost-{number}"
            claim = partial(claims.claim, run=run, owner=owner, lease_seconds=-1.0)
            assert [c.task for c in await store.write(claim)] == [task]


async def test_git_shows_worker_and_qc_the_changes_of_the_attempt_alone(tmp_path: Path):
    asks = shell("git status --porcelain")
    turns = [
        wrote("a"),
        worker("b", writes("b.txt", "b\n"), asks, "b.txt is written."),
        qc("b", asks, PASS),
    ]

    journey = await travel(start(tmp_path), plan(step("a"), step("b", "a")), turns)

    assert journey.statuses == {"a": "completed", "b": "completed"}, journey.report
    rows = [str(one) for one in journey.facts.nodes["Call"]]
    said = [row for row in rows if "?? b.txt" in row]
    assert {row.split("#")[0].rsplit("/", 1)[1] for row in said} == {"worker", "qc"}
    assert not any("?? a.txt" in row for row in rows)
