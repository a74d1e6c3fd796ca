"""Owners of tests in words, for a worker's brief and for `mimir check`."""

from typing import Any

from mimir.domain.plan import Check, Plan, Task
from mimir.qc.scope.owned_tests import describe_owners, list_owned_tests

UNIT = Check(
    id="unit",
    criteria=("c",),
    run="pytest -q tests/test_a.py",
    tests=("tests/test_a.py",),
    protect=("tests/api.py",),
)


def task(id: str, **fields: Any) -> Task:
    return Task(id=id, title=id, prompt="do", worker_role="engineer", **fields)


WRITER = task("task-1.0", files=("tests/test_a.py",))
WORK = task("task-1.1", files=("src/**", "tests/**"), checks=(UNIT,), dependencies=("task-1.0",))
PLAN = Plan(title="", tasks=(WRITER, WORK))


def in_base(path: str) -> bool:
    return path == "tests/api.py"


def test_owners_of_a_plan_are_sentences_with_the_tasks_that_may_not_change_the_test():
    assert describe_owners(list_owned_tests(PLAN, in_base)) == (
        "task-1.0 owns tests/test_a.py; task-1.1 may not change it",
        "the project owns tests/api.py; task-1.1 may not change it",
    )


def test_worker_gets_the_tests_of_others_and_not_its_own():
    def sentences(one: Task) -> tuple[str, ...]:
        owned = list_owned_tests(PLAN, in_base, others=(one,))
        return describe_owners([one for one in owned if one.others], whom="you")

    assert sentences(WORK) == (
        "task-1.0 owns tests/test_a.py; you may not change it",
        "the project owns tests/api.py; you may not change it",
    )
    assert sentences(WRITER) == ()


def test_first_task_with_a_check_of_a_new_test_owns_it_and_tests_of_one_owner_are_one_sentence():
    both = Check(id="c", criteria=("c",), run="pytest", tests=("tests/x.py", "tests/y.py"))
    first, second = task("a", checks=(both,)), task("b", checks=(both,), dependencies=("a",))
    owned = list_owned_tests(Plan(title="", tasks=(first, second)), lambda _: False)
    assert describe_owners(owned) == ("a owns tests/x.py, tests/y.py; b may not change them",)
