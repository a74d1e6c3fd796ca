"""Invariants of deliverables and their evidence: the run branch in git, verdicts, the final gate (I2, I10, I13)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.domain.text_hash import hash_text
from mimir.qc.evidence import seal
from mimir.store.operations import evidence
from tests.support.run_facts import Facts, Outside


def i2(facts: Facts, _: Outside) -> Iterator[str]:
    """Each deliverable enters the line once, as its attempt made it, or as a merge that was proved."""
    git, head = facts.git, str(facts.row["head"])
    if git.tree(head) != facts.row["headTree"]:
        yield "the head's tree is not the one that is written beside it"
    line = git.line(head, str(facts.row["baseCommit"]))
    entered = {
        str(row["integratedCommit"]): task
        for task, row in facts.tasks.items()
        if row.get("integratedCommit")
    }
    if sorted(line) != sorted(entered):
        yield f"the line holds {len(line)} commits, {len(entered)} tasks entered it"
    onto = str(facts.row["baseCommit"])
    for commit in line:
        if task := entered.get(commit):
            yield from _entered(facts, task, commit, onto)
        onto = commit
    for task, row in facts.tasks.items():
        if row["status"] == TaskStatus.COMPLETED and _accepted(facts, task):
            work = facts.work(task, _accepted(facts, task))
            if bool(work.commit) != bool(row.get("integratedCommit")):
                yield f"task {task} is completed, and its deliverable is not on the line"


def _accepted(facts: Facts, task: str) -> int:
    """Return the number of a task's accepted attempt, if it has one that delivered something; else 0."""
    number = facts.tasks[task].get("acceptedAttempt")
    known = [row["attemptNumber"] for row in facts.attempts(task) if row.get("workJson")]
    return int(str(number)) if number in known else 0


def _entered(facts: Facts, task: str, commit: str, onto: str) -> Iterator[str]:
    """Compare one commit of the line with the attempt that it holds."""
    git, row = facts.git, facts.tasks[task]
    if row.get("takenFrom"):
        return
    work = facts.work(task, _accepted(facts, task))
    if commit == work.commit:
        if git.tree(commit) != work.tree or git.parents(commit) != [onto]:
            yield f"the commit of {task} is not what its attempt made"
        return
    if git.parents(commit) != [onto, work.commit]:
        yield f"the merge of {task} does not join the line with its attempt"
        return
    mine = git.changed(work.base_tree, work.tree)
    theirs = git.changed(work.base_tree, git.tree(onto))
    merged, ours, attempt = git.files(commit), git.files(onto), git.files(work.tree)
    for path in merged.keys() | ours.keys() | attempt.keys():
        if path in mine and path in theirs:
            continue
        source = attempt if path in mine else ours
        if merged.get(path) != source.get(path):
            yield f"the merge of {task} holds another {path} than both sides made"
    yield from _merge_proved(facts, task, git.tree(commit), doubly=bool(mine & theirs))


def _merge_proved(facts: Facts, task: str, tree: str, *, doubly: bool) -> Iterator[str]:
    records = facts.records(facts.chain(task, _accepted(facts, task)))
    ran = {
        r["check"]
        for r in records
        if r.get("phase") == "merged" and r["tree"] == tree and r["task"] == task
    }
    if missing := {c.id for c in facts.plan.task(task).checks} - ran:
        yield f"checks {sorted(missing)} of {task} were not run on the merged tree"
    judged = any(r["record"] == "verdict" and r["tree"] == tree and r["passed"] for r in records)
    if doubly and not judged:
        yield f"{task} and others changed the same files, and nobody judged the merge"


def i10(facts: Facts, _: Outside) -> Iterator[str]:
    """Nothing is completed without a stored passing verdict that is bound to the deliverable."""
    for task, row in facts.tasks.items():
        if row["status"] != TaskStatus.COMPLETED:
            continue
        number = _accepted(facts, task)
        if not number:
            yield f"{task} is completed without an accepted attempt"
            continue
        chain = facts.chain(task, number)
        records = facts.records(chain)
        yield from _passing(facts, task, number, records)
        yield from _unbroken(facts, chain)
        if tree := row.get("integratedTree"):
            counted: set[str] = set(row.get("passedChecks") or ())
            yield from (
                f"{task} was merged although check {r['check']} of {r['task']} was red"
                for r in records
                if r.get("phase") == "merged"
                and _about(r) == tree
                and _is_red(facts, r, records, counted)
            )


def _passing(
    facts: Facts, task: str, number: int, records: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    work = facts.work(task, number)
    verdicts = [r for r in records if r["record"] == "verdict" and r["passed"]]
    bound = [
        r for r in verdicts if r["tree"] == work.tree and r["answerHash"] == hash_text(work.answer)
    ]
    if not bound:
        yield f"{task} is completed without a sealed verdict on its deliverable"
    delivered = [r for r in records if r["record"] == "deliverable"]
    if [r["tree"] for r in delivered] != [work.tree]:
        yield f"the sealed deliverable of {task} is not the one that was judged"
    if work.commit and facts.git.tree(work.commit) != work.tree:
        yield f"the commit of {task} does not hold the tree that was judged"
    stored = [
        v for v in facts.nodes["Verdict"] if v["taskId"] == task and v["attemptNumber"] == number
    ]
    if not stored or not stored[-1]["passed"]:
        yield f"{task} is completed without a stored passing verdict"


def _unbroken(facts: Facts, chain: str) -> Iterator[str]:
    rows = sorted(
        (r for r in facts.nodes["Evidence"] if r["chain"] == chain), key=lambda r: r["seq"]
    )
    records = [evidence.record_of(row) for row in rows]
    yield from (f"{chain}: {problem.what}" for problem in seal.verify(chain, records))


def _is_red(
    facts: Facts,
    record: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    counted: set[str],
) -> bool:
    """True if the last run of a check that counts failed for this tree."""
    owner = str(record["task"])
    check = next(c for c in facts.plan.task(owner).checks if c.id == record["check"])
    counts = check.id in set(facts.tasks[owner].get("passedChecks") or ()) | counted
    same = [
        r
        for r in records
        if r.get("phase") == record["phase"]
        and (r.get("task"), r.get("check"), _about(r)) == (owner, check.id, _about(record))
    ]
    last = same[-1]
    is_refuted = "cutShort" in last or last.get("tests", {}).get("green") is False
    return check.required and counts and (last["exitCode"] != 0 or is_refuted)


def i13(facts: Facts, _: Outside) -> Iterator[str]:
    """No run is completed while a check of a completed task is red on the final tree."""
    chain = f"{facts.run}/gate"
    records = facts.records(chain)
    ended_well = (RunStatus.COMPLETED, RunStatus.COMPLETED_WITH_GAPS)
    yield from _unbroken(facts, chain)
    if not records or records[-1]["record"] != "gate":
        if facts.row["status"] != RunStatus.CANCELLED:
            yield "the final gate was not passed"
        return
    gate, tree = records[-1], facts.row["headTree"]
    if gate["tree"] != tree:
        yield "the final gate looked at another tree"
    runs = [r for r in records if r["record"] == "check" and _about(r) == tree]
    for task, row in facts.tasks.items():
        if row["status"] != TaskStatus.COMPLETED:
            continue
        ran = {r["check"] for r in runs if r["task"] == task and r["tree"] == tree}
        if missing := {c.id for c in facts.plan.task(task).checks} - ran:
            yield f"checks {sorted(missing)} of {task} were not run on the final tree"
    red = [r for r in runs if _is_red(facts, r, runs, set())]
    if (red or gate["red"]) and facts.row["status"] in ended_well:
        yield f"the run is {facts.row['status']} although a check is red on the final tree"
    if bool(red) != bool(gate["red"]):
        yield "what the gate says is not what its runs say"


def _about(record: Mapping[str, Any]) -> object:
    """Return the tree that a check run decides, also if its check files were restored."""
    return record.get("standsFor") or record.get("tree")
