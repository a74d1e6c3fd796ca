"""What a check starts by a Makefile or a script of the project is part of it, as if the check had started it itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from mimir.domain.evidence import CheckRun
from mimir.domain.plan import Check, Task
from mimir.qc.checks.regression import AcceptedTask
from mimir.qc.integrity.further_files import expand_recipes
from tests.support.clock import FrozenClock
from tests.support.projects import write_files
from tests.support.sandboxed_checks import Bench, check, opened

WRONG, RIGHT = "VALUE = 2\n", "VALUE = 3\n"
ASKS = "import sys\n\nsys.path.insert(0, '.')\nfrom work import VALUE\n\nassert VALUE == 3, VALUE\n"
FILES = {
    "work.py": WRONG,
    "checks/check_value.py": ASKS,
    "Makefile": "P ?= python3\n\nvalue: first\n\t@$(P) \\\n\t  checks/check_value.py\n\nfirst:\n\ttrue\n\nall:\n\tsh ci/value.sh\n",
    "ci/value.sh": "#!/usr/bin/env bash\nset -eu\n\nif true; then\n  python3 checks/check_value.py\nfi\n",
    "ci/below.sh": "cd checks/.. && exec ./ci/value.sh\n",
}
RUNS = {
    "a recipe": ("make", "-s", "value"),
    "a script": ("sh", "ci/value.sh"),
    "a program": ("./ci/value.sh",),
    "a script of a recipe": ("make", "all"),
    "a script of a script": "sh ci/below.sh",
}


@pytest.fixture
async def bench(tmp_path: Path, frozen_clock: FrozenClock) -> Bench:
    bench = await opened(tmp_path, frozen_clock)
    write_files(bench.project, FILES)
    (bench.project / "ci/value.sh").chmod(0o755)
    bench.base = await bench.history.tree((await bench.history.base("run-2")).commit)
    return bench


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
async def test_what_it_starts_may_not_be_rewritten_to_let_wrong_work_pass(bench: Bench, run):
    weaker = {"checks/check_value.py": "print('fine')\n", "work.py": "VALUE = 4\n"}

    outcome = await bench.outcome(check("flip", run), weaker)

    assert (outcome.before.exit_code != 0, outcome.state) == (True, "failed")
    assert any("own files" in finding for finding in outcome.findings)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
async def test_right_work_is_passed(bench: Bench, run):
    outcome = await bench.outcome(check("flip", run), {"work.py": RIGHT})

    assert (outcome.state, outcome.findings) == ("passed", ())


async def test_a_task_may_be_asked_to_rewrite_it(bench: Bench):
    changed = {"checks/check_value.py": ASKS.replace("3", "5"), "work.py": "VALUE = 5\n"}

    outcome = await bench.outcome(
        check("flip", RUNS["a recipe"]), changed, files=("checks/check_value.py", "work.py")
    )

    assert outcome.state == "passed"


async def test_another_task_may_not_rewrite_it_either(bench: Bench):
    one = check("flip", RUNS["a recipe"])
    task = Task(id="t", title="t", prompt="p", worker_role="w", checks=(one,))
    write_files(bench.project, {"work.py": RIGHT})
    accepted = await bench.history.tree((await bench.history.base("run-3")).commit)
    write_files(bench.project, {"work.py": WRONG, "checks/check_value.py": "print('fine')\n"})
    merged = await bench.history.tree((await bench.history.base("run-4")).commit)
    mine = AcceptedTask(task=task, attempt=1, answer="", passed=frozenset((one.id,)), tree=accepted)
    changed = frozenset(("work.py", "checks/check_value.py"))
    second = Task(id="u", title="u", prompt="p", worker_role="w")
    other = replace(mine, task=second, passed=frozenset(), changed=changed, tree=merged)

    runs = await bench.checks.on_tree(mine, one, merged, (mine, other), phase="merged")

    assert not runs[-1].green


class Told:
    """Answers what is asked for by name, and keeps what was asked."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.asked: list[tuple[str, ...]] = []

    async def __call__(self, asked: Check) -> CheckRun:
        self.asked.append(asked.argv)
        text = self.files.get(asked.argv[-1])
        return CheckRun(
            check=asked.id, argv=asked.argv, phase="before", tree="", exit_code=1 if text is None else 0,
            output_hash="", output_tail=text or "",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("run", "asked"),
    [
        (("python3", "x.py"), []),
        (("grep", "-q", "a", "b/c"), []),
        (("sh", "-c", "x"), []),
        (("sh", "/etc/x.sh"), []),
        (("sh", "../x.sh"), []),
        (("npm", "test"), []),
        (("/usr/bin/make", "t"), [("make", "-n", "--no-print-directory", "-C", ".", "t")]),
        (("env", "A=1", "/bin/sh", "-e", "x.sh", "y"), [("cat", "--", "x.sh")]),
        (("./x.sh",), [("cat", "--", "x.sh")]),
        (
            "cd a && make t && ./b.sh",
            [("make", "-n", "--no-print-directory", "-C", "a", "t"), ("cat", "--", "a/b.sh")],
        ),
    ],
)
async def test_questions(run, asked: list[tuple[str, ...]]):
    told = Told({})

    await expand_recipes(check("flip", run), told)

    assert told.asked == asked


async def test_scripts_that_start_each_other_are_read_once():
    told = Told({"a.sh": "sh b.sh\npytest spec\n", "b.sh": "sh a.sh; python checks/c.py\n"})

    found = await expand_recipes(check("flip", ("sh", "a.sh")), told)

    assert told.asked == [("cat", "--", "a.sh"), ("cat", "--", "b.sh")]
    assert {"spec", "checks/c.py"} <= set(found.reached)
    assert "**/conftest.py" in found.hooks


@pytest.mark.parametrize("text", ["#!/usr/bin/env python3\nimport spec\npytest spec\n", "", "'"])
async def test_what_is_no_shells_is_not_read_as_if_it_were(text: str):
    found = await expand_recipes(check("flip", ("./a",)), Told({"a": text}))

    assert found.reached == ()


async def test_shell_is_known_with_its_options():
    found = await expand_recipes(
        check("flip", ("./a",)), Told({"a": "#!/usr/bin/env -S bash -eu\npytest spec\n"})
    )

    assert "spec" in found.reached


async def test_a_plan_that_lists_its_tests_is_believed():
    told = Told({"a.sh": "pytest spec\n"})

    found = await expand_recipes(check("flip", ("sh", "a.sh"), tests=("x",)), told)

    assert (found.tests, found.reached, told.asked) == (("x",), (), [])


async def test_endless_scripts_are_not_followed_for_ever():
    files = {f"{at}.sh": f"sh {at + 1}.sh\n" for at in range(99)}
    told = Told(files)

    await expand_recipes(check("flip", ("sh", "0.sh")), told)

    assert len(told.asked) < 20
