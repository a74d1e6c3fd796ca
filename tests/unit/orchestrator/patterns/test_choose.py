"""Choice of a pattern: the decision tree over twelve requests, on a terminal and in a pipe."""

import json

import pytest

from mimir.orchestrator.patterns.choose import choose_pattern, read_facts

YES, NO, UNKNOWN = True, False, None


@pytest.mark.parametrize(
    ("request_text", "clear", "new_feature", "on_terminal", "in_pipe"),
    [
        ("Add a rate limiter of 60 calls a minute to the API.", YES, YES, "sdd", "sdd"),
        ("Add the option --top N to the report command.", YES, YES, "sdd", "sdd"),
        ("Write an importer for CSV files of the bank.", YES, YES, "sdd", "sdd"),
        ("Fix the typo in the title of README.md.", YES, NO, "direct", "direct"),
        ("Rename the function mean to mean_ms.", YES, NO, "direct", "direct"),
        ("Remove the unused module legacy.py.", YES, NO, "direct", "direct"),
        ("Make it faster.", NO, NO, "ask", "ask"),
        ("Improve the design of the start page.", NO, YES, "ask", "ask"),
        ("Support other databases.", NO, UNKNOWN, "ask", "ask"),
        ("Do the usual.", UNKNOWN, UNKNOWN, "ask", "direct"),
        ("Add exports, as agreed.", UNKNOWN, YES, "ask", "sdd"),
        ("Update the dependencies.", YES, UNKNOWN, "ask", "direct"),
    ],
)
def test_twelve_requests_follow_the_tree(
    request_text: str,
    clear: bool | None,
    new_feature: bool | None,
    on_terminal: str,
    in_pipe: str,
):
    # A fact that is unknown has a quote that the request does not hold
    quotes = {
        name: request_text[:12] if fact is not None else "as you said yesterday"
        for name, fact in (("clear", clear), ("new_feature", new_feature))
    }
    answer = {
        "clear": clear is not False,
        "new_feature": new_feature is not False,
        "quotes": quotes,
    }
    facts = read_facts(f"```json\n{json.dumps(answer)}\n```", request_text)

    assert (facts.clear, facts.new_feature) == (clear, new_feature)
    assert choose_pattern(facts, is_terminal=True).pattern == on_terminal
    piped = choose_pattern(facts, is_terminal=False)
    assert piped.pattern == in_pipe
    assert bool(piped.warning) == (clear is not False and None in (clear, new_feature))


@pytest.mark.parametrize("answer", ["", "{", "[]", '{"clear": "yes", "quotes": {"clear": "Do"}}'])
def test_answer_without_facts_gives_no_facts(answer: str):
    facts = read_facts(answer, "Do it.")

    assert (facts.clear, facts.new_feature, facts.missing) == (None, None, ())
