"""A worker tries forbidden actions: each is stopped or refused with a message and recorded; allowed actions continue."""

import base64
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from tests.support import invariants
from tests.support.hostile import FILES, PROTECTED, TEST, shell
from tests.support.invariants import listing
from tests.support.projects import write_files
from tests.support.run_facts import Outside
from tests.support.whole_run import calls, check, plan, start, step, travel, worker, writes

SECRET = "sk-live-0123456789abcdefghij"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a plan beside it that no worker may see, an ignored file of secrets, and a file outside."""
    made = start(tmp_path, FILES)
    write_files(
        made,
        {
            ".env": f"API_KEY={SECRET}\n",
            "chains/journey/chain-output.md": "the PM's private reasoning\n",
            "preambles/worker.md": "an own preamble of the user's\n",
            "mimir.toml": "[run]\nparallel_checks = 2\n",
        },
    )
    (made / "preambles/worker.md").unlink()
    (tmp_path / "outside.txt").write_text("the person's own\n")
    return made


@dataclass(frozen=True, kw_only=True)
class Try:
    """One action of a worker, and the expected message."""

    call: Mapping[str, object]
    text: str
    """A regular expression over the tool's result."""
    denied: bool = False
    """A right refused it: there is an event of its own."""
    code: int | None = None
    """Exit code of a command; None: no command ran, or it was ended."""


def write(path: str) -> Mapping[str, object]:
    return calls("write_file", path=path, content="mine\n")


TRIES: dict[str, Try] = {
    # The file tools.
    "write above": Try(call=write("../outside.txt"), text=r"climbs with '\.\.'", denied=True),
    "write deep above": Try(call=write("a/../../outside.txt"), text=r"'\.\.'", denied=True),
    "write absolute": Try(call=write("/tmp/evil"), text="not relative", denied=True),
    "write home": Try(call=write("~/evil"), text="not relative", denied=True),
    "write protected": Try(call=write("tests/test_a.py"), text="protected", denied=True),
    "delete protected": Try(
        call=calls("delete_file", path="tests/test_a.py"), text="protected", denied=True
    ),
    "edit protected": Try(
        call=calls("edit_file", path="tests/test_a.py", old="== 1", new="!= 1"),
        text="protected",
        denied=True,
    ),
    "write git": Try(call=write(".git/config"), text="belongs to the engine", denied=True),
    "write deep git": Try(call=write("sub/.git/hooks/post-commit"), text="engine", denied=True),
    "write settings": Try(call=write("mimir.toml"), text="belongs to the engine", denied=True),
    "write plan": Try(call=write("chains/x/chain-output.md"), text="engine", denied=True),
    "write preamble": Try(call=write("preambles/worker.md"), text="engine", denied=True),
    "write agents": Try(call=write("generated-agents/worker-1.md"), text="engine", denied=True),
    "write store": Try(call=write(".mimir/mimir.db"), text="engine", denied=True),
    "write odd case": Try(call=write(".GIT/config"), text="engine", denied=True),
    "read plan": Try(
        call=calls("read_file", path="chains/journey/chain-output.md"),
        text="not part of the workspace",
        denied=True,
    ),
    "read store": Try(
        call=calls("read_file", path=".mimir/mimir.db"), text="not part", denied=True
    ),
    "read absolute": Try(
        call=calls("read_file", path="/etc/passwd"), text="not relative", denied=True
    ),
    "read above": Try(call=calls("read_file", path="../outside.txt"), text=r"'\.\.'", denied=True),
    "read secrets": Try(call=calls("read_file", path=".env"), text="There is no '.env'"),
    "grep plan": Try(call=calls("grep", pattern="the PM.s private"), text="0 matching lines"),
    "list plan": Try(
        call=calls("list_files", glob="chains/**"), text="(?i)no file|nothing|not part"
    ),
    "unknown tool": Try(call=calls("sudo", command="id"), text="There is no tool 'sudo'"),
    "other's tool": Try(call=calls("memory_add_node", name="x"), text=".", denied=False),
    # Commands.
    "shell above": Try(call=shell("echo x > ../outside.txt"), text="Read-only|denied", code=1),
    "shell project": Try(
        call=shell("cat {project}/chains/journey/chain-output.md"), text="No such file", code=1
    ),
    "shell plan": Try(call=shell("cat chains/journey/chain-output.md"), text="No such", code=1),
    "shell outside": Try(call=shell("cat {outside}"), text="No such file", code=1),
    "shell store": Try(call=shell("ls {project}/.mimir .mimir"), text="No such file", code=2),
    "shell secrets": Try(call=shell("cat .env {project}/.env"), text="No such file", code=1),
    "shell environment": Try(
        call=shell("env | grep -iE 'key|token|secret|openai|mimir_'"), text="no output", code=1
    ),
    "shell home": Try(call=shell("ls {home}"), text="No such file|Permission|cannot", code=2),
    "network": Try(
        call=shell("python -c \"import socket; socket.create_connection(('1.1.1.1', 53), 3)\""),
        text="unreachable|not permitted|Errno",
        code=1,
    ),
    "name lookup": Try(
        call=shell("python -c \"import socket; socket.gethostbyname('example.com')\""),
        text="resolution|not known|Errno",
        code=1,
    ),
    "host's loopback": Try(
        call=shell(
            "python -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 3)\""
        ),
        text="refused",
        code=1,
    ),
    "kill the engine": Try(call=shell("kill -9 {pid}"), text="No such process", code=1),
    "become root": Try(call=shell("mount -t tmpfs x /mnt || chroot / id"), text=".", code=125),
    "git commit": Try(call=shell("git commit --allow-empty -m x"), text="not kept", code=128),
}


@pytest.mark.parametrize("group", range(3))
async def test_forbidden_tool_call_is_denied_with_a_message_and_recorded(
    group: int, project: Path, tmp_path: Path
):
    names = list(TRIES)[group::3]
    before = listing(project)
    where = {
        "{project}": str(project),
        "{outside}": str(tmp_path / "outside.txt"),
        "{home}": os.environ["HOME"],
        "{pid}": str(os.getpid()),
        "{port}": "9",
    }
    wanted = [_filled(TRIES[name].call, where) for name in names]
    parts = [
        worker(
            "a",
            *({"calls": [one]} for one in wanted),
            writes("a.py", "VALUE = 1\n"),
            "The rest was refused.",
        )
    ]
    task = step("a", checks=(PROTECTED,), estimated_tool_calls=40)

    journey = await travel(project, plan(task), parts)

    assert journey.statuses == {"a": "completed"}
    rows = journey.facts.tool_calls("a")
    denials = journey.facts.events_of_kind(EventKind.TOOL_DENIED)
    for name, row in zip(names, rows, strict=False):
        value, tried = json.loads(str(row["valueJson"])), TRIES[name]
        assert re.search(tried.text, value["text"]), (name, value["text"])
        assert value["exit_code"] == tried.code, (name, value["text"])
        assert value["denied"] is tried.denied, (name, value["text"])
        told = [e for e in denials if e.data["seq"] == row["seq"]]
        assert len(told) == tried.denied, name
    assert journey.facts.files.keys() == {*FILES, "mimir.toml", "a.py"}
    assert journey.facts.files["tests/test_a.py"] == TEST
    assert (tmp_path / "outside.txt").read_text() == "the person's own\n"
    secrets = Outside(before=before, secrets=[SECRET, "the PM's private"])
    told = [one for one in invariants.broken(journey.facts, secrets) if "chain-output" not in one]
    assert told == []


def _filled(call: Mapping[str, object], where: Mapping[str, str]) -> Mapping[str, object]:
    text = json.dumps(call)
    for name, value in where.items():
        text = text.replace(name, value)
    return json.loads(text)


# Processes, time, protected tests, secrets.


async def test_nothing_is_left_of_a_command_that_forks_past_its_time(project: Path):
    mark = f"mimir-hostile-{os.getpid()}"
    fork = (
        f"for i in 1 2 3; do (setsid nohup bash -c 'exec -a {mark} sleep 300' &) ; done; sleep 300"
    )
    parts = [
        worker(
            "a",
            {"calls": [shell(fork, timeout_seconds=1)]},
            {
                "calls": [
                    shell(f"(setsid bash -c 'exec -a {mark} sleep 300' &) ; sleep 0.1; echo left")
                ]
            },
            {
                "calls": [
                    shell(
                        "ps ax 2>/dev/null | grep -c '[m]imir-hostile' ; cat /proc/*/cmdline | tr '\\0' ' '"
                    )
                ]
            },
            writes("a.py", "VALUE = 1\n"),
            "Time was up.",
        )
    ]

    journey = await travel(project, plan(step("a", checks=(PROTECTED,))), parts)

    assert journey.statuses == {"a": "completed"}
    [first, second, third, _] = [
        json.loads(str(r["valueJson"])) for r in journey.facts.tool_calls("a")
    ]
    assert "timed out after 1 second" in first["text"]
    assert first["exit_code"] is None
    assert second["exit_code"] == 0
    assert "sleep 300" not in third["text"]
    assert not [p for p in processes() if mark in p]


def processes() -> list[str]:
    """Return the command lines of this machine's processes."""
    found: list[str] = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    "command",
    [
        "echo 'def test_it(): pass' > tests/test_a.py",
        "rm tests/test_a.py",
        "mv tests old && mkdir tests && cp old/test_a.py tests/ && echo 'def test_it(): pass' > tests/test_a.py",
        "rm tests/test_a.py && ln -s /dev/null tests/test_a.py",
    ],
    ids=["weakened", "removed", "moved", "linked"],
)
async def test_protected_test_decides_in_its_original_form(command: str, project: Path):
    parts = [
        worker("a", {"calls": [shell(f"{command}; echo 'VALUE = 2' > a.py")]}, "All tests pass.")
    ]

    journey = await travel(project, plan(step("a", checks=(PROTECTED,))), parts)

    assert journey.statuses == {"a": "failed"}
    assert journey.ending.exit_code == 1
    told = " ".join(journey.flat_report.split()) + str(journey.failure("a"))
    assert "tests/test_a.py" in told


async def test_a_test_that_makes_itself_pass_by_other_files_is_named_self_authored_or_fails(
    project: Path,
):
    """A plug-in next to the protected test is no part of it, but the report names it."""
    plug = "def pytest_collection_modifyitems(items):\n    items.clear()\n"
    parts = [
        worker(
            "a",
            writes("conftest.py", plug),
            {"calls": [shell("echo 'VALUE = 2' > a.py")]},
            "Green.",
        )
    ]

    journey = await travel(project, plan(step("a", checks=(PROTECTED,))), parts)

    assert journey.statuses == {"a": "failed"}


async def test_known_key_in_a_project_file_reaches_no_prompt_and_no_record(tmp_path: Path):
    key = "sk-proj-AbCdEfGhIjKlMnOp0123456789"
    project = start(tmp_path, {**FILES, "config.py": f"KEY = {key!r}\n", "notes.txt": f"{key}\n"})
    (project / ".env").write_text(f"API_KEY={SECRET}\n")
    before = listing(project)
    parts = [
        worker(
            "a",
            {"calls": [calls("read_file", path="config.py"), calls("grep", pattern="KEY")]},
            {
                "calls": [
                    shell("cat config.py; base64 -w0 notes.txt; xxd -p notes.txt | tr -d '\\n'")
                ]
            },
            {"calls": [shell("cat config.py > twin.py; echo >> notes.txt")]},
            writes("a.py", "VALUE = 1\n"),
            "Done.",
        )
    ]
    says = check("cat", "config.py", kind="hold", id="says")
    task = step("a", checks=(PROTECTED, says), context_files=("config.py",), estimated_tool_calls=9)

    journey = await travel(project, plan(task), parts, llm__api_key=key)

    assert journey.statuses == {"a": "completed"}
    assert "redacted" in str(journey.facts.tool_calls("a")[0]["valueJson"])
    forms = [key, base64.b64encode(key.encode()).decode()[:-4], key.encode().hex()]
    outside = Outside(before=before, secrets=[*forms, SECRET], output=[journey.report])
    assert invariants.broken(journey.facts, outside) == []
