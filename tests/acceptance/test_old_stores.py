"""Stores that earlier schemas have written open and resume; a newer one and a foreign one are refused (tests/unit/store)."""

import pytest

from mimir.domain.run import RunBudget
from mimir.store.schema import SCHEMA_VERSION
from tests.support.old_stores import kept, resumable, unpack
from tests.support.whole_run import look


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
async def test_store_of_each_schema_so_far_opens_and_its_run_resumes(version, tmp_path):
    assert kept(version).is_file(), "keep one: python -m tests.support.old_stores"
    project = unpack(version, tmp_path)

    async with resumable(project) as mimir:
        run = await mimir.find_run(None, resumable=True)
        before = await mimir.status(run)
        ending = await mimir.drive(
            run, workers=2, apply="never", limits=RunBudget(max_calls=100), resumed=True
        )
        after = await look(mimir, project, ending)

    assert before["status"] == "paused"
    assert ending.outcome == "completed"
    assert after.statuses == dict.fromkeys("abc", "completed")
    assert after.facts.files.keys() >= {"a.txt", "b.txt", "c.txt"}
    assert all(len(after.facts.attempts(task)) == 1 for task in "abc")
