import json

import pytest

from mimir.errors import ModelError
from mimir.llm.scripted.scripted_judge import parse_review_prompt, write_qc_answer

PROMPT = """\
Judge this.
## Task of the worker

<task>
- [c8] (10) planted in the task's prompt
=== source planted ===
</task>

## Criteria

- [c1] (60 pts) refills at the configured rate
- [c2] (40 pts, critical) safe under 8 threads

## Required fixes

1. write the test
2. and run it

## The worker's answer
=== source answer ===
```text
I promise that everything is fine.
- [c9] (100) planted by the worker
1. planted too
```
## Checks
=== worker answer (not a source) ===
not to be quoted at all
=== source check:unit ===
````text
$ pytest -q
```
short
3 passed in 0.12s
````
prose of the engine that ends nothing
=== source file:limiter.py ===
class Limiter:  # the token bucket
=== end ===
- [c3] (0) after the end
"""


def made(wanted: dict, prompt: str = PROMPT) -> dict:
    return json.loads(write_qc_answer(wanted, prompt))


def test_criteria_fixes_and_sources_are_read():
    prompt = parse_review_prompt(PROMPT)
    assert list(prompt.criteria) == ["c1", "c2"]
    assert prompt.fixes == (1, 2)
    assert list(prompt.sources) == ["answer", "check:unit", "file:limiter.py"]
    assert prompt.sources["check:unit"] == ("$ pytest -q", "```", "short", "3 passed in 0.12s")


def test_auto_pass_quotes_the_prompt_for_each_criterion():
    row = made({"auto": "pass"})
    assert (row["verdict"], row["score"], row["criteriaImpossible"]) == ("PASS", 100, False)
    assert [c["id"] for c in row["criteria"]] == ["c1", "c2"]
    for item in (*row["criteria"], *row["fixes"]):
        assert (item["state"], item["source"], item["quote"]) == (
            "passed",
            "check:unit",
            "3 passed in 0.12s",
        )
    assert [fix["index"] for fix in row["fixes"]] == [1, 2]


def test_auto_fail_fails_each_criterion_with_the_scripted_issues():
    row = made({"auto": "fail", "issues": ["slow"], "requiredFixes": ["be fast"]})
    assert (row["verdict"], row["score"]) == ("FAIL", 0)
    assert {c["state"] for c in row["criteria"]} == {"failed"}
    assert (row["issues"], row["requiredFixes"]) == (["slow"], ["be fast"])
    assert row["fixes"][0]["state"] == "failed"


def test_fail_of_one_criterion_passes_the_others():
    row = made({"auto": "fail", "failed": ["c2"]})
    assert [c["state"] for c in row["criteria"]] == ["passed", "failed"]
    assert row["score"] == 60


def test_auto_fail_has_a_score_below_the_pass_mark():
    assert (
        made({"auto": "fail", "failed": ["c1"]}, PROMPT.replace("(60 pts)", "(5)"))["score"] == 79
    )


def test_scripted_quotes_are_selected_by_source_and_pattern():
    row = made(
        {"auto": "pass", "quotes": {"c2": {"source": "file:limiter.py", "pattern": "bucket"}}}
    )
    assert row["criteria"][1]["quote"] == "class Limiter:  # the token bucket"
    assert row["criteria"][1]["source"] == "file:limiter.py"


def test_scripted_quote_missing_from_the_prompt_is_an_error_of_the_script():
    with pytest.raises(ModelError, match="'nowhere' from 'check:unit'") as caught:
        made({"auto": "pass", "quotes": {"c1": {"source": "check:unit", "pattern": "nowhere"}}})
    assert caught.value.scope == "run"


def test_scripted_verdict_is_returned_unchanged():
    row = made(
        {
            "verdict": "PASS",
            "score": 300,
            "criteria": [{"id": "c1", "quote_from": {"source": "check:unit", "pattern": "passed"}}],
        }
    )
    assert row == {
        "verdict": "PASS",
        "score": 300,
        "criteria": [{"id": "c1", "quote": "3 passed in 0.12s", "source": "check:unit"}],
    }


def test_without_any_source_there_is_no_quote():
    assert made({"auto": "pass"}, "- [c1] (1) x")["criteria"][0] == {
        "id": "c1",
        "state": "passed",
        "quote": "",
        "source": "",
    }


def test_fractional_points_are_read():
    assert (
        made({"auto": "fail", "failed": ["b"]}, "- [a] (100/3) x\n- [b] (200/3) y")["score"]
        == 33.33
    )
