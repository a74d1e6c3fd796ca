"""Subscriptions over a real client: a change by another process is noticed, and nothing else."""

import asyncio
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from tests.support.mcp_client import connected_client
from tests.support.projects import make_project

INBOX = "mimir://inbox"
SETS = ("--tools", "core,todo")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", {"README.md": "# A project\n"})


async def test_subscribed_client_gets_changes_of_another_process(project: Path):
    async with (
        connected_client(project, SETS) as one,
        connected_client(project, SETS) as other,
    ):
        run = (await other.call("create_todo", title="First"))["run"]
        report = f"mimir://runs/{run}/report"
        names = (INBOX, report, "mimir://runs/run-none/plan", "mimir://guide/delegation")
        with pytest.raises(MCPError, match="There is nothing to watch"):
            async with one.client.listen(resource_subscriptions=names[2:]):
                pass
        async with one.client.listen(resource_subscriptions=names) as heard:
            # Only changing resources that the client may read are watched
            assert heard.honored.resource_subscriptions == [INBOX, report]
            assert not heard.honored.tools_list_changed
            async with asyncio.timeout(100):
                await other.call("create_todo", title="Second")
                assert await anext(heard) == ResourceUpdated(report)
                await other.call("memory_add", text="The colour is teal.")
                assert await anext(heard) == ResourceUpdated(INBOX)
                assert "teal" in await one.read(INBOX)
        # The server goes on after the client has left its stream.
        listed = await one.call("list_todos")
    assert listed["open"] == 2
