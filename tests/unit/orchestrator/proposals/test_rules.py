"""Rules of memory proposals."""

import pytest

from mimir.orchestrator.proposals.rules import (
    ENTITIES,
    OBSERVATIONS,
    RELATIONS,
    hash_task,
    may_engine_accept,
    measure_relevance,
    read_operation,
    refuse_decider,
)


def test_an_operation_becomes_one_text_with_its_entities():
    entity = {"name": "Parser", "type": "module", "observations": ["reads lines", "is pure"]}
    relation = {"from": "Parser", "type": "uses", "to": "Lexer"}

    made = read_operation(ENTITIES, {"entities": [entity]}, ())
    related = read_operation(RELATIONS, relation, ())

    assert made.text == "Parser (module); reads lines; is pure"
    assert (made.entities, made.refusal) == (("Parser",), "")
    assert (related.text, related.entities) == ("Parser uses Lexer", ("Parser", "Lexer"))


@pytest.mark.parametrize(
    ("operation", "data", "reason"),
    [
        (ENTITIES, {}, "names no entity"),
        (ENTITIES, {"name": "Shop", "type": "Project"}, "names no entity"),
        (ENTITIES, {"name": "shop"}, "core entity"),
        (RELATIONS, {"from": "shop", "type": "uses", "to": "x"}, "core entity"),
        (OBSERVATIONS, {"entity": "x", "text": " "}, "is empty"),
        (OBSERVATIONS, {"entity": "x", "text": "a" * 2_001}, "over 2,000"),
    ],
)
def test_an_operation_without_entity_text_or_right_is_refused(
    operation: str, data: dict[str, object], reason: str
):
    assert reason in read_operation(operation, data, ("Shop",)).refusal


def test_a_core_entity_accepts_observations():
    assert not read_operation(
        OBSERVATIONS, {"entity": "Shop", "text": "It is old"}, ("Shop",)
    ).refusal


def test_text_that_only_tools_returned_is_of_low_relevance():
    words = "deploy with wombat keys"
    assert measure_relevance(words, "Deploy with these wombat keys", []) == 1.0
    assert measure_relevance(words, "Review the parser", [words]) < 0.5
    assert measure_relevance("a b", "a b", []) == 0.0


def test_the_engine_accepts_nothing_in_doubt():
    assert may_engine_accept(["call:1"], [], 0.5, [])
    assert not may_engine_accept([], [], 1.0, [])
    assert not may_engine_accept(["call:1"], ["call:1: no"], 1.0, [])
    assert not may_engine_accept(["call:1"], [], 0.49, [])
    assert not may_engine_accept(["call:1"], [], 1.0, ["m-1"])


@pytest.mark.parametrize(
    ("decider", "agent", "accept", "may"),
    [
        ("user", "reviewer", "primary", True),
        ("user", "", "user", True),
        ("stdio:ana", "reviewer", "primary", True),
        ("stdio:ana", "reviewer", "engine", True),
        ("stdio:ana", "reviewer", "user", False),
        ("stdio:ana", "", "primary", False),
        ("token:eve", "reviewer", "primary", False),
        ("agent:reviewer", "reviewer", "primary", False),
    ],
)
def test_the_user_and_the_client_of_the_run_decide(
    decider: str, agent: str, accept: str, may: bool
):
    why = refuse_decider(decider, principal="stdio:ana", agent=agent, accept=accept)
    assert (why == "") is may


def test_white_space_and_case_do_not_change_the_hash_of_a_task():
    assert hash_task("Review  it\n") == hash_task("review it")
