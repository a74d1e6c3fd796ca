"""Values of the plan: shares of criteria, and the arguments of a check."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.plan import Check, Criterion, Plan, Task, weights

POINTS = st.none() | st.fractions(min_value=0, max_value=10_000, max_denominator=1000)


def criteria(points: list[Fraction | None]) -> tuple[Criterion, ...]:
    return tuple(
        Criterion(id=f"C{n}", text=f"criterion {n}", points=p) for n, p in enumerate(points, 1)
    )


@given(st.lists(POINTS, min_size=1, max_size=12))
def test_shares_sum_to_exactly_100_and_none_is_negative(points: list[Fraction | None]):
    shares = weights(criteria(points))
    assert sum(shares.values()) == 100
    assert min(shares.values()) >= 0
    assert list(shares) == [f"C{n}" for n in range(1, len(points) + 1)]


@given(st.lists(st.fractions(min_value=1, max_value=1000), min_size=1, max_size=12))
def test_given_points_keep_their_proportions(points: list[Fraction]):
    shares = list(weights(criteria(list(points))).values())
    assert all(shares[0] * p == shares[n] * points[0] for n, p in enumerate(points))


@given(st.lists(POINTS, min_size=1, max_size=12), st.integers(min_value=1, max_value=50))
def test_the_unit_of_the_points_does_not_matter(points: list[Fraction | None], factor: int):
    scaled = [None if p is None else p * factor for p in points]
    assert weights(criteria(scaled)) == weights(criteria(points))


@pytest.mark.parametrize(
    ("points", "shares"),
    [
        ([None, None, None], [Fraction(100, 3)] * 3),
        ([Fraction(40), Fraction(60)], [40, 60]),
        ([Fraction(10), Fraction(30)], [25, 75]),
        ([Fraction(30), Fraction(50), None], [25, Fraction(125, 3), Fraction(100, 3)]),
        ([Fraction(0), Fraction(0)], [50, 50]),
        ([Fraction(0), None], [50, 50]),
        ([Fraction(0), Fraction(5)], [0, 100]),
        ([Fraction("0.1"), Fraction("0.2")], [Fraction(100, 3), Fraction(200, 3)]),
        ([Fraction(1)], [100]),
    ],
)
def test_shares_of_examples(points: list[Fraction | None], shares: list[Fraction]):
    assert list(weights(criteria(points)).values()) == shares


def test_no_criteria_have_no_shares():
    assert weights(()) == {}


@pytest.mark.parametrize(
    ("run", "argv"),
    [
        (("pytest", "a b.py"), ("pytest", "a b.py")),
        ("pytest -q tests/test_a.py", ("pytest", "-q", "tests/test_a.py")),
        ("grep 'two words' file.txt", ("grep", "two words", "file.txt")),
        ('grep "it\'s" file.txt', ("grep", "it's", "file.txt")),
        ("pytest | tee log", ("bash", "-o", "pipefail", "-c", "pytest | tee log")),
        ("test -f a && test -f b", ("bash", "-o", "pipefail", "-c", "test -f a && test -f b")),
        ("ls *.py", ("bash", "-o", "pipefail", "-c", "ls *.py")),
        ("echo $HOME", ("bash", "-o", "pipefail", "-c", "echo $HOME")),
        ("a\nb", ("bash", "-o", "pipefail", "-c", "set -e\na\nb")),
        ("a b |\n", ("bash", "-o", "pipefail", "-c", "a b |\n")),
        ("a\ntest $? = 1", ("bash", "-o", "pipefail", "-c", "a\ntest $? = 1")),
        ('echo "open', ("bash", "-o", "pipefail", "-c", 'echo "open')),
        ("PYTHONPATH=src pytest -q", ("bash", "-o", "pipefail", "-c", "PYTHONPATH=src pytest -q")),
        ("! grep -q bad log", ("bash", "-o", "pipefail", "-c", "! grep -q bad log")),
        ("exit 3", ("bash", "-o", "pipefail", "-c", "exit 3")),
        ("pytest --opt=1", ("pytest", "--opt=1")),
        ("cat < in > out", ("bash", "-o", "pipefail", "-c", "cat < in > out")),
    ],
)
def test_check_command_is_split_into_arguments(run: tuple[str, ...] | str, argv: tuple[str, ...]):
    assert Check(id="K1", criteria=("C1",), run=run).argv == argv


@given(st.lists(st.text(max_size=20), min_size=1, max_size=6))
def test_an_argument_vector_reaches_the_program_untouched(words: list[str]):
    assert Check(id="K1", criteria=(), run=tuple(words)).argv == tuple(words)


def test_a_task_without_a_qc_role_is_reviewed_by_a_derived_one():
    task = Task(id="task-1", title="T", prompt="P", worker_role="Backend engineer")
    assert task.reviewer == "Reviewer of: Backend engineer"


def test_qc_role_of_the_plan_is_used():
    task = Task(id="task-1", title="T", prompt="P", worker_role="W", qc_role="Security reviewer")
    assert task.reviewer == "Security reviewer"


def test_a_task_is_found_by_its_id():
    first, second = (Task(id=id, title=id, prompt="P", worker_role="W") for id in ("a", "b"))
    assert Plan(title="P", tasks=(first, second)).task("b") is second


def test_an_unknown_task_is_not_found():
    with pytest.raises(KeyError, match="zz"):
        Plan(title="P", tasks=()).task("zz")
