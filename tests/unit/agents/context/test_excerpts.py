"""Excerpts of long files: around changes and names, with the lines that are left out."""

from dataclasses import replace

from mimir.agents.context.excerpts import cut_around, find_changed_lines, find_named_lines
from mimir.agents.context.inputs import ChangedFile, EarlierAttempt, FileView
from mimir.domain.usage import estimate
from tests.support.contexts import TASK, qc, worker

LINES = [f"value_{n} = {n}  # some words of a long file\n" for n in range(3000)]
LINES[2000] = "def refill_bucket(rate):\n"
BIG = "".join(LINES)
DIFF = (
    "diff --git a/big.py b/big.py\n--- a/big.py\n+++ b/big.py\n"
    "@@ -1499,3 +1499,4 @@ x\n value_1498 = 1498\n+added = 1\n value_1499 = 1499\n value_1500 = 1500\n"
)


def test_changed_lines_are_those_of_the_new_file():
    assert find_changed_lines(DIFF) == {"big.py": (1499,)}
    removed = "--- a/x\n+++ b/x\n@@ -1,3 +1,1 @@\n a\n-b\n-c\n"
    assert find_changed_lines(removed) == {"x": (1,)}
    assert find_changed_lines("") == {}


def test_identifiers_of_the_prompt_select_lines_and_plain_words_none():
    assert (
        find_named_lines(BIG, "Change `refill_bucket` so that words of the file stay.")[0] == 2000
    )
    assert find_named_lines(BIG, "some words of a long file") == ()


def test_excerpt_keeps_its_limit_and_names_the_lines_that_are_left_out():
    shown = cut_around(BIG, (2000,), 200)
    assert "def refill_bucket(rate):" in shown
    assert estimate(shown) < 240
    assert shown.startswith("[… lines 1–")
    assert cut_around("x" * 100_000, (0,), 10) == "[… lines 1–1 …]\n"


def test_worker_is_shown_the_parts_of_a_context_file_that_its_task_names():
    task = replace(TASK, prompt="Change `refill_bucket`.")
    text = worker(task=task, files=(FileView(path="big.py", size=len(BIG), text=BIG),)).text
    assert "def refill_bucket(rate):" in text
    assert 'of which the parts that matter are shown; read_file("big.py") gives the whole]' in text


def test_retry_is_shown_the_parts_that_the_attempt_before_changed():
    file = FileView(path="big.py", size=len(BIG), text=BIG)
    earlier = EarlierAttempt(number=1, reason="qc_failure", diff=DIFF)
    text = worker(files=(file,), earlier=(earlier,)).text
    assert "value_1499 = 1499  #" in text


def test_reviewer_is_shown_a_change_with_its_surroundings_instead_of_a_long_file():
    change = ChangedFile(path="big.py", status="modified", text=BIG, diff=DIFF)
    text = qc(changed=(change,)).text
    assert "+added = 1" in text
    assert "=== source file:big.py ===" in text
    assert "value_1499 = 1499  #" in text
    assert len(text) < len(BIG) / 10


def test_context_of_the_reviewer_has_at_most_twice_the_tokens_of_the_workers_brief():
    changed = tuple(ChangedFile(path=f"big{n}.py", status="added", text=BIG) for n in range(20))
    given = worker()
    tokens = sum(estimate(message.text) for message in given.messages) + 1_000
    context = qc(changed=changed, answer="done " * 9000, worker_tokens=tokens)
    assert sum(estimate(message.text) for message in context.messages) <= 2 * tokens
