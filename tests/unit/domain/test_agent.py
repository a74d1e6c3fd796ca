"""The table of rights: what a role may never do, whatever a plan says."""

import pytest

from mimir.domain.agent import ALL_TOOLS, ROLES, WRITE_TOOLS


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"worker"}))
def test_only_the_worker_writes(role: str):
    assert not set(WRITE_TOOLS) & set(ROLES[role].tools)


def test_only_the_worker_and_qc_run_commands():
    assert {role for role, limits in ROLES.items() if "run" in limits.tools} == {"worker", "qc"}


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_grants_only_tools_that_there_are_and_each_once(role: str):
    tools = ROLES[role].tools
    # A plan can name the tools of workers only; `probe` is the PM's alone.
    assert set(tools) <= {*ALL_TOOLS, *(["probe"] if role == "pm" else [])}
    assert len(set(tools)) == len(tools)


@pytest.mark.parametrize(
    ("role", "tokens"),
    [("ecko", 4000), ("pm", 16_000), ("agentinator", 8000), ("worker", 4000), ("qc", 4000)],
)
def test_closing_answers_are_bounded_as_the_contract_says(role: str, tokens: int):
    assert ROLES[role].answer_tokens == tokens
