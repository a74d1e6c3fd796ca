from pathlib import Path

import pytest

from mimir.domain.clock import stamp
from mimir.store.operations import claims
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.stored_run import start, task
from tests.support.stores import EACH_KIND
from tests.support.transcripts import World

IN_BOTH = (
    "operations/test_attempt_traces.py",
    "operations/test_budget.py",
    "operations/test_claims.py",
    "operations/test_evidence.py",
    "operations/test_runs.py",
    "test_deferring_store.py",
    "transcripts/test_shared_texts.py",
    "transcripts/test_stored_transcript.py",
    "transcripts/test_waiting_calls.py",
)
"""Suites of operations that run in both stores; the others would prove no more in the second."""

HERE = Path(__file__).parent

if missing := [name for name in IN_BOTH if not (HERE / name).is_file()]:
    raise pytest.UsageError(f"IN_BOTH names no file: {', '.join(missing)}")


def pytest_generate_tests(metafunc):
    if "store" in metafunc.fixturenames:
        name = metafunc.definition.path.relative_to(HERE).as_posix()
        both = name in IN_BOTH and "store_path" not in metafunc.fixturenames
        metafunc.parametrize("store", EACH_KIND if both else ["sqlite"], indirect=True)


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "mimir.db"


@pytest.fixture
async def store(request, tmp_path, frozen_clock):
    """A store with a frozen clock."""
    if request.param == "sqlite":
        made = SqliteStore(tmp_path / "mimir.db", frozen_clock)
    else:
        from tests.support.neo4j_servers import store_over

        made = store_over(tmp_path, frozen_clock, now=lambda: stamp(frozen_clock.now()))
    await made.init()
    yield made
    await made.close()


@pytest.fixture
def world():
    """Effects of the calls of a transcript."""
    return World()


@pytest.fixture
async def run(store):
    """Run "r1" with one task, "a", claimed by "w1" under fence 1."""
    await start(store, task("a"))
    return await store.write(lambda ops: claims.claim(ops, "r1", "w1", lease_seconds=300))
