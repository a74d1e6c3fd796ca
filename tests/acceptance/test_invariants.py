"""The checker of the invariants: silent on a run as it was, and loud on each way in which one could be wrong."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from mimir.domain.event import EventKind
from mimir.qc.evidence import seal
from mimir.store.operations import evidence
from tests.support import invariants
from tests.support.invariants import listing
from tests.support.run_facts import Facts, Outside
from tests.support.whole_run import Curtain, holds, plan, start, step, travel, worker, writes, wrote

SECRET = "sk-a-secret-that-was-handed-around"
Body = dict[str, object]
LINES = "".join(f"line {n}\n" for n in range(12))


@pytest.fixture(scope="session")
def travelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Facts, Outside]:
    """A run with a dependency, a retry, a failure, a blocked task, and two tasks that met in one file."""
    project = start(tmp_path_factory.mktemp("travelled"), {"README.md": "Hi\n", "both.txt": LINES})
    before = listing(project)

    def edits(task: str, line: int) -> dict[str, object]:
        text = LINES.replace(f"line {line}\n", f"line of {task}\n")
        return worker(task, writes("both.txt", text), f"{task} has its line.")

    tasks = [
        step("first", checks=(holds("both.txt", "line of first"),)),
        step("second", checks=(holds("both.txt", "line of second"),)),
        step("third", "first", max_retries=1),
        step("bad"),
        step("never", "bad"),
    ]
    parts = [
        edits("first", 1),
        edits("second", 10),
        worker("third", writes("third.txt", "wrong\n"), "All is well.", attempt=1),
        wrote("third", attempt=2),
        worker("bad", writes("bad.txt", "no\n"), "It is bad."),
    ]
    with pytest.MonkeyPatch.context() as patch:
        Curtain(patch).hold("second", until="first")
        journey = asyncio.run(travel(project, plan(*tasks), parts, workers=4))
    return journey.facts, Outside(before=before, secrets=(SECRET,))


def test_finished_run_violates_no_invariant(travelled: tuple[Facts, Outside]):
    facts, outside = travelled
    assert facts.statuses == {
        "first": "completed",
        "second": "completed",
        "third": "completed",
        "bad": "failed",
        "never": "blocked",
    }
    assert len(facts.git.parents(str(facts.tasks["second"]["integratedCommit"]))) == 2
    assert len(facts.attempts("third")) == 2
    lanes = [
        str(r["lane"]).removeprefix(f"{facts.run}/")
        for r in facts.nodes["Call"]
        if r["kind"] == "model"
    ]
    assert invariants.broken(facts, replace(outside, requests=lanes)) == []


def task(facts: Facts, id: str) -> dict[str, object]:
    return facts.tasks[id]


def rewrite(facts: Facts, chain: str, change: Callable[[Body], object], **wanted: object) -> None:
    """Change the first record of a chain whose body has `wanted`, or remove it (`change` returns None); seal the chain anew."""
    rows = [row for row in facts.nodes["Evidence"] if row["chain"] == chain]
    bodies = [(str(row["kind"]), json.loads(str(row["body"]))) for row in rows]
    place = next(i for i, (_, body) in enumerate(bodies) if wanted.items() <= body.items())
    kind, body = bodies[place]
    changed = change(body)
    bodies[place : place + 1] = [(kind, {**body, **changed})] if isinstance(changed, dict) else []
    others = [row for row in facts.nodes["Evidence"] if row["chain"] != chain]
    made = seal.extend(chain, None, bodies)  # type: ignore[arg-type]
    facts.nodes["Evidence"] = [*others, *(dict(evidence.row_of(r, chain, facts.run)) for r in made)]


def changed_members(**changes: object) -> Callable[[Body], object]:
    """Return a change of a body's members."""
    return lambda body: changes


def goes(body: Body) -> None:
    """Take a record out."""


def event(facts: Facts, kind: EventKind, task: str, **data: object) -> int:
    """Return the place of the first event of this kind."""
    for place, one in enumerate(facts.events):
        if one.kind is kind and one.task == task and data.items() <= one.data.items():
            return place
    raise AssertionError(f"no {kind} of {task}")


def swap(facts: Facts, place: int, **data: object) -> None:
    one = facts.events[place]
    facts.events[place] = replace(one, data={**one.data, **data})


def still_open(facts: Facts) -> None:
    task(facts, "first")["status"] = "qc_passed"


def held(facts: Facts) -> None:
    task(facts, "first")["lockedBy"] = "somebody"


def ended_twice(facts: Facts) -> None:
    place = event(facts, EventKind.TASK_COMPLETED, "first")
    facts.events.append(replace(facts.events[place], seq=len(facts.events) + 1))


def running(facts: Facts) -> None:
    facts.row["status"] = "running"


def not_on_the_line(facts: Facts) -> None:
    task(facts, "second")["integratedCommit"] = None


def another_head(facts: Facts) -> None:
    facts.row["headTree"] = facts.row["baseTree"]


def another_commit(facts: Facts) -> None:
    first, second = task(facts, "first"), task(facts, "second")
    first["integratedCommit"], second["integratedCommit"] = (
        second["integratedCommit"],
        first["integratedCommit"],
    )


def merge_not_judged(facts: Facts) -> None:
    merged = task(facts, "second")["integratedTree"]
    rewrite(facts, facts.chain("second"), goes, tree=merged, passed=True)


def merge_not_checked(facts: Facts) -> None:
    rewrite(facts, facts.chain("second"), goes, phase="merged", task="second")


def too_early(facts: Facts) -> None:
    place = event(facts, EventKind.ATTEMPT_STARTED, "third")
    facts.events.insert(3, facts.events.pop(place))


def one_attempt_more(facts: Facts) -> None:
    facts.nodes["Attempt"].append({**facts.attempt("bad", 1), "attemptNumber": 2})


def judged_too_often(facts: Facts) -> None:
    facts.attempt("bad", 1)["attemptNumber"] = 2


def too_many_calls(facts: Facts) -> None:
    [call] = facts.tool_calls("first")
    facts.nodes["Call"] += [{**call, "seq": 90 + n, "id": f"{call['lane']}#{n}"} for n in range(6)]


def asked_twice(facts: Facts) -> None:
    place = event(facts, EventKind.MODEL_CALLED, "first")
    facts.events.append(replace(facts.events[place], seq=len(facts.events) + 1))


def no_outcome(facts: Facts) -> None:
    facts.calls("first")[0]["done"] = False


def no_intent(facts: Facts) -> None:
    facts.calls("first")[0]["startedAt"] = None


def a_gap(facts: Facts) -> None:
    facts.nodes["Call"].remove(facts.calls("first")[1])


def another_answer(facts: Facts) -> None:
    facts.calls("first")[0]["valueJson"] = "{}"


def illegal_move(facts: Facts) -> None:
    swap(facts, event(facts, EventKind.JUDGING_STARTED, "first"), to="completed")


def another_state(facts: Facts) -> None:
    task(facts, "bad")["status"] = "completed"


def lost_event(facts: Facts) -> None:
    del facts.events[5]


def old_fence(facts: Facts) -> None:
    swap(facts, event(facts, EventKind.ATTEMPT_STARTED, "third", fence=2), fence=1)


def written_late(facts: Facts) -> None:
    facts.calls("first")[0]["fence"] = 0


def no_verdict(facts: Facts) -> None:
    facts.nodes["Verdict"] = [v for v in facts.nodes["Verdict"] if v["taskId"] != "third"]


def failing_verdict(facts: Facts) -> None:
    rewrite(facts, facts.chain("first"), changed_members(passed=False), passed=True)


def other_answer(facts: Facts) -> None:
    rewrite(facts, facts.chain("first"), changed_members(answerHash="0" * 64), passed=True)


def other_deliverable(facts: Facts) -> None:
    rewrite(facts, facts.chain("first"), changed_members(tree="0" * 40), changed=["both.txt"])


def red_merge(facts: Facts) -> None:
    rewrite(facts, facts.chain("second"), changed_members(exitCode=1), phase="merged", task="first")


def gate(facts: Facts) -> str:
    return f"{facts.run}/gate"


def tampered(facts: Facts) -> None:
    row = next(row for row in facts.nodes["Evidence"] if row["chain"] == facts.chain("first"))
    row["body"] = str(row["body"]).replace("both.txt", "nice.txt")


def red_gate(facts: Facts) -> None:
    facts.row["status"] = "completed"
    rewrite(facts, gate(facts), changed_members(exitCode=1), phase="gate", task="first")


def gate_left_out(facts: Facts) -> None:
    rewrite(facts, gate(facts), goes, phase="gate", task="third")


def no_gate(facts: Facts) -> None:
    rewrite(facts, gate(facts), goes, red=[])


def gate_elsewhere(facts: Facts) -> None:
    rewrite(facts, gate(facts), changed_members(tree=facts.row["baseTree"]), red=[])


WAYS: list[tuple[str, Callable[[Facts], object]]] = [
    *(("I1", way) for way in (still_open, held, ended_twice, running)),
    *(("I2", way) for way in (not_on_the_line, another_head, another_commit)),
    *(("I2", way) for way in (merge_not_judged, merge_not_checked)),
    ("I3", too_early),
    *(("I4", way) for way in (one_attempt_more, judged_too_often)),
    ("I5", too_many_calls),
    ("I6", asked_twice),
    *(("I7", way) for way in (no_outcome, no_intent, a_gap, another_answer)),
    *(("I8", way) for way in (illegal_move, another_state, lost_event)),
    *(("I9", way) for way in (old_fence, written_late)),
    *(("I10", way) for way in (no_verdict, failing_verdict, other_answer, other_deliverable)),
    *(("I10", way) for way in (red_merge, tampered)),
    *(("I13", way) for way in (red_gate, gate_left_out, no_gate, gate_elsewhere)),
]


@pytest.mark.parametrize(("name", "way"), WAYS, ids=[way.__name__ for _, way in WAYS])
def test_a_doctored_run_is_named(
    name: str, way: Callable[[Facts], object], travelled: tuple[Facts, Outside]
):
    facts, outside = travelled

    def change(twin: Facts) -> None:
        way(twin)

    found = invariants.broken(facts.doctored(change), outside)

    assert any(one.startswith(f"{name}: ") for one in found), found


def test_more_repeated_calls_than_tasks_in_flight_are_named(travelled: tuple[Facts, Outside]):
    facts, _ = travelled
    lanes = [
        str(r["lane"]).removeprefix(f"{facts.run}/")
        for r in facts.nodes["Call"]
        if r["kind"] == "model"
    ]
    twice = [*lanes, "first/1/worker", "second/1/worker"]

    assert invariants.broken(facts, Outside(requests=twice, in_flight=(2,))) == []
    assert invariants.broken(facts, Outside(requests=twice, in_flight=(1,))) == [
        "I6: 2 model calls were repeated, 1 may be"
    ]
    assert any(
        "never arrived" in one for one in invariants.broken(facts, Outside(requests=lanes[1:]))
    )


def test_a_secret_is_found_wherever_it_is_written(travelled: tuple[Facts, Outside]):
    facts, _ = travelled
    known = Outside(secrets=["line of first"], output=["a line of first"])
    found = invariants.broken(facts, known)
    assert "I11: a secret stands in the store" in found
    assert "I11: a secret was printed" in found
    assert any("mimir.db" in one for one in found)


def test_invariant_names_a_changed_file_of_the_user(travelled: tuple[Facts, Outside]):
    facts, outside = travelled
    before = {**(outside.before or {}), "README.md": "0" * 64, "gone.txt": "1" * 64}
    assert invariants.broken(facts, replace(outside, before=before)) == [
        "I12: README.md was changed",
        "I12: gone.txt was changed",
    ]


def test_every_invariant_has_a_way_to_be_broken():
    assert {name for name, _ in WAYS} | {"I11", "I12"} == set(invariants.RULES)
    assert [f"I{n}" for n in range(1, 14)] == list(invariants.RULES)
