"""Small graphs that several suites ask about."""

from mimir.store.protocol import GraphStore
from tests.support.stores import put


async def six(store: GraphStore) -> None:
    """Six tasks with properties of every kind, some missing."""
    await put(
        store, "Task",
        {"id": "a", "runId": "r", "status": "pending", "seq": 1, "n": 5, "text": "m", "ok": True, "tags": ["x"]},
        {"id": "b", "runId": "r", "status": "pending", "seq": 2, "n": 5.0, "text": "k", "ok": False},
        {"id": "c", "runId": "r", "status": "done", "seq": 3, "n": 7, "text": "z" * 3000},
        {"id": "d", "runId": "r", "status": "done", "n": "5"},
        {"id": "e", "runId": "s", "seq": 5, "n": True, "text": '["x"]', "tags": []},
        {"id": "f", "seq": 6, "text": "Z", "n": 1},
    )  # fmt: skip


async def diamond(store: GraphStore) -> None:
    """A run with four tasks, d → b, c → a → a, and a task of no run."""
    await put(store, "Run", {"id": "r"})
    await put(store, "Task", *({"id": i} for i in "abcdx"))
    await store.write(lambda ops: ops.link("HAS_TASK", [("r", i) for i in "abcd"]))
    await store.write(
        lambda ops: ops.link(
            "DEPENDS_ON", [("b", "a"), ("c", "a"), ("d", "b"), ("d", "c"), ("a", "a")]
        )
    )


async def notes(store: GraphStore) -> None:
    """Three notes."""
    await put(
        store, "Memory",
        {"id": "m1", "text": "The parser fails on empty input"},
        {"id": "m2", "text": "Use exponential backoff for retries"},
        {"id": "m3", "text": "Empty files make the parser and the lexer fail; the parser is to blame"},
    )  # fmt: skip


async def found(store: GraphStore, text: str, limit: int = 10) -> list[str]:
    """Return the ids that a search for `text` gives, best first."""
    return [id for id, _ in await store.read(lambda reads: reads.search("Memory", text, limit))]
