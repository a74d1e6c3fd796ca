"""Programs of agents that fail, lie or attack: a true outcome, no process left, no byte outside of the workspace."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimir.attempts.program.journaled_program import ProgramOutcome, ProgramStart, judge_exit
from mimir.bootstrap.agents.programs import ProgramEnvironment, SandboxedPrograms
from mimir.bootstrap.clock import SystemClock
from mimir.domain.program import PinnedProgram, ProgramPreset
from mimir.workspace.sandbox.sandbox import Sandbox, SandboxConfig

KEY = "sk-canary-0123456789abcdef"
HEAD = """#!/usr/bin/python3
import json, os, signal, socket, subprocess, sys, time
def say(**more):
    print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Done.",
        "usage": {"input_tokens": 1, "output_tokens": 1}, **more}), flush=True)
def stay():
    return subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()", sys.argv[1]], start_new_session=True)
def attempt(work):
    try:
        return str(work())
    except OSError as error:
        return f"refused {error.errno}"
"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A machine with a home, a store and a workspace."""

    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    def listing(self) -> dict[str, tuple[int, bytes]]:
        """Return every file outside of the workspace."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        outside = (path for path in found if not path.is_relative_to(self.workspace))
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes())
            for path in outside
            if path.parts[len(self.root.parts)] != "scratch"
        }

    async def run(
        self, text: str, *, seconds: float = 60, network: bool = False, writable: bool = False
    ) -> ProgramOutcome:
        """Run a program that behaves in this way, and check the remaining processes and files."""
        place = self.root / "programs" / "agent-program"
        place.write_text(HEAD + text, encoding="utf-8")
        place.chmod(place.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        before = self.listing()
        token = f"mimir-{self.root.name}"
        preset = ProgramPreset(
            name="stand-in",
            command=("agent-program", token),
            output="claude",
            environment=("STAND_IN_KEY",),
            network=network,
            home=(".stand-in",),
            home_writable=(".own",) if writable else (),
        )
        program = PinnedProgram(preset=preset)
        environment = ProgramEnvironment(
            home=self.root / "home",
            path=str(place.parent),
            variables={"STAND_IN_KEY": KEY, "MIMIR_STORE": "x", "OTHER_KEY": KEY},
        )
        sandbox = Sandbox(SandboxConfig(), scratch=self.root / "scratch", clock=SystemClock())
        programs = SandboxedPrograms(
            sandbox, _no_view, self.root / "project", environment, grace_seconds=0.3
        )
        call = ProgramStart(
            program=program, argv=preset.command, stdin="Do it.", seconds=seconds, tree=""
        )
        ended = await programs.launch(call, self.workspace, "")
        assert _processes_with(token) == []
        if not writable:
            assert self.listing() == before
        return judge_exit(program, ended)


async def _no_view(_: str) -> Path:
    raise AssertionError("no commit is shown")


def _processes_with(token: str) -> list[str]:
    found: list[str] = []
    for number in os.listdir("/proc"):  # noqa: PTH208  names alone
        try:
            words = Path(f"/proc/{number}/cmdline").read_bytes()
        except OSError:
            continue
        if number.isdecimal() and int(number) != os.getpid() and token.encode() in words:
            found.append(number)
    return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    for path, text in {
        "home/.ssh/id_rsa": KEY,
        "home/.stand-in/settings.json": "mine",
        "home/.own/state": "mine",
        "project/.mimir/mimir.db": KEY,
        "workspace/a.txt": "a",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    for name in ("programs", "scratch"):
        (tmp_path / name).mkdir()
    return Site(root=tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("say(is_error=True, result='API Error')", "reports an error: API Error"),
        ("say(); sys.exit(3)", "exit code 3"),
        ("print('I am done.')", "no whole JSON"),
        ('sys.stdout.write(\'{"type": "result", "is_er\')', "no whole JSON"),
        ("pass", "no whole JSON"),
        # A login prompt: standard input holds the task and ends, and there is no terminal.
        ("sys.stdin.read(); open('/dev/tty').read()", "exit code 1"),
        ("sys.stdin.read(); print('Login: ' + repr(sys.stdin.readline()))", "no whole JSON"),
        (
            "line = b'x' * 99_999 + b'\\n'\nwhile True: os.write(1, line)",
            "printed more than 10,000,000 bytes",
        ),
        ("[stay() for _ in range(5)]; say(is_error=True)", "reports an error"),
        ("os.execv('/nowhere', ['x'])", "exit code 1"),
    ],
)
async def test_program_without_success_is_none(text: str, problem: str, site: Site) -> None:
    outcome = await site.run(text)
    assert problem in outcome.problem


async def test_child_does_not_outlive_its_program(site: Site) -> None:
    outcome = await site.run("[stay() for _ in range(5)]; say()")
    assert (outcome.problem, outcome.answer) == ("", "Done.")


async def test_program_that_ignores_sigterm_is_killed_and_its_changes_stay(site: Site) -> None:
    text = """
def asked(*_): open("asked", "w").write("yes")
signal.signal(signal.SIGTERM, asked)
if os.fork() == 0: signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("work", "w").write("half")
while True: signal.pause()
"""
    outcome = await site.run(text, seconds=3)
    assert outcome.stop == "timeout"
    assert "time limit" in outcome.problem
    assert (site.workspace / "work").read_text() == "half"
    assert (site.workspace / "asked").read_text() == "yes"


async def test_refused_permissions_of_a_success_are_returned(site: Site) -> None:
    outcome = await site.run("say(permission_denials=[{'tool_name': 'Bash'}])")
    assert (outcome.problem, outcome.denials) == ("", ("Bash",))


async def test_program_sees_its_profile_and_nothing_else(site: Site) -> None:
    outcome = await site.run(f"""
home, root = os.environ["HOME"], {str(site.root)!r}
seen = {{
    "key": attempt(lambda: open(root + "/home/.ssh/id_rsa").read()),
    "own ssh": attempt(lambda: os.listdir(home + "/.ssh")),
    "store": attempt(lambda: open(root + "/project/.mimir/mimir.db").read()),
    "profile": attempt(lambda: open(home + "/.stand-in/settings.json").read()),
    "change of it": attempt(lambda: open(home + "/.stand-in/settings.json", "w").write("theirs")),
    "root": attempt(lambda: open(root + "/new", "w")),
    "network": attempt(lambda: socket.create_connection(("192.0.2.1", 80), 1)),
    "variables": sorted(n for n in os.environ if "KEY" in n or "MIMIR" in n),
}}
open("inside", "w").write("yes")
say(structured_output=seen)
""")
    for word in ("canary", "theirs"):
        assert word not in outcome.answer
    assert '"profile": "mine"' in outcome.answer
    assert '"variables": ["STAND_IN_KEY"]' in outcome.answer
    assert '"network": "refused' in outcome.answer
    assert (site.workspace / "inside").exists()


async def test_writable_paths_and_network_are_opened_by_name(site: Site) -> None:
    outcome = await site.run(
        """
open(os.environ["HOME"] + "/.own/state", "w").write("theirs")
say(result=" ".join(name for _, name in socket.if_nameindex()))
""",
        network=True,
        writable=True,
    )
    assert outcome.problem == ""
    assert set(outcome.answer.split()) == {name for _, name in __import__("socket").if_nameindex()}
    assert (site.root / "home/.own/state").read_text() == "theirs"
