from itertools import product

import pytest

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check
from mimir.qc.checks.decision_table import decide_check, needs_second_run

ENDS = {
    "0": {"exit_code": 0},
    "1": {"exit_code": 1},
    "127": {"exit_code": 127},
    "timeout": {"exit_code": None, "timed_out": True},
    "missing": {"exit_code": 127, "missing": True},
    "gone": {"exit_code": None, "missing": True},
}


def ran(end: str, phase: str = "after") -> CheckRun:
    return CheckRun(check="unit", argv=("pytest",), phase=phase, tree="t", **ENDS[end])


def check(kind: str | None = None, *, required: bool = True) -> Check:
    return Check(id="unit", criteria=("c1",), run=("pytest",), kind=kind, required=required)


def state(kind: str | None, before: str, after: str) -> str:
    return decide_check(check(kind), ran(before, "before"), ran(after)).state


RED = ("1", "127", "timeout", "missing", "gone")
MISSING = ("missing", "gone")


@pytest.mark.parametrize("kind", ["flip", "hold", None])
@pytest.mark.parametrize(("before", "after"), list(product(MISSING, MISSING)))
def test_program_that_is_missing_before_and_after_is_unverified_with_a_finding(kind, before, after):
    outcome = decide_check(check(kind), ran(before, "before"), ran(after))

    assert outcome.state == "unverified"
    assert any("not on this machine" in finding for finding in outcome.findings)
    assert not needs_second_run(check(kind), ran(before, "before"), ran(after))


@pytest.mark.parametrize("before", RED)
def test_flip_passes_when_anything_but_success_becomes_success(before):
    assert state("flip", before, "0") == "passed"


def test_flip_that_passes_before_the_work_proves_nothing():
    outcome = decide_check(check("flip"), ran("0", "before"), ran("0"))

    assert outcome.state == "unverified"
    assert any("proves nothing" in finding for finding in outcome.findings)


@pytest.mark.parametrize("before", ["0", *RED])
def test_hold_passes_whenever_it_is_green_after_the_work(before):
    assert state("hold", before, "0") == "passed"


@pytest.mark.parametrize(
    ("before", "after"),
    [("1", "1"), ("1", "127"), ("timeout", "1"), ("timeout", "timeout"), ("missing", "1")],
)
def test_hold_that_was_red_before_the_work_is_unverified(before, after):
    outcome = decide_check(check("hold"), ran(before, "before"), ran(after))

    assert outcome.state == "unverified"
    assert any("was red before the work" in finding for finding in outcome.findings)


@pytest.mark.parametrize(
    ("before", "after"),
    [("1", "timeout"), ("1", "missing"), ("timeout", "gone"), ("missing", "timeout")],
)
def test_hold_that_got_worse_than_red_is_failed(before, after):
    assert state("hold", before, after) == "failed"


@pytest.mark.parametrize("after", RED)
def test_hold_that_was_green_and_is_not_any_more_is_failed(after):
    assert state("hold", "0", after) == "failed"


@pytest.mark.parametrize(
    ("before", "after"),
    [(b, a) for b, a in product(ENDS, RED) if not (b in MISSING and a in MISSING)],
)
def test_flip_that_is_not_green_after_the_work_is_failed(before, after):
    assert state("flip", before, after) == "failed"


@pytest.mark.parametrize(("before", "after"), list(product(ENDS, ENDS)))
def test_kind_that_is_not_given_follows_from_the_run_before(before, after):
    kind = "hold" if before == "0" else "flip"

    inferred = decide_check(check(None), ran(before, "before"), ran(after))
    given = decide_check(check(kind), ran(before, "before"), ran(after))

    assert (inferred.kind, inferred.inferred, inferred.state) == (kind, True, given.state)
    assert not given.inferred
    assert set(inferred.findings) - set(given.findings)


@pytest.mark.parametrize(
    ("kind", "before", "after"), list(product(("flip", "hold", None), ENDS, ENDS))
)
def test_nothing_passes_that_is_not_green_after_the_work(kind, before, after):
    outcome = decide_check(check(kind), ran(before, "before"), ran(after), ran("0"))

    assert outcome.state != "passed" or after == "0"


@pytest.mark.parametrize("after", ["1", "timeout"])
def test_required_check_that_fails_once_and_passes_once_is_flaky_and_unverified(after):
    before, first = ran("0", "before"), ran(after)
    assert needs_second_run(check("hold"), before, first)

    outcome = decide_check(check("hold"), before, first, ran("0"))

    assert (outcome.state, outcome.flaky) == ("unverified", True)
    assert any("flaky" in finding for finding in outcome.findings)


@pytest.mark.parametrize(("first", "second"), [("1", "1"), ("1", "127"), ("timeout", "1")])
def test_required_check_that_fails_twice_is_failed(first, second):
    outcome = decide_check(check("flip"), ran("1", "before"), ran(first), ran(second))

    assert (outcome.state, outcome.flaky) == ("failed", False)


def test_only_a_required_check_that_fails_is_run_again():
    red_before, green_before = ran("1", "before"), ran("0", "before")

    assert needs_second_run(check("flip"), red_before, ran("1"))
    assert not needs_second_run(check("flip", required=False), red_before, ran("1"))
    assert not needs_second_run(check("flip"), red_before, ran("0"))
    assert not needs_second_run(check("flip"), green_before, ran("0"))
    assert not needs_second_run(check("hold"), red_before, ran("1"))


def test_self_authored_check_is_marked_and_still_decides():
    outcome = decide_check(
        check("flip"), ran("1", "before"), ran("0"), self_authored=True, notes=("n",)
    )

    assert (outcome.self_authored, outcome.state) == (True, "passed")
    assert "n" in outcome.findings


@pytest.mark.parametrize(
    ("kind", "end"), [("flip", "missing"), ("flip", "timeout"), ("flip", "0"), ("hold", "1")]
)
def test_check_is_broken_only_if_the_attempt_has_no_part_in_the_run_before(kind, end):
    mine = decide_check(check(kind), ran(end, "before"), ran(end))
    base = decide_check(check(kind), ran(end, "before"), ran(end), on_base=True)

    assert (base.state, mine.state in ("unverified", "failed")) == ("broken", True)
    assert base.findings
    assert not needs_second_run(check(kind), ran(end, "before"), ran(end), on_base=True)
