"""Every command that a message names exists, and those that are printed here work."""

import asyncio
import re
import shlex
from contextlib import suppress
from pathlib import Path

import pytest
from typer._click.exceptions import BadOptionUsage, MissingParameter

import mimir
from mimir.cli.command_table import COMMANDS
from mimir.cli.main import run
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.command_lines import commands_in, is_command, messages, parse
from tests.support.fake_app import PLAN
from tests.support.small_runs import whole
from tests.support.stores import opened

PACKAGE = Path(mimir.__file__).parent
DOCUMENTS = [*PACKAGE.parent.glob("*.md"), *PACKAGE.parent.glob("docs/*.md")]


def test_every_command_of_a_message_is_one_that_the_command_line_takes():
    named = 0
    for place, text, is_step in messages(PACKAGE):
        if place.partition(":")[0].endswith(("command_table.py", "completion.py", "names.py")):
            continue  # scripts and examples, which follow
        for line in commands_in(text):
            if not is_command(line.split()[1]):
                assert not is_step, f"{place}: {line} is no command"
                continue
            named += 1
            # A sentence may name a command, and describe its arguments in words.
            with suppress(BadOptionUsage, MissingParameter):
                # The second hole of this message is an option with its value.
                parse(line.replace("resume {} {}", "resume {} --max-calls 9"))
    assert named > 80
    entries = [one for entry in COMMANDS for one in (entry, *entry.parts)]
    for entry in entries:
        parse(f"mimir {entry.example.split(' > ')[0]}")


def test_a_command_that_does_not_exist_is_found():
    with pytest.raises(Exception, match="No such option"):
        parse("mimir resume --everything")
    with pytest.raises(KeyError):
        parse("mimir repair RUN")
    assert commands_in("Then: mimir resume RUN --time-limit MINUTES, or wait.") == [
        "mimir resume RUN --time-limit MINUTES"
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_code_block_is_one_that_the_command_line_takes(document: Path):
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(sh|)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for language, block in blocks:
        for line in block.splitlines():
            words = line.split("#")[0].split("&&")
            for one in (word.strip() for word in words):
                is_whole = one.startswith("mimir ") and not set("[…|<>").intersection(one)
                if is_whole and (language or is_command(one.split()[1])):
                    parse(one)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def job() -> None:
        clock = FrozenClock()
        async with opened(SqliteStore(tmp_path / ".mimir/mimir.db", clock)) as store:
            await whole(store, clock)
        (tmp_path / ".mimir/project").write_text("p\n", encoding="utf-8")

    asyncio.run(job())
    (tmp_path / "chains/limiter").mkdir(parents=True)
    (tmp_path / "chains/limiter/chain-output.md").write_text(PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_each_next_command_is_accepted(capsys: pytest.CaptureFixture[str]):
    """Follow each `next:` line that a command prints, and those of the commands that follow."""
    waiting = ["mimir runs", "mimir", "mimir show /task-1", "mimir status run-9", "mimir check"]
    typed: list[str] = []
    while waiting:
        line = waiting.pop()
        if line in typed:
            continue
        typed.append(line)
        code = run(shlex.split(line)[1:])
        said = capsys.readouterr()
        assert code in (0, 2) if line == "mimir status run-9" else code == 0, f"{line}: {said.err}"
        found = re.findall(
            r"^(?:next:|  (?=mimir)) *(mimir .*)$", said.out + said.err, re.MULTILINE
        )
        # These need a model, a user or the history of git: other tests run them.
        waiting += [
            one.split("   ")[0]
            for one in found
            if not re.match(r"mimir (execute|chain|init|demo|resume|--help|verify|.*--diff)", one)
        ]
    assert "mimir report run-1" in typed
    assert len(typed) > 6
