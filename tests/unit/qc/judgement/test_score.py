from fractions import Fraction
from itertools import product

import pytest

from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.plan import Check, Criterion, Task
from mimir.domain.task_states import Cause
from mimir.domain.verdict import CriterionOpinion, FixOpinion, QCAnswer
from mimir.qc.judgement import score
from mimir.qc.judgement.score import ScoreInput

SOURCES = {"file:a.py": "the quick brown fox jumps over the lazy dog"}
FOUND = {"quote": "quick brown fox jumps", "source": "file:a.py"}
INVENTED = {"quote": "quick red fox jumps", "source": "file:a.py"}
STATES = ("passed", "failed", "unverified")


def run(exit_code: int = 0) -> CheckRun:
    return CheckRun(check="k1", argv=("pytest", "-q"), phase="after", tree="t", exit_code=exit_code)


def outcome(id: str, state: str, *, required: bool = True) -> CheckOutcome:
    after = run(0 if state == "passed" else 1)
    return CheckOutcome(
        check=id, state=state, required=required, kind="flip", before=run(1), after=after
    )


def criterion(id: str, points: int | None = None, *, critical: bool = False) -> Criterion:
    return Criterion(
        id=id, text=id, points=None if points is None else Fraction(points), critical=critical
    )


def check(id: str, *criteria: str, required: bool = True) -> Check:
    return Check(id=id, criteria=criteria, run=("pytest", "-q"), required=required)


def opinion(id: str, state: str, **quote: str) -> CriterionOpinion:
    return CriterionOpinion(id=id, state=state, **(quote or FOUND))


def verdict(word: str = "PASS", points: int | None = None, **fields: object) -> QCAnswer:
    number = Fraction(points if points is not None else 95 if word == "PASS" else 30)
    return QCAnswer(verdict=word, score=number, **fields)


def rule(criteria, checks, given: QCAnswer, outcomes=(), **more: object):
    task = Task(
        id="t", title="t", prompt="p", worker_role="w", criteria=criteria, checks=tuple(checks)
    )
    case = ScoreInput(task=task, verdict=given, outcomes=outcomes, sources=SOURCES, **more)
    return score.decide_verdict(case)


# One criterion, every combination of its inputs.

EXECUTED = {
    # (required checks' states, QC's state): the criterion's state
    **{(("passed",), qc): "failed" if qc == "failed" else "passed" for qc in STATES},
    **{(("failed",), qc): "failed" for qc in STATES},
    **{(("unverified",), qc): "failed" if qc == "failed" else "unverified" for qc in STATES},
    **{(("passed", "failed"), qc): "failed" for qc in STATES},
    **{(("unverified", "failed"), qc): "failed" for qc in STATES},
    **{
        (("passed", "unverified"), qc): "failed" if qc == "failed" else "unverified"
        for qc in STATES
    },
    **{(("passed", "passed"), qc): "failed" if qc == "failed" else "passed" for qc in STATES},
}


@pytest.mark.parametrize(("states", "qc"), list(EXECUTED))
def test_criterion_with_required_checks_is_decided_by_them(states, qc):
    checks = [check(f"k{i}", "c1") for i in range(len(states))]
    outcomes = [outcome(f"k{i}", state) for i, state in enumerate(states)]

    ruled = rule((criterion("c1"),), checks, verdict(criteria=(opinion("c1", qc),)), outcomes)

    assert ruled.criteria[0].basis == "executed"
    assert ruled.criteria[0].state == EXECUTED[states, qc]
    assert (ruled.criteria[0].reason == "") == (ruled.criteria[0].state == "passed")


@pytest.mark.parametrize("quote", [FOUND, INVENTED, {"quote": "", "source": ""}])
@pytest.mark.parametrize("qc", STATES)
def test_criterion_without_required_check_is_decided_by_a_found_quote(qc, quote):
    ruled = rule((criterion("c1"),), (), verdict(criteria=(opinion("c1", qc, **quote),)))

    expected = "unverified" if qc == "passed" and quote != FOUND else qc
    assert (ruled.criteria[0].basis, ruled.criteria[0].state) == ("judged", expected)


@pytest.mark.parametrize("state", STATES)
def test_check_that_is_not_required_decides_nothing(state):
    checks = [check("k1", "c1", required=False)]
    outcomes = [outcome("k1", state, required=False)]

    ruled = rule((criterion("c1"),), checks, verdict(criteria=(opinion("c1", "passed"),)), outcomes)

    assert (ruled.criteria[0].basis, ruled.passed, ruled.issues) == ("judged", True, ())


def test_criterion_that_qc_does_not_mention_is_unverified():
    ruled = rule(
        (criterion("c1"), criterion("c2")), (), verdict(criteria=(opinion("c1", "passed"),))
    )

    assert [c.state for c in ruled.criteria] == ["passed", "unverified"]


def test_required_check_that_was_not_run_leaves_its_criterion_unverified():
    ruled = rule(
        (criterion("c1"),), [check("k1", "c1")], verdict(criteria=(opinion("c1", "passed"),))
    )

    assert ruled.criteria[0].state == "unverified"
    assert "was not run" in ruled.criteria[0].reason
    assert not ruled.passed


def test_invented_quote_of_an_executed_criterion_gives_way_to_its_check():
    ruled = rule(
        (criterion("c1"),),
        [check("k1", "c1")],
        verdict(criteria=(opinion("c1", "passed", **INVENTED),)),
        [outcome("k1", "passed")],
    )

    assert ruled.passed
    assert (ruled.criteria[0].quote, ruled.criteria[0].source) == ("", "")


# The score.


@pytest.mark.parametrize(
    ("points", "states", "expected"),
    [
        ((60, 40), ("passed", "passed"), Fraction(100)),
        ((60, 40), ("passed", "failed"), Fraction(60)),
        ((60, 40), ("passed", "unverified"), Fraction(100)),
        ((60, 40), ("unverified", "failed"), Fraction(0)),
        ((60, 40), ("unverified", "unverified"), Fraction(0)),
        ((None, None, None), ("passed", "passed", "failed"), Fraction(200, 3)),
        ((1, 1, 1), ("passed", "failed", "unverified"), Fraction(50)),
        ((799, 201), ("passed", "failed"), Fraction(799, 10)),
        ((8000, 2000), ("passed", "failed"), Fraction(80)),
    ],
)
def test_score_is_the_exact_share_of_the_decided_points(points, states, expected):
    ids = [f"c{i}" for i in range(len(points))]
    criteria = tuple(criterion(id, p) for id, p in zip(ids, points, strict=True))
    opinions = tuple(opinion(id, state) for id, state in zip(ids, states, strict=True))

    assert rule(criteria, (), verdict(criteria=opinions)).score == expected


@pytest.mark.parametrize(("points", "passes"), [((80, 20), True), ((7999, 2001), False)])
def test_eighty_is_reached_or_not_without_rounding(points, passes):
    criteria = (criterion("c1", points[0]), criterion("c2", points[1]))
    opinions = (opinion("c1", "passed"), opinion("c2", "failed"))

    assert rule(criteria, (), verdict(criteria=opinions)).passed is passes


# Passing: everything must hold at once.


@pytest.mark.parametrize(
    ("word", "number", "check_state", "criterion_state", "fix", "protected"),
    list(
        product(
            ("PASS", "FAIL"),
            (79, 80),
            ("passed", "failed"),
            ("passed", "failed"),
            ("passed", "failed", "unverified"),
            ((), ("tests/a.py",)),
        )
    ),
)
def test_attempt_passes_only_if_every_condition_holds(
    word, number, check_state, criterion_state, fix, protected
):
    given = verdict(
        word,
        number,
        criteria=(opinion("c1", "passed"), opinion("c2", criterion_state)),
        fixes=(FixOpinion(index=1, state=fix, **FOUND),),
    )
    ruled = rule(
        (criterion("c1", 90), criterion("c2", 10)),
        [check("k1", "c1")],
        given,
        [outcome("k1", check_state)],
        fixes=("Refill.",),
        protected=protected,
    )

    holds = word == "PASS" and number == 80 and check_state == "passed"
    assert ruled.passed == (holds and fix != "failed" and not protected)
    assert ruled.passed == (not ruled.reasons)
    assert not (ruled.passed and ruled.required_fixes)


def test_pass_with_95_does_not_outweigh_a_failed_check():
    ruled = rule(
        (criterion("c1", 100), criterion("c2", 0)),
        [check("k1", "c2")],
        verdict("PASS", 95, criteria=(opinion("c1", "passed"), opinion("c2", "passed"))),
        [outcome("k1", "failed")],
    )

    assert ruled.score == 100
    assert not ruled.passed
    assert ruled.issues == ("Check 'k1' failed (exit 1): pytest -q",)
    assert ruled.required_fixes == ("Make check 'k1' pass: pytest -q",)


def test_fail_is_a_fail_although_every_check_passes():
    ruled = rule(
        (criterion("c1"),),
        [check("k1", "c1")],
        verdict("FAIL", 30, criteria=(opinion("c1", "unverified"),)),
        [outcome("k1", "passed")],
    )

    assert (ruled.score, ruled.passed) == (100, False)
    assert ruled.reasons == ("QC's verdict is FAIL.",)


def test_critical_criterion_that_failed_stops_a_score_of_90():
    criteria = (criterion("c1", 90), criterion("c2", 10, critical=True))
    ruled = rule(criteria, (), verdict(criteria=(opinion("c1", "passed"), opinion("c2", "failed"))))

    assert (ruled.score, ruled.passed, ruled.unverifiable) == (90, False, False)


def test_fix_that_failed_is_required_again_by_its_text():
    ruled = rule(
        (criterion("c1"),),
        (),
        verdict(criteria=(opinion("c1", "passed"),), fixes=(FixOpinion(index=2, state="failed"),)),
        fixes=("Name it.", "Refill it."),
    )

    assert (ruled.passed, ruled.fixes_failed, ruled.required_fixes) == (
        False,
        (2,),
        ("Refill it.",),
    )


def test_unsupported_claims_are_shown_and_decide_nothing():
    ruled = rule(
        (criterion("c1"),),
        (),
        verdict(criteria=(opinion("c1", "passed"),)),
        unsupported=("[call:9]",),
    )

    assert (ruled.passed, ruled.unsupported_claims) == (True, ("[call:9]",))


# Unverified: a gap that is too weighty ends the task; a small one does not.


@pytest.mark.parametrize(
    ("points", "critical", "passes"),
    [
        ((50, 50), False, True),
        ((49, 51), False, False),
        ((90, 10), True, False),
        ((90, 10), False, True),
    ],
)
def test_weighty_gap_is_unverifiable(points, critical, passes):
    criteria = (criterion("c1", points[0]), criterion("c2", points[1], critical=critical))
    ruled = rule(
        criteria,
        (),
        verdict(criteria=(opinion("c1", "passed"), opinion("c2", "passed", **INVENTED))),
    )

    assert (ruled.passed, ruled.unverifiable) == (passes, not passes)


@pytest.mark.parametrize("state", ["failed", "unverified"])
def test_gap_beside_a_failure_is_left_to_a_retry(state):
    ruled = rule(
        (criterion("c1", 40), criterion("c2", 60)),
        [check("k1", "c1")],
        verdict(criteria=(opinion("c2", "unverified"),)),
        [outcome("k1", state)],
    )

    assert ruled.unverifiable == (state == "unverified")


@pytest.mark.parametrize(
    ("fields", "unverifiable"),
    [
        ({}, True),
        ({"issues": ("It does not refill.",)}, False),
        ({"required_fixes": ("Refill.",)}, False),
        ({"fixes": (FixOpinion(index=1, state="failed"),)}, False),
    ],
)
def test_fail_without_a_required_fix_is_unverifiable(fields, unverifiable):
    given = verdict("FAIL", 0, criteria=(opinion("c1", "unverified"),), **fields)

    ruled = rule((criterion("c1"),), (), given, fixes=("Refill.",))

    assert (ruled.passed, ruled.unverifiable) == (False, unverifiable)


def test_impossible_criteria_count_only_with_fail():
    given = verdict("FAIL", 0, criteria=(opinion("c1", "failed"),), criteria_impossible=True)

    assert rule((criterion("c1"),), (), given).criteria_impossible


def test_task_without_criteria_never_passes():
    assert not rule((), (), verdict()).passed


@pytest.mark.parametrize(
    ("given", "check_state", "expected"),
    [
        (verdict(criteria=(opinion("c1", "passed"),)), "passed", None),
        (verdict(criteria=(opinion("c1", "passed"),)), "failed", Cause.CHECK_FAILED),
        (verdict(criteria=(opinion("c1", "passed"),)), "unverified", Cause.UNVERIFIABLE),
        (verdict("FAIL", issues=("x",)), "passed", Cause.QC_REJECTED),
        (verdict("FAIL", issues=("x",)), "failed", Cause.CHECK_FAILED),
        (verdict("FAIL", criteria_impossible=True), "failed", Cause.CRITERIA_IMPOSSIBLE),
    ],
)
def test_cause_of_a_rejection_follows_the_failed_rule(given, check_state, expected):
    outcomes = [outcome("k1", check_state)]

    assert (
        score.rejection_cause(
            rule((criterion("c1"),), [check("k1", "c1")], given, outcomes), outcomes
        )
        is expected
    )


@pytest.mark.parametrize(
    ("states", "qc", "quote", "decided"),
    [
        (("broken",), "passed", FOUND, ("judged", "passed", True)),
        (("broken",), "passed", INVENTED, ("judged", "unverified", True)),
        (("broken",), "failed", FOUND, ("judged", "failed", False)),
        (("broken", "passed"), "unverified", FOUND, ("judged", "unverified", True)),
        (("broken", "failed"), "passed", FOUND, ("executed", "failed", False)),
        (("broken", "unverified"), "passed", FOUND, ("executed", "unverified", False)),
    ],
)
def test_broken_check_leaves_its_criterion_to_qc_and_rejects_no_work(states, qc, quote, decided):
    checks = [check(f"k{i}", "c1") for i in range(len(states))]
    outcomes = [outcome(f"k{i}", state) for i, state in enumerate(states)]
    opinions = (opinion("c1", qc, **quote),)

    ruled = rule((criterion("c1", critical=True),), checks, verdict(criteria=opinions), outcomes)

    [one] = ruled.criteria
    assert (one.basis, one.state, ruled.passed) == decided
    assert "check 'k0' is broken" in one.reason or one.basis == "executed"
