"""Where the demo keeps its runs: in a file of its own, unless it is told to use another store."""

from pathlib import Path

import pytest

from mimir.cli.main import run
from mimir.demo import entry, setup


def test_what_the_person_has_set_is_not_used_for_a_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MIMIR_STORE", "neo4j://team")
    monkeypatch.setenv("MIMIR_NEO4J_PASSWORD", "geheim-geheim")

    assert setup.settings(tmp_path, "").settings.store == ""
    named = setup.settings(tmp_path, "neo4j://db").settings
    assert named.store == "neo4j://db"
    assert named.neo4j.password.get_secret_value() == "geheim-geheim"


@pytest.mark.parametrize(
    ("words", "store"),
    [
        (("demo",), ""),
        (("demo", "--store", "neo4j://db"), "neo4j://db"),
        (("--store", "neo4j://db", "demo"), "neo4j://db"),
    ],
)
def test_store_of_the_command_line_is_where_the_demo_plays(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], store: str
):
    played: list[str] = []

    async def demo(_console: object, **given: object) -> int:
        played.append(str(given["store"]))
        return 0

    monkeypatch.setattr(entry, "demo", demo)

    assert run(words) == 0
    assert played == [store]
