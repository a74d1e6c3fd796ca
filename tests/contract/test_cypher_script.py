"""A store as Cypher, loaded into a real server: the loaded store equals the source, and no value is ever read as a statement."""

import re

import pytest

from mimir.orchestrator.store_transfer import export
from mimir.store.neo4j import cypher_export
from mimir.store.transfer import spool
from tests.contract.test_transfer import HOSTILE
from tests.support.neo4j_servers import address_of, store_over
from tests.support.small_run import RUN
from tests.support.small_runs import whole
from tests.support.stores import KINDS, opened, put

PIECES = ["'", '"', "`", "$", "\\", "\n", "\r", "\t", "\0", "\x7f", "u", "0027", "<0>", "}", ";", "//", ":", "é", "🧊", "\u2028"]  # fmt: skip


@pytest.fixture
async def source(tmp_path, frozen_clock):
    async with opened(KINDS["sqlite"](tmp_path, frozen_clock)) as store:
        await whole(store, frozen_clock)
        await put(store, "Memory", HOSTILE)
        await store.write(lambda ops: ops.link("ABOUT", [(HOSTILE["id"], f"{RUN}/task-1")]))
        yield store


async def exported_lines(store, form, tmp_path, run=""):
    lines = []
    await export(store, run, form, lines.append, room=tmp_path / "room")
    return lines


@pytest.mark.neo4j
async def test_loaded_script_is_the_same_store(source, tmp_path, frozen_clock):
    lines = await exported_lines(source, "cypher", tmp_path)
    name = address_of(tmp_path / "loaded").store
    mine = [line.replace("_store: 'mimir'", f"_store: '{name}'") for line in lines]

    async with opened(store_over(tmp_path / "loaded", frozen_clock)) as target:
        for line in [*mine, *mine]:  # twice: it may be loaded again
            if not line.startswith("//"):
                _load(target, line)
        there = await target.read(lambda reads: sorted(map(spool.line, reads.dump())))
        shown = _load(target, f"MATCH (t:Task:Failed {{_store: '{name}'}}) RETURN t.id AS id")

    assert there == await source.read(lambda reads: sorted(map(spool.line, reads.dump())))
    assert [record["id"] for record in shown] == [f"{RUN}/task-2"]


def _load(store, statement):
    with store._session() as session:
        return list(session.run(statement))


async def test_statement_is_one_line_of_plain_characters(source, tmp_path):
    lines = await exported_lines(source, "cypher", tmp_path)

    assert all(re.fullmatch(r"[ -~]+", line) for line in lines)
    assert all(line.endswith(";") for line in lines if not line.startswith("//"))


@pytest.mark.parametrize("first", PIECES)
def test_nothing_in_a_value_ends_its_literal(first):
    """Read as the strictest and as the laxest server would."""
    for second in PIECES:
        for third in ("\\", "'", "u0027", ""):
            text = first + second + third
            written = cypher_export.literal(text)
            assert not re.search(r"(?<!\\)(\\\\)+u", written), (
                "a backslash that is meant, before a u"
            )
            assert _read(written) == text


def _read(written):
    """Parse a literal as Cypher does: escapes alone, and `replace` as written."""
    found = re.fullmatch(r"replace\('((?:[^'\\]|\\.)*)', '(<\d+>)', '\\\\'\)|'((?:[^'\\]|\\.)*)'", written)  # fmt: skip
    assert found, written
    body, mark = (found[1], found[2]) if found[2] else (found[3], None)
    raw = re.sub(
        r"\\(u[0-9A-F]{4}|.)",
        lambda e: chr(int(e[1][1:], 16)) if len(e[1]) == 5 else {"n": "\n", "r": "\r", "t": "\t"}.get(e[1], e[1]),
        body,
    )  # fmt: skip
    text = raw.encode("utf-16", "surrogatepass").decode("utf-16")
    return text.replace(mark, "\\") if mark else text


async def test_exported_lines_equal_the_store(source, tmp_path):
    head, *lines = await exported_lines(source, "jsonl", tmp_path)

    assert head == '{"mimir": "export", "schema": 2, "run": null}'
    assert all(line.isascii() for line in lines)
    assert sorted(lines) == await source.read(lambda r: sorted(map(spool.line, r.dump())))


async def test_one_run_is_exported_alone(source, tmp_path):
    head, *lines = await exported_lines(source, "jsonl", tmp_path, RUN)

    assert '"run": "run-1"' in head
    assert not any(HOSTILE["projectId"] in line and "Memory" in line for line in lines)
    assert len(lines) > 20


async def test_diagram_shows_each_task_with_its_status(source, tmp_path):
    lines = await exported_lines(source, "mermaid", tmp_path, RUN)

    assert lines[0] == "flowchart TD"
    assert '    t2["task-2<br/>Middleware<br/>failed"]:::failed' in lines
    assert "    t2 --> t3" in lines
    assert "    classDef failed fill:#ffcdd2,stroke:#c62828" in lines
