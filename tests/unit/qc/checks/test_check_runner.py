"""Every row of the table of checks, end to end over trees; and which files each run sees."""

import pytest

from mimir.qc.checks.earlier_tests import loses_only_tests
from tests.support.fake_check_site import BASE, GOOD, TEST, check
from tests.support.fake_trees import CUT_SHORT, GREEN, MISSING, RED, TIMEOUT, FakeRan, Seen

# The table, row by row.


ROWS = [
    # kind, before, after, criterion
    ("flip", MISSING, MISSING, "broken"),
    ("hold", MISSING, MISSING, "broken"),
    (None, MISSING, MISSING, "broken"),
    ("flip", RED, GREEN, "passed"),
    ("flip", TIMEOUT, GREEN, "passed"),
    ("flip", MISSING, GREEN, "passed"),
    ("flip", GREEN, GREEN, "broken"),
    ("hold", GREEN, GREEN, "passed"),
    ("hold", RED, GREEN, "passed"),
    ("hold", RED, RED, "broken"),
    ("hold", TIMEOUT, TIMEOUT, "broken"),
    ("flip", RED, RED, "failed"),
    ("flip", GREEN, RED, "failed"),
    ("hold", GREEN, RED, "failed"),
    ("hold", GREEN, TIMEOUT, "failed"),
    ("hold", RED, MISSING, "failed"),
    ("flip", RED, MISSING, "failed"),
    ("flip", RED, CUT_SHORT, "failed"),
    ("hold", GREEN, CUT_SHORT, "failed"),
    ("hold", RED, CUT_SHORT, "failed"),
    ("hold", CUT_SHORT, CUT_SHORT, "broken"),
    (None, RED, CUT_SHORT, "failed"),
    (None, RED, GREEN, "passed"),
    (None, GREEN, GREEN, "passed"),
    (None, GREEN, RED, "failed"),
    (None, RED, RED, "failed"),
]


@pytest.mark.parametrize(("kind", "before", "after", "state"), ROWS)
async def test_each_row_of_the_table(bench, kind, before, after, state):
    def program(seen: Seen) -> FakeRan:
        return after if seen.files["a.py"] == "good" else before

    outcome = await bench(program).outcome(check(kind))

    assert outcome.state == state
    assert outcome.inferred == (kind is None)
    assert (outcome.before.phase, outcome.after.phase) == ("before", "after")


async def test_work_that_makes_a_red_test_green_passes(bench):
    outcome = await bench().outcome(check("flip"))

    assert (outcome.state, outcome.self_authored, outcome.findings) == ("passed", False, ())


async def test_work_that_was_claimed_and_not_done_fails_after_a_second_run(bench):
    here = bench()

    outcome = await here.outcome(check("flip"), after={**BASE, "report.md": "All tests pass!"})

    assert outcome.state == "failed"
    assert outcome.again is not None
    assert outcome.again.again
    assert len(here.sandbox.seen) == 3


async def test_check_that_fails_once_and_passes_once_is_flaky(bench):
    runs = iter([GREEN, RED, GREEN])

    outcome = await bench(lambda _seen: next(runs)).outcome(check("hold"))

    assert (outcome.state, outcome.flaky) == ("unverified", True)


async def test_check_that_is_not_required_is_not_run_twice(bench):
    here = bench(lambda seen: RED if seen.files["a.py"] == "good" else GREEN)

    outcome = await here.outcome(check("hold", required=False))

    assert (outcome.state, outcome.required, len(here.sandbox.seen)) == ("failed", False, 2)


# The check's own files: in both runs, so that a test that cannot fail is found.


async def test_new_test_is_run_on_the_old_code_too(bench):
    here = bench()

    outcome = await here.outcome(
        check("flip"), base={"a.py": "bad"}, after={"a.py": "good", TEST: "wants good"}
    )

    assert outcome.state == "passed"
    assert outcome.self_authored
    assert here.sandbox.seen[0].files == {"a.py": "bad", TEST: "wants good"}


async def test_test_that_cannot_fail_proves_nothing(bench):
    outcome = await bench().outcome(
        check("flip"), base={"a.py": "bad"}, after={"a.py": "bad!", TEST: "anything"}
    )

    assert (outcome.state, outcome.self_authored) == ("unverified", True)
    assert any("proves nothing" in finding for finding in outcome.findings)


async def test_weakened_test_of_a_flip_proves_nothing(bench):
    outcome = await bench().outcome(check("flip"), after={"a.py": "bad", TEST: "anything"})

    assert (outcome.state, outcome.self_authored) == ("failed", False)
    assert any("is an existing test" in finding for finding in outcome.findings)


@pytest.mark.parametrize("kind", ["flip", None])
@pytest.mark.parametrize("work", [{TEST: "wants worse"}, {}], ids=["rewritten", "deleted"])
async def test_flip_with_a_removed_failing_test_still_runs_it(bench, kind, work):
    more = {"tests/test_b.py": "wants "}

    outcome = await bench().outcome(
        check(kind, run="pytest -q"), base={**BASE, **more}, after={"a.py": "worse", **more, **work}
    )

    assert outcome.state == "failed"
    assert any("is an existing test" in finding for finding in outcome.findings)


async def test_broken_test_named_by_the_task_may_be_repaired(bench):
    base = {"a.py": "good", TEST: "wants nonsense"}

    outcome = await bench().outcome(
        check(None), base=base, after={"a.py": "good", TEST: "wants good"}, files=(TEST,)
    )

    assert (outcome.state, outcome.kind) == ("passed", "hold")


async def test_red_test_that_the_plan_names_may_be_rewritten(bench):
    outcome = await bench().outcome(
        check("flip"), after={"a.py": "better", TEST: "wants better"}, files=("a.py", TEST)
    )

    assert (outcome.state, outcome.self_authored) == ("passed", True)


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        *(("pytest -q tests", kind) for kind in ("flip", None)),
        *(("python -m pytest -q", kind) for kind in ("flip", None)),
        ("make test", "flip"),
    ],
)
async def test_flip_of_many_tests_leaves_those_as_they_were_that_were_green(bench, run, kind):
    """A new test fails before the work, so all together flip; one that was green is rewritten to let wrong work pass."""
    new = {"tests/test_b.py": "wants better"}
    one = check(kind, run=run)

    hidden = await bench().outcome(
        one, base=GOOD, after={"a.py": "better", TEST: "wants better"} | new
    )
    asked = await bench().outcome(
        one, base=GOOD, after={"a.py": "better", TEST: "wants better"} | new, files=("a.py", TEST)
    )
    right = await bench().outcome(
        one, base=GOOD, after={"a.py": "good better", TEST: "wants good better"} | new
    )

    assert hidden.state == "failed"
    assert any("is an existing test" in finding for finding in hidden.findings)
    assert (asked.state, right.state) == ("passed", "passed")
    assert right.self_authored


@pytest.mark.parametrize("run", ["pytest -q tests", "python -m pytest -q", f"pytest {TEST}"])
async def test_hold_with_a_weakened_test_runs_the_old_test(bench, run):
    outcome = await bench().outcome(
        check("hold", run=run), base=GOOD, after={"a.py": "bad", TEST: "anything"}
    )

    assert (outcome.state, outcome.self_authored) == ("failed", False)
    assert any("is an existing test" in finding for finding in outcome.findings)


async def test_hold_with_a_disabled_named_test_runs_the_old_test(bench):
    outcome = await bench().outcome(
        check("hold"), base=GOOD, after={"a.py": "bad", TEST: "anything"}, files=("a.py", TEST)
    )

    assert (outcome.state, outcome.self_authored) == ("failed", True)
    assert any("older ones are weaker" in finding for finding in outcome.findings)


@pytest.mark.parametrize("run", ["pytest -q", "make test"])
async def test_hold_fails_if_only_the_new_tests_of_the_attempt_are_red(bench, run):
    outcome = await bench().outcome(
        check("hold", run=run), base=GOOD, after={**GOOD, "tests/test_new.py": "wants better"}
    )

    assert (outcome.state, outcome.before.exit_code) == ("failed", 0)


async def test_hold_accepts_named_tests_that_ask_for_more(bench):
    base = {**GOOD, "Makefile": "test:\n\tpytest -q\n"}

    async def state(after: str, wanted: str) -> str:
        changed = {**base, "a.py": after, TEST: wanted}
        run = check("hold", run="make test")
        return (await bench().outcome(run, base=base, after=changed, files=("a.py", TEST))).state

    assert await state("better", "wants better") == "passed"
    assert await state("bad", "anything") == "failed"


SHORTER = {
    "python": (
        "import pytest\nfrom a import (\n    one,\n    two,\n)\n\n\ndef helper():\n    pass\n\n\n",
        "@pytest.mark.slow\ndef test_one():\n    assert one() == 1\n\n    assert one()\n\n\n",
        "class TestMore:\n    def test_two(self):\n        assert two() == 1\n",
    ),
    "go": (
        'package a\n\nimport (\n\t"testing"\n\t"two"\n)\n\n',
        "func TestOne(t *testing.T) {\n\tif one() == 1 {\n\t\tt.Fatal()\n\t}\n}\n\n",
        "func TestTwo(t *testing.T) {\n\tif two.Two() == 1 {\n\t\tt.Fatal()\n\t}\n}\n",
    ),
    "javascript": (
        "import { one, two } from './a.js';\n\ndescribe('a', () => {\n",
        "  it('one', () => {\n    expect(one()).toBe(1);\n    expect(two() == 1);\n  });\n\n",
        "  it('two', () => {\n    expect(one()).toBe(2);\n  });\n});\n",
    ),
    "java": (
        "import org.junit.Test;\n\nclass A {\n",
        "  @Test\n  public void one() {\n    assertTrue(one() == 1);\n    done();\n  }\n\n",
        "  @Test\n  public void two() {\n    assertTrue(two() == 1);\n  }\n}\n",
    ),
}


@pytest.mark.parametrize("language", SHORTER)
def test_tests_that_a_file_no_longer_has_are_no_weaker_ones(language):
    head, one, two = SHORTER[language]
    old = f"{head}{one}{two}"
    fewer = head.replace("    two,\n", "").replace(", two }", " }").replace('\t"two"\n', "")

    assert loses_only_tests(old.encode(), f"{head}{two}".encode())
    assert loses_only_tests(old.encode(), f"{fewer}{two}".encode())
    body = one.splitlines(keepends=True)
    weaker = [old.replace("== 1", ">= 1", 1), old.replace(head, head + "x = 1\n"), old]
    weaker += [
        old.replace("one", "three", 1),
        *(old.replace(line, "", 1) for line in body[1:-2] if line.strip()),
    ]
    for new in weaker:
        assert not loses_only_tests(old.encode(), new.encode()), new


@pytest.mark.parametrize("kind", ["hold", None])
async def test_snapshot_that_the_plan_names_is_updated_with_its_work(bench, kind):
    snapshot = "tests/page.txt"

    async def outcome(wanted: str, *files: str):
        base, after = {"a.py": "good", snapshot: "wants good"}, {"a.py": "best", snapshot: wanted}
        return await bench().outcome(check(kind), base=base, after=after, files=("a.py", *files))

    assert (await outcome("wants best", snapshot)).state == "passed"
    assert (await outcome("wants best")).state == "failed"
    assert (await outcome("anything", snapshot)).state == "failed"


@pytest.mark.parametrize("kind", ["hold", None])
async def test_hold_with_a_deleted_test_runs_the_old_test(bench, kind):
    base = {**GOOD, "tests/test_b.py": "wants go"}

    outcome = await bench().outcome(
        check(kind, run="pytest -q"),
        base=base,
        after={"a.py": "gone", "tests/test_b.py": "wants go"},
    )

    assert outcome.state == "failed"


async def test_test_that_the_plan_names_for_removal_may_go(bench):
    base = {**GOOD, "tests/test_b.py": "wants bad habit"}
    base["a.py"] = "good, bad habit"

    outcome = await bench().outcome(
        check("hold", run="pytest"), base=base, after=GOOD, files=("a.py", "tests/test_b.py")
    )

    assert outcome.state == "passed"


async def test_hold_that_failed_before_does_not_run_its_old_tests(bench):
    outcome = await bench().outcome(
        check("hold", run="pytest"), base=BASE, after={"a.py": "good", TEST: "wants goo"}
    )

    assert outcome.state == "passed"


@pytest.mark.parametrize(
    ("new", "work", "state"),
    [
        # An earlier task wrote the new test, so it is red on purpose: the old one was green.
        ("wants new", "good, new", "passed"),
        ("wants new", "new", "failed"),
        ("wants new", "good", "failed"),
        # Without the new test the suite is red too.
        ("wants bad", "new", "broken"),
    ],
)
async def test_hold_is_not_excused_by_the_red_tests_of_earlier_tasks(bench, new, work, state):
    run_base = {"a.py": "good", TEST: "wants good"}
    if state == "broken":
        run_base[TEST] = "wants better"
    base = {**run_base, "tests/test_new.py": new}

    outcome = await bench().outcome(
        check("hold", run="pytest"), base=base, after={**base, "a.py": work}, run_base=run_base
    )

    assert outcome.state == state


# Protected files.
