"""The demo keeps its runs in a file of its own, unless an option names another store."""

from pathlib import Path

import pytest

from mimir.cli.main import run
from mimir.demo import entry, setup


def test_demo_ignores_the_store_setting_of_the_user(
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
def test_demo_uses_the_store_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], store: str
):
    played: list[str] = []

    async def demo(_console: object, **given: object) -> int:
        played.append(str(given["store"]))
        return 0

    monkeypatch.setattr(entry, "demo", demo)

    assert run(words) == 0
    assert played == [store]
