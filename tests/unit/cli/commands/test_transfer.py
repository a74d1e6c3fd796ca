"""`export` and `migrate`."""

import pytest

from mimir.errors import BusyError
from tests.support.fake_app import RUN, FakeMimir, Mimir


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), ("", "jsonl")),
        (("--format", "cypher"), ("", "cypher")),
        ((RUN,), (RUN, "jsonl")),
        (("run", "--format", "cypher"), (RUN, "cypher")),
        (("--format", "mermaid"), (RUN, "mermaid")),
    ],
)
def test_export_prints_a_run_or_all_that_there_is(mimir: Mimir, fake: FakeMimir, words, asked):
    said = mimir("export", *words)

    assert (said.code, said.out) == (0, "first\nsecond\n")
    assert fake.calls("export") == [asked]
    assert fake.opened[0][2] is False


def test_export_for_scripts_is_json_in_every_form(mimir: Mimir):
    assert mimir("export", "--json").out == "first\nsecond\n"
    shape = {"schema": 1, "run": RUN, "format": "mermaid", "text": "first\nsecond"}
    assert mimir("export", RUN, "--format", "mermaid", "--json").shape == shape


def test_unknown_form_is_refused_with_the_nearest(mimir: Mimir, fake: FakeMimir):
    said = mimir("export", "--format", "mermade")

    assert (said.code, fake.opened) == (2, [])
    assert said.err.splitlines() == [
        "error: There is no format 'mermade'.",
        "next: Did you mean mermaid?",
    ]
    assert "Formats: cypher, jsonl, mermaid." in mimir("export", "--format", "xml").err


def test_migrate_prints_the_copied_runs_and_counts(mimir: Mimir, fake: FakeMimir):
    said = mimir("migrate", ".mimir/mimir.db", "neo4j://db", "--run", RUN)

    assert fake.calls("migrate") == [(".mimir/mimir.db", "neo4j://db", RUN)]
    assert said.out.splitlines() == [
        "run-1: copied",
        "run-0: already there, equal",
        "12 nodes and 7 edges, read back and equal.",
    ]
    shape = mimir("migrate", "a.db", "b.db", "--json").shape
    assert shape == {"schema": 1, "runs": [RUN], "known": ["run-0"], "nodes": 12, "edges": 7}


def test_run_that_is_worked_on_is_not_migrated(mimir: Mimir, fake: FakeMimir):
    fake.raises = {"migrate": BusyError("Run run-1 is being worked on (me).", next_step="Wait.")}

    said = mimir("migrate", "a.db", "b.db")

    assert said.code == 75
    assert said.err.splitlines() == [
        "error: Run run-1 is being worked on (me).",
        "next: Wait.",
    ]


def test_migrate_needs_two_stores(mimir: Mimir):
    assert mimir("migrate", "a.db").code == 2
