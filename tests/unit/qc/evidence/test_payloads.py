import json
from fractions import Fraction

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.domain.verdict import CriterionResult, QCAnswer, Verdict
from mimir.qc.checks.decision_table import decide_check
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import check_bodies, deliverable_body, run_body, verdict_body

CHECK = Check(id="unit", criteria=("c1",), run=("pytest",), kind="hold")


def run(phase: str, exit_code: int | None, **more: object) -> CheckRun:
    return CheckRun(
        check="unit",
        argv=("pytest", "-q"),
        phase=phase,
        tree="abc",
        exit_code=exit_code,
        seconds=0.25,
        output_hash="ff",
        output_tail="1 failed\n",
        sandbox="bubblewrap",
        **more,
    )


def test_each_check_run_is_a_body_and_the_last_has_the_outcome():
    outcome = decide_check(CHECK, run("before", 0), run("after", 1), run("after", 0, again=True))

    bodies = check_bodies(outcome)

    assert [(b["phase"], b["again"], b["exitCode"], b["state"]) for b in bodies] == [
        ("before", False, 0, ""),
        ("after", False, 1, ""),
        ("after", True, 0, "unverified"),
    ]
    assert bodies[2]["flaky"] is True
    assert bodies[2]["findings"]
    assert {
        "argv",
        "outputHash",
        "outputTail",
        "tree",
        "sandbox",
        "seconds",
        "selfAuthored",
    } <= set(bodies[0])


def test_sealed_bodies_contain_their_values():
    outcome = decide_check(CHECK, run("before", 0), run("after", None, timed_out=True))
    made = [("deliverable", deliverable_body("t1", "t0", "Done.", ["b", "a"]))]
    made += [("check", body) for body in check_bodies(outcome)]

    records = seal.extend("r/t/1", None, made)

    assert seal.verify("r/t/1", records) == ()
    assert json.loads(records[0].body)["changed"] == ["a", "b"]
    assert json.loads(records[-1].body)["timedOut"] is True


def test_run_on_a_merged_tree_names_its_task():
    assert run_body(run("gate", 0), task="task-1")["task"] == "task-1"
    assert "task" not in run_body(run("gate", 0))


def test_verdict_is_bound_to_tree_and_answer_and_keeps_exact_scores():
    judgement = Verdict(
        passed=False,
        score=Fraction(200, 3),
        model_score=Fraction(95),
        verdict=QCAnswer(verdict="PASS", score=Fraction(95)),
        criteria=(
            CriterionResult(
                id="c1", text="x", state="failed", basis="judged", points=Fraction(100)
            ),
        ),
    )

    body = verdict_body(judgement, "t1", "Done.")

    assert (body["tree"], body["score"], body["modelScore"]) == ("t1", "200/3", "95")
    assert body["answerHash"] != verdict_body(judgement, "t1", "Done!")["answerHash"]
    assert seal.canonical_json(body)
