"""Canaries in each place of secrets, in runs that try to carry them out: mimir writes, prints or passes on none."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.killed_processes import Place, environment
from tests.support.projects import make_project
from tests.support.script_server import PlayServer
from tests.support.secret_canaries import CANARIES, PRIVATE_KEY, command_lines, hits, written
from tests.support.trust_sizes import Cases, sample
from tests.support.whole_run import (
    PREAMBLE,
    REST,
    Part,
    calls,
    check,
    plan,
    qc,
    shell,
    step,
    worker,
    writes,
    wrote,
)

KEY = CANARIES["key"]
DONE = "a.txt is written."
WORK = writes("a.txt", "a\n")
LONG_PLAN = render(plan(step("a", max_retries=1), title="Canaries"))
ENCODED = " ".join(
    (
        KEY,
        base64.b64encode(KEY.encode()).decode(),
        KEY.encode().hex(),
        quote(CANARIES["token"], safe=""),
    )
)
"""Known values in forms that a model could choose to hide them."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One way in which a secret could get out."""

    parts: Sequence[Part] = ()
    words: Sequence[Sequence[str]] = (("execute", "plan.md", "--yes"),)
    codes: Sequence[int] = (0,)
    environ: Mapping[str, str] = field(default_factory=dict)
    plan: str = LONG_PLAN


def does(*turns: object, task: str = "a") -> Scenario:
    """Return the scenario of a worker that does something before its work."""
    return Scenario(parts=[worker(task, *turns, WORK, DONE)])  # type: ignore[arg-type]


def answering_scenario(text: str) -> Scenario:
    return Scenario(parts=[worker("a", WORK, {"text": f"{DONE} {text}"})])


CHECK = check("python", "told.py", kind="hold")
TOLD = render(plan(step("a", checks=(CHECK,)), title="Canaries"))
ECHO = {
    "verdict": {"auto": "fail", "issues": [ENCODED], "requiredFixes": [ENCODED]},
    "repeat": "forever",
}
FAULTY = {"fault": {"name": "server_error", "times": 99}, "text": "x"}

SCENARIOS: Mapping[str, Scenario] = {
    "a command prints its environment": does(shell("env; cat /proc/*/environ; set")),
    "a command prints the .env": does(shell("cat .env ../.env; cat {project}/.env")),
    "a file tool reads the .env": does({"calls": [calls("read_file", path=".env")]}),
    "a file tool reads a private key": does({"calls": [calls("read_file", path="keys/id_ed25519")]}),
    "a command prints a private key": does(shell("cat keys/id_ed25519; tail -n 2 keys/id_ed25519")),
    "a file holds the key that is in use": does({"calls": [calls("read_file", path="config.ini")]}, shell("cat config.ini; base64 -w0 config.ini; echo; xxd -p config.ini || od -An -tx1 config.ini | tr -d ' \\n'")),
    "a search finds the key letter by letter": does({"calls": [calls("grep", pattern="key = sk-canary-key-0.*")]}, {"calls": [calls("grep", pattern="canary")]}),
    "a command ends with a traceback": does(shell("python -c \"import configparser as c; p = c.ConfigParser(); p.read('config.ini'); raise SystemExit(1/0 if p['a']['key'] else 1)\"; python told.py")),
    "a check prints the key": Scenario(parts=[wrote("a")], plan=TOLD, codes=(0, 1)),
    "the worker's answer says it": answering_scenario(ENCODED),
    "the worker's call holds it": Scenario(parts=[worker("a", writes("b.txt", ENCODED), shell(f"echo '{ENCODED}' > c.txt"), WORK, DONE)]),
    "the judge says it": Scenario(parts=[wrote("a"), qc("a", ECHO)], codes=(1,)),
    "the prose says it": Scenario(parts=[wrote("a"), {"role": "*_reporter", "turns": [{"text": ENCODED, "repeat": "forever"}]}]),
    "a preamble says it": Scenario(parts=[wrote("a"), {"role": "agentinator", "turns": [{"text": f"{PREAMBLE}\n{ENCODED}", "repeat": "forever"}]}]),
    "the plan says it": Scenario(parts=[{"role": "pm", "turns": [{"text": LONG_PLAN.replace("Write a.txt.", f"Use {ENCODED}."), "repeat": "forever"}]}], words=[("chain", "Write one file"), ("status", "--json")]),
    "the endpoint echoes a wrong key": Scenario(words=[("execute", "plan.md", "--yes"), ("execute", "plan.md", "--yes", "--debug"), ("resume",)], codes=(78,), environ={"PLAY_KEY": "another"}),
    "the endpoint fails": Scenario(parts=[worker("a", FAULTY)], words=[("execute", "plan.md", "--yes", "--debug"), ("status",), ("report",)], codes=(75,)),
    "the store's password is wrong": Scenario(words=[("execute", "plan.md", "--yes", "--store", "neo4j://user:" + quote(CANARIES["password"], safe="") + "@127.0.0.1:9"), ("doctor", "--store", "neo4j://127.0.0.1:9", "--debug")], codes=(69, 1)),
    "an address holds a password": Scenario(words=[("execute", "plan.md", "--yes"), ("doctor",)], codes=(78,), environ={"OPENAI_BASE_URL": "http://u:" + quote(CANARIES["password"], safe="") + "@127.0.0.1:9/v1"}),
    "everything is looked at afterwards": Scenario(parts=[worker("a", WORK, {"text": f"{DONE} {ENCODED}"})], words=[("execute", "plan.md", "--yes", "--json"), ("status",), ("status", "--json"), ("report",), ("report", "--json"), ("verify",), ("doctor",), ("check", "plan.md", "--json")]),
}  # fmt: skip


@pytest.fixture
def settle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Desk]:
    """Make a project full of secrets, and a user with all keys set."""

    def made(name: str) -> Desk:
        project = make_project(tmp_path / name, FILES)
        desk = Desk(project, monkeypatch, capsys)
        desk.write(".env", f"DATABASE_PASSWORD={CANARIES['dotenv']}\n")
        own = tmp_path / "own.toml"
        own.write_text(f'[llm.headers]\n"X-Api-Key" = "{CANARIES["header"]}"\n')
        desk.environ(
            GITHUB_TOKEN=CANARIES["token"],
            MIMIR_NEO4J__PASSWORD=CANARIES["password"],
            MIMIR_CONFIG=own,
            MIMIR_LLM__TRIES=2,
            MIMIR_LLM__RETRY_SECONDS=1,
        )
        return desk

    return made


FILES = {
    ".gitignore": ".env\n__pycache__/\n",
    "README.md": "# A project\n",
    "config.ini": f"[a]\nkey = {KEY}\n",
    "keys/id_ed25519": PRIVATE_KEY,
    "told.py": "print(open('config.ini').read())\n",
}
OF_THE_PROJECT = ("key", "private")
"""Canaries in committed files: workspaces and the history of commits hold them, as the user's repository does."""


class Watching(PlayServer):
    """Looks at every process of the machine whenever it is asked something."""

    seen: Mapping[str, bytes] = {}

    async def _completion(self, *given: object) -> bool:
        self.seen = {**self.seen, **command_lines()}
        return await super()._completion(*given)  # type: ignore[arg-type]


def search(project: Path, said: Sequence[str], seen: Mapping[str, bytes]) -> list[str]:
    """Look everywhere."""
    files = written(project)
    history = {name: data for name, data in files.items() if name.startswith(".mimir/work/")}
    rest = {name: data for name, data in files.items() if name not in history}
    output = {f"output {n}": text.encode() for n, text in enumerate(said)}
    secret = tuple(name for name in CANARIES if name not in OF_THE_PROJECT)
    return hits({**rest, **output, **seen}) + hits(history, secret)


@pytest.mark.parametrize("name", sample(list(SCENARIOS), 3))
def test_no_canary_leaves_a_run(name: str, cases: Cases, settle: Callable[[str], Desk]):
    scenario = SCENARIOS[name]
    desk = settle("project")
    desk.write("plan.md", scenario.plan)
    play = {"parts": [*scenario.parts, wrote("a"), *REST]}
    with Watching(play, key=scenario.environ.get("PLAY_KEY", "")) as server, cases.case(name):
        desk.ask(server)
        desk.environ(
            OPENAI_API_KEY=KEY, **{k: v for k, v in scenario.environ.items() if k != "PLAY_KEY"}
        )
        told = [desk.type(*words) for words in scenario.words]
        assert told[0].code in scenario.codes, told[0].out + told[0].err
        if server.requests:
            assert server.requests[0].headers["authorization"].endswith(KEY)
            assert server.requests[0].headers["x-api-key"] == CANARIES["header"]
        said = [text for one in told for text in (one.out, one.err)]
        assert search(desk.project, said, server.seen) == []


def test_the_search_finds_every_form(cases: Cases):
    import gzip

    for name, value in CANARIES.items():
        raw = value.encode()
        for form, data in {
            "raw": b"x" + raw + b"y",
            "base64": base64.b64encode(b"ab" + raw + b"c"),
            "hex": raw.hex().encode(),
            "url": quote(value, safe="").encode(),
            "gzip": gzip.compress(b"many words before " + raw),
        }.items():
            with cases.case((name, form)):
                assert hits({"here": data}) != []


@pytest.mark.parametrize("after", sample([3, 6, 9, 12], 1))
def test_no_canary_is_left_by_a_run_that_is_killed(after: int, cases: Cases, tmp_path: Path):
    project = make_project(tmp_path / "project", FILES)
    (project / "plan.md").write_text(LONG_PLAN)
    (project / ".env").write_text(f"PASSWORD={CANARIES['dotenv']}\n")
    script = does(
        shell("env; cat config.ini keys/id_ed25519 .env"),
        {"calls": [calls("read_file", path="config.ini")]},
    )
    with Watching({"parts": [*script.parts, *REST]}) as server, cases.case(f"killed after {after}"):
        env = environment(server.url, tmp_path) | {
            "OPENAI_API_KEY": KEY,
            "GITHUB_TOKEN": CANARIES["token"],
            "MIMIR_NEO4J__PASSWORD": CANARIES["password"],
        }
        place = Place(project=project, env=env)
        place.killed_after(after, "execute", "plan.md", "--yes")
        assert search(project, [], server.seen) == []
        resumed = place.run("resume", "--debug")
        assert resumed.returncode in (0, 2), resumed.stderr
        assert search(project, [resumed.stdout, resumed.stderr], server.seen) == []
