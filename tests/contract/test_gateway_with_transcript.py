"""The gateway before real tools and after the store's transcript: a recorded call is returned, never executed again."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from mimir.domain.message import Message, ToolCall
from mimir.store.operations import runs
from mimir.store.operations.runs import NewRun
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.tools.batch import run_batch
from mimir.tools.builtin.files import FileTools
from mimir.tools.gateway import Gateway
from mimir.tools.scope import PathScope
from mimir.tools.secrets import Redactor
from mimir.workspace.paths import DirectoryTree
from tests.support.clock import FrozenClock
from tests.support.fake_tools import CONTEXT, wish

GRANTED = ("read_file", "list_files", "grep", "write_file", "edit_file")


def tree_of(text: str) -> str:
    """Name a workspace by the content of its one file."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Agent:
    """Calls tools over one store and one workspace; may be made anew, as a resumed one is."""

    def __init__(self, store: SqliteStore, where: Path) -> None:
        self._store = store
        self._where = where
        self.live_from: list[str] = []

    async def do(self, *messages: Sequence[ToolCall]) -> list[tuple[Message, ...]]:
        """Run the calls of some messages in a lane that is opened now."""
        lane = await StoredTranscript.open(
            self._store, run="r1", task="plan", attempt=1, role="worker", fence=None
        )

        async def went_live(tree: str) -> None:
            self.live_from.append(tree)

        lane.on_live = went_live
        tools = Gateway(
            [FileTools(DirectoryTree(self._where), PathScope(files=("*.txt",)))],
            granted=GRANTED,
            transcript=lane,
            snapshot=self._tree,
            redact=Redactor(["s3cret-value"]),
            base_tree="base",
        )
        said = [await run_batch(tools, calls, CONTEXT) for calls in messages]
        await lane.flush()
        return said

    async def _tree(self) -> str:
        return tree_of((self._where / "a.txt").read_text())


@pytest.fixture
async def store(tmp_path: Path, frozen_clock: FrozenClock) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "mimir.db", frozen_clock)
    await made.init()
    new = NewRun(
        id="r1", kind="agent", project_id="p", project_name="p", name="n", request="r", plan=None,
        plan_path="", settings={}, engine_version="0", base_commit="", base_tree="",
    )  # fmt: skip
    await made.write(lambda ops: runs.create(ops, new))
    yield made
    await made.close()


MESSAGES = (
    [wish("list_files", id="1"), wish("lookup", id="2"), wish("grep", {"pattern": "o"}, id="3")],
    [
        wish("write_file", {"path": "a.txt", "content": "one s3cret-value"}, id="4"),
        wish("read_file", {"path": "a.txt"}, id="5"),
        wish("write_file", {"path": "no.py", "content": "x"}, id="6"),
        wish("delete_file", {"path": "a.txt"}, id="7"),
        wish("edit_file", {"path": "a.txt", "old": "one", "new": "two"}, id="8"),
    ],
)


async def test_resumed_agent_gets_recorded_results_without_execution(
    store: SqliteStore, tmp_path: Path
):
    # Given an agent that did its calls
    where = tmp_path / "ws"
    where.mkdir()
    first = await Agent(store, where).do(*MESSAGES)
    assert [m.call_id for batch in first for m in batch] == list("12345678")
    assert [m.tree for batch in first for m in batch] == [
        *["base"] * 3,
        *[tree_of("one s3cret-value")] * 4,
        tree_of("two s3cret-value"),
    ]

    # When the workspace is gone and another one resumes it
    (where / "a.txt").unlink()
    resumed = Agent(store, where)
    again = await resumed.do(*MESSAGES)

    # Then it hears the same words, and nothing was written
    assert again == first
    assert list(where.iterdir()) == []
    assert resumed.live_from == []


async def test_resumed_agent_continues_at_the_end_of_its_transcript(
    store: SqliteStore, tmp_path: Path
):
    where = tmp_path / "ws"
    where.mkdir()
    await Agent(store, where).do(MESSAGES[0], MESSAGES[1][:1])
    resumed = Agent(store, where)
    said = await resumed.do(*MESSAGES)
    assert resumed.live_from == [tree_of("one s3cret-value")]
    assert (where / "a.txt").read_text() == "two s3cret-value"
    assert said[1][-1].text == "Edited a.txt at line 1: 1 line became 1 line."


async def test_events_separate_denied_calls_and_store_no_secret(store: SqliteStore, tmp_path: Path):
    where = tmp_path / "ws"
    where.mkdir()
    await Agent(store, where).do(*MESSAGES)
    events = await store.read(lambda reads: runs.events(reads, "r1"))
    told = [e.kind.value for e in events if e.kind.value.startswith("Tool")]
    assert told == ["ToolCalled"] * 5 + ["ToolDenied"] * 2 + ["ToolCalled"]
    await store.close()
    stored = (tmp_path / "mimir.db").read_bytes()
    assert b"write_file" in stored
    assert b"s3cret-value" not in stored
