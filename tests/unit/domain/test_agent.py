"""The table of rights: a role never gets a forbidden tool, even if a plan grants it."""

import pytest

from mimir.domain.agent import ALL_TOOLS, ROLES, WRITE_TOOLS


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"worker"}))
def test_only_the_worker_writes(role: str):
    assert not set(WRITE_TOOLS) & set(ROLES[role].tools)


def test_only_the_worker_and_qc_run_commands():
    assert {role for role, limits in ROLES.items() if "run" in limits.tools} == {"worker", "qc"}


@pytest.mark.parametrize("role", sorted(ROLES))
def test_role_grants_existing_tools_once_each(role: str):
    tools = ROLES[role].tools
    # A plan can name the tools of workers only; `probe` is the PM's alone.
    assert set(tools) <= {*ALL_TOOLS, *(["probe"] if role == "pm" else [])}
    assert len(set(tools)) == len(tools)


@pytest.mark.parametrize(
    ("role", "tokens"),
    [("ecko", 4000), ("pm", 16_000), ("agentinator", 8000), ("worker", 4000), ("qc", 4000)],
)
def test_closing_answer_of_each_role_has_its_token_limit(role: str, tokens: int):
    assert ROLES[role].answer_tokens == tokens
