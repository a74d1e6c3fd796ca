"""The command line with a real Neo4j server: killed, lost for a while, lost for good, and moved from store to store.

The truth is counted outside the engine: by the model's own log of requests.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

import pytest
import yaml

from mimir.cli.main import run
from mimir.planning.renderer import render
from tests.support.bolt_stub import BoltStub
from tests.support.crash.process_forge import PythonProcess
from tests.support.fake_app import Said
from tests.support.killed_processes import MIMIR, PATIENCE_SECONDS, Place, environment, repeated
from tests.support.neo4j_servers import address_of, store_uri
from tests.support.script_server import PlayServer
from tests.support.tcp_proxy import TcpProxy
from tests.support.whole_run import REST, calls, plan, step, worker, writes, wrote

pytestmark = pytest.mark.neo4j

TASKS = plan(step("a"), step("b", "a"), step("c", "a"))
EXECUTE = ("execute", "plan.md", "--yes", "--workers", "2", "--apply", "never")
FILES = {name: f"{name[0]}\n" for name in ("a.txt", "b.txt", "c.txt")}


@dataclass(frozen=True, kw_only=True)
class User:
    """The user of a project: runs are in a process of their own, other commands in this one."""

    place: Place
    called: Callable[..., Said]

    def at(self, store: str, **more: str) -> "User":
        """Return the same user with another store; empty: the project's own file."""
        env = {k: v for k, v in self.place.env.items() if k != "MIMIR_STORE"} | more
        named = {"MIMIR_STORE": store} if store else {}
        return replace(self, place=replace(self.place, env=env | named))

    def run(self, *words: str) -> Said:
        """Run a command to its end."""
        return self.called(self.place, *words)

    def status(self) -> Mapping[str, object]:
        """Return `mimir status --json`."""
        said = self.run("status", "--json")
        assert said.code == 0, said.err
        return said.shape


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


@pytest.fixture
def user(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[User]:
    """A project with a plan and a model; its runs are in Neo4j by default."""

    def called(place: Place, *words: str) -> Said:
        with monkeypatch.context() as patch:
            patch.chdir(place.project)
            patch.delenv("MIMIR_STORE", raising=False)
            for name, value in place.env.items():
                patch.setenv(name, value)
            code = run(words)
        said = capsys.readouterr()
        return Said(code=code, out=said.out, err=said.err)

    project = tmp_path / "project"
    project.mkdir()
    (project / "plan.md").write_text(render(TASKS), encoding="utf-8")
    with PlayServer({"parts": [*map(wrote, "abc"), *REST]}, log=log) as server:
        env = environment(server.url, tmp_path)
        yield User(place=Place(project=project, env=env), called=called).at(store_uri(tmp_path))


@pytest.fixture
def lossy(user: User, tmp_path: Path) -> Iterator[tuple[TcpProxy, User]]:
    """The same user behind a proxy that can lose the server."""
    address = address_of(tmp_path)
    made = TcpProxy(address.host, address.port)
    made.start()
    behind = store_uri(tmp_path).replace(f"{address.host}:{address.port}", f"127.0.0.1:{made.port}")
    yield made, user.at(behind)
    made.stop()


class Working:
    """A process that serves a run; a caller can wait for its output."""

    def __init__(self, place: Place, *words: str) -> None:
        self._process = PythonProcess(
            [*MIMIR, *words, "--json"],
            cwd=place.project,
            env=dict(place.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, object]] = []
        self.stderr_lines: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def until_event(self, name: str) -> None:
        """Read its events until one of this name comes."""
        assert self._process.stdout
        for line in self._process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == name:
                return
        raise AssertionError(f"no {name}: {self.events[-1:]}")

    def until_output(self, words: str) -> str:
        """Wait until this text is on the standard error."""
        while words not in (line := self.stderr_lines.get(timeout=PATIENCE_SECONDS)):
            pass
        return line

    def end(self) -> int:
        """Wait for its end; its exit code."""
        assert self._process.stdout
        self.events += map(json.loads, self._process.stdout)
        code = self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()
        return code

    def _listen(self) -> None:
        assert self._process.stderr
        with self._process.stderr as err:
            for line in err:
                self.stderr_lines.put(line)


def assert_done(user: User, log: Path, *, in_flight: int) -> str:
    """All is completed, once, and verified; the run."""
    status = user.status()
    assert status["outcome"] == "completed"
    assert [task["attempts"] for task in status["tasks"]] == [1, 1, 1]
    run = str(status["run"])
    made = user.place.result(run)
    assert {name: made[name] for name in FILES} == FILES
    verified = user.run("verify")
    assert verified.code == 0, verified.out
    assert repeated(log) <= in_flight
    return run


def test_killed_process_is_shown_as_paused_and_resumed(user: User, log: Path):
    assert user.place.killed_after(12, *EXECUTE)

    assert user.status()["status"] == "paused"
    resumed = user.run("resume")

    assert resumed.code == 0, resumed.err
    run = assert_done(user, log, in_flight=2)
    assert f"- Run: `{run}` ([in Neo4j Browser](<http://" in user.run("report").out


def test_lost_server_is_waited_for_and_nothing_is_done_twice(
    lossy: tuple[TcpProxy, User], log: Path
):
    server, user = lossy
    work = Working(user.place, *EXECUTE)
    work.until_event("TaskCompleted")

    server.stop()
    work.until_output("does not answer; waiting for it, 5 minutes at most")
    server.start()

    work.until_output("is back")
    assert work.end() == 0
    assert work.events[-1]["outcome"] == "completed"
    assert_done(user, log, in_flight=0)


def test_lost_neo4j_server_exits_with_75_and_resume_continues(
    lossy: tuple[TcpProxy, User], log: Path
):
    server, user = lossy
    hasty = user.at(user.place.env["MIMIR_STORE"], MIMIR_NEO4J_PATIENCE_SECONDS="0.2")
    work = Working(hasty.place, *EXECUTE)
    work.until_event("TaskCompleted")

    server.stop()
    code = work.end()

    assert code == 75
    work.until_output("was lost")
    gone = user.run("resume")
    assert gone.code == 69
    assert [line.split(":")[0] for line in gone.err.splitlines()] == ["error", "why", "next"]
    server.start()
    assert user.status()["status"] == "paused"
    resumed = user.run("resume")
    assert resumed.code == 0, resumed.err
    assert_done(user, log, in_flight=2)


def test_run_of_one_store_ends_in_the_other_and_returns_unchanged(user: User, log: Path):
    server, here = user.place.env["MIMIR_STORE"], user.at("")
    assert here.place.killed_after(12, *EXECUTE)

    moved = here.run("migrate", ".mimir/mimir.db", server)

    assert moved.code == 0, moved.err
    assert user.status()["status"] == "paused"
    resumed = user.run("resume")
    assert resumed.code == 0, resumed.err
    assert_done(user, log, in_flight=2)
    # Progress on the server does not overwrite the local run; it goes into a new file.
    back = here.run("migrate", server, ".mimir/mimir.db")
    assert (back.code, "differs" in back.err) == (69, True)
    fresh = here.run("migrate", server, "back.db", "--json")
    assert (fresh.code, fresh.shape["known"]) == (0, [])
    filed = here.at("back.db")
    assert_done(filed, log, in_flight=2)
    exports = [sorted(one.run("export").out.splitlines()) for one in (user, filed)]
    assert len(exports[0]) > 50
    assert exports[0] == exports[1]


def test_question_waits_in_one_store_and_is_answered_in_the_other(user: User, tmp_path: Path):
    server = user.place.env["MIMIR_STORE"]
    asks = {"calls": [calls("ask_user", title="Which one?", text="Which?", options=["x", "y"])]}
    script = {"parts": [worker("c", asks, writes("c.txt", "c\n"), "Done."), *REST]}
    (tmp_path / "asks.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    asking = plan(step("c", tools=("write_file", "ask_user")))
    (user.place.project / "plan.md").write_text(render(asking), encoding="utf-8")
    user = user.at(server, MIMIR_MODEL=f"play:{tmp_path}/asks.yaml")

    # Given a question in the server, and a copy of its run in a file
    assert user.run(*EXECUTE).code == 75
    (asked,) = user.run("inbox", "--json").shape["questions"]  # type: ignore[misc]
    assert user.run("migrate", server, "copy.db").code == 0

    # Then each is answered and continued on its own
    for here in (user, user.at("copy.db")):
        assert here.run("answer", asked["id"], "y").code == 0
        assert here.run("answer", asked["id"], "x").code == 1
        resumed = here.run("resume")
        assert resumed.code == 0, resumed.err
        assert here.run("verify").code == 0


def test_approval_waits_in_one_store_and_is_given_in_the_other(user: User, tmp_path: Path):
    server = user.place.env["MIMIR_STORE"]
    parts = [
        {"role": "interviewer", "turns": ["## Goal\nThree files."]},
        {"role": "pm", "turns": [render(TASKS)]},
    ]
    (tmp_path / "asks.yaml").write_text(yaml.safe_dump({"parts": parts}), encoding="utf-8")
    user = user.at(server, MIMIR_MODEL=f"play:{tmp_path}/asks.yaml")

    # Given an approval in the server whose subject the user then edits, and a copy of both in a file
    assert user.run("chain", "Three files.", "--pattern", "ask").code == 75
    (asked,) = user.run("inbox", "--json").shape["questions"]  # type: ignore[misc]
    summary = user.place.project / asked["subject"]
    summary.write_text("## Goal\nThree small files.\n", encoding="utf-8")
    assert user.run("migrate", server, "copy.db").code == 0

    # Then each asks again, and continues with the approved specification
    for here in (user, user.at("copy.db")):
        assert "replaces it" in here.run("answer", asked["id"], "yes").err
        (again,) = here.run("inbox", "--json").shape["questions"]  # type: ignore[misc]
        assert here.run("answer", again["id"], "yes").code == 0
        resumed = here.run("resume")
        assert resumed.code == 0, resumed.err
        assert "Three small files." in here.run("export").out


@pytest.mark.parametrize(
    ("uri", "code", "says"),
    [
        ("bolt://anna:geheim@127.0.0.1:1", 69, "127.0.0.1:1"),
        ("bolt://anna:geheim@no.such.host.invalid:7687", 69, "no.such.host.invalid"),
        ("neo4j://", 78, "it names no host"),
        ("mysql://anna:geheim@db", 78, "no store of the kind mysql://"),
        ("WRONG_PASSWORD", 78, "refuses this user or password"),
        ("WRONG_DATABASE", 78, "has no such database"),
    ],
)
def test_wrong_store_is_refused_in_three_lines(user: User, tmp_path: Path, uri, code, says):
    address = address_of(tmp_path)
    where = f"{address.host}:{address.port}"
    who = f"{address.user}:{address.password}@" if address.user else ""
    refuses = BoltStub(refuse={"logon": "Neo.ClientError.Security.Unauthorized"})
    uri = {
        "WRONG_PASSWORD": f"bolt://anna:geheim@127.0.0.1:{refuses.port}",
        "WRONG_DATABASE": f"bolt://{who}{where}/nobodys",
    }.get(uri, uri)

    said = user.at(uri).run("execute", "plan.md", "--yes")
    refuses.close()

    assert (said.code, said.out) == (code, "plan.md: 3 tasks\n")
    lines = said.err.splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) <= 3
    assert says in said.err
    assert "geheim" not in said.err
