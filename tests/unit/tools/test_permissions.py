"""A tool without a grant is denied, and the refusal names its source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.agent import ALL_TOOLS, ROLES
from mimir.tools.permissions import ToolPolicy, ToolRights, not_granted

NAMES = st.sampled_from(ALL_TOOLS)
LISTS = st.lists(NAMES, max_size=6).map(tuple)


@given(LISTS, LISTS, LISTS, LISTS, NAMES)
def test_tool_is_granted_only_by_plan_role_and_policy(
    role: tuple[str, ...],
    plan: tuple[str, ...],
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    tool: str,
):
    rights = ToolRights(
        role="worker", role_tools=role, plan_tools=plan, policy=ToolPolicy(allow=allow, deny=deny)
    )
    wanted = tool in role and (not plan or tool in plan) and tool in allow and tool not in deny
    assert bool(rights.why(tool)) is not wanted
    assert rights.granted_tools([tool]) == ((tool,) if wanted else ())


def test_no_grant_is_a_denial():
    assert not ToolRights(role="ecko", role_tools=ROLES["ecko"].tools).granted_tools(("read_file",))
    assert not ToolPolicy(allow=()).permits("read_file")


def test_tool_policy_uses_globs():
    policy = ToolPolicy(deny=("memory_*", "run"))
    rights = ToolRights(role="worker", role_tools=ALL_TOOLS, policy=policy)
    assert rights.granted_tools(ALL_TOOLS) == (
        "read_file", "list_files", "grep", "write_file", "edit_file", "delete_file", "read_artifact",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        (ToolRights(role="qc", role_tools=("read_file",)), "the role 'qc' may not use 'run'."),
        (
            ToolRights(role="worker", role_tools=("run",), plan_tools=("read_file", "grep")),
            "'run' is not among the tools of this task (read_file, grep).",
        ),
        (
            ToolRights(role="worker", role_tools=("run",), policy=ToolPolicy(allow=("read_*",))),
            "'run' is switched off by the policy of this installation.",
        ),
    ],
)
def test_refusal_of_a_tool_names_its_source(rights: ToolRights, said: str):
    assert rights.why("run") == said


def test_refusal_without_a_reason_names_the_tool():
    assert not_granted("run") == "'run' was not granted to this agent."
