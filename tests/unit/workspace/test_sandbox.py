"""What a command in the sandbox can do, and what it cannot."""

import asyncio
import hashlib
import os
import socket
from pathlib import Path

import pytest

from mimir.errors import SandboxError, ToolError, WorkspaceError
from mimir.workspace import clearing
from mimir.workspace.confinement import groups, process
from mimir.workspace.confinement.commands import Recipe
from mimir.workspace.sandbox import Limits, Ran, Sandbox
from tests.unit.workspace.conftest import MakeSandbox, is_running


async def sh(sandbox: Sandbox, workspace: Path, text: str, seconds: float = 20) -> Ran:
    return await sandbox.run(["bash", "-c", text], workspace=workspace, seconds=seconds)


RECIPES = ["user", "root"] if os.geteuid() == 0 else ["user"]
"""Ways to a sandbox that this user has."""


async def made_by(recipe: Recipe, make_sandbox: MakeSandbox) -> Sandbox:
    """Return a sandbox that is built this way, whichever the probe would choose."""
    sandbox = make_sandbox()
    await sandbox.probe()
    assert sandbox._way is not None
    sandbox._way = sandbox._way[0], recipe
    return sandbox


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_command_runs_in_the_workspace(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "given").write_text("hello")
    ran = await sh(
        sandbox, workspace, "pwd; cat given; echo out; echo err >&2; echo made > new; exit 3"
    )
    assert ran.exit_code == 3
    assert ran.output == "/workspace\nhelloout\nerr\n"
    assert (workspace / "new").read_text() == "made\n"
    assert (ran.timed_out, ran.missing, ran.stopped, ran.backend) == (
        False,
        False,
        "",
        "bubblewrap",
    )


async def test_same_things_are_seen_on_every_machine(sandbox: Sandbox, workspace: Path) -> None:
    ran = await sh(sandbox, workspace, "id -un; id -u; hostname; echo $HOME; date +%Z; umask; tty")
    assert ran.output == "mimir\n65534\nmimir\n/tmp\nUTC\n0022\nnot a tty\n"


async def test_what_a_command_made_can_be_removed_by_the_engine(
    sandbox: Sandbox, workspace: Path
) -> None:
    await sh(
        sandbox, workspace, "mkdir -p a/b; echo x > a/b/f; chmod 000 a/b/f a/b a; ln -s / root"
    )
    clearing.remove(workspace)
    assert names(workspace.parent) == []


async def test_files_of_the_engine_can_be_changed_by_a_command(
    sandbox: Sandbox, workspace: Path
) -> None:
    (workspace / "d").mkdir(mode=0o700)
    (workspace / "d/f").write_text("x")
    (workspace / "d/f").chmod(0o600)
    ran = await sh(sandbox, workspace, "echo y >> d/f && mv d/f d/g && cat d/g")
    assert ran.output == "xy\n"


async def test_killed_command_ends_with_its_signal(sandbox: Sandbox, workspace: Path) -> None:
    assert (await sh(sandbox, workspace, "kill -9 $$")).exit_code == 137


async def test_pipes_break_as_they_do_in_a_terminal(sandbox: Sandbox, workspace: Path) -> None:
    ran = await sandbox.run(
        ["bash", "-o", "pipefail", "-c", "yes | head -1"], workspace=workspace, seconds=20
    )
    assert (ran.exit_code, ran.output) == (141, "y\n")


# What it cannot reach.


async def test_there_is_no_network(sandbox: Sandbox, workspace: Path) -> None:
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        program = f"""
import socket
print([name for _, name in socket.if_nameindex()])
for where in (("127.0.0.1", {tcp.getsockname()[1]}), ("192.0.2.1", 80)):
    try:
        socket.create_connection(where, 1)
        print("connected")
    except OSError as error:
        print("refused")
try:
    socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
    print("sent")
except OSError:
    print("refused")
socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {udp.getsockname()[1]}))
"""
        ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=20)
        assert ran.output == "['lo']\nrefused\nrefused\nrefused\n"
        with pytest.raises(BlockingIOError):
            udp.recv(10)


async def test_tests_can_use_loopback_of_their_own(sandbox: Sandbox, workspace: Path) -> None:
    program = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).sendall(b"hello")
print(server.accept()[0].recv(5))
"""
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=20)
    assert ran.output == "b'hello'\n"


@pytest.mark.parametrize("recipe", RECIPES)
async def test_environment_holds_nothing_of_the_engine(
    make_sandbox: MakeSandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch, recipe: Recipe
) -> None:
    sandbox = await made_by(recipe, make_sandbox)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    ran = await sh(
        sandbox, workspace, "env; cat /proc/*/environ /proc/*/cmdline 2>&1 | tr '\\0' '\\n'"
    )
    assert "secret" not in ran.output
    assert str(workspace) not in ran.output


async def test_home_store_and_other_workspaces_are_not_there(
    sandbox: Sandbox, workspace: Path, tmp_path: Path
) -> None:
    other = tmp_path / "room" / "other"
    other.mkdir()
    (other / "f").write_text("rival")
    for path in (
        other,
        Path.home() / ".gitconfig",
        Path(__file__),
        Path("/etc/shadow"),
        Path("/var/lib"),
        Path("/sys"),
    ):
        ran = await sh(sandbox, workspace, f"ls -d '{path}' 2>&1")
        assert "No such file" in ran.output, path


async def test_link_out_of_the_workspace_leads_nowhere(
    sandbox: Sandbox, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (workspace / "link").symlink_to(tmp_path / "secret")
    ran = await sh(sandbox, workspace, "cat link; echo x > link; ln -s ../../secret l2; cat l2")
    assert "secret\n" not in ran.output
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    "path", ["/usr/x", "/etc/x", "/x", "/dev/x", "/root/x", "/etc/passwd", "/proc/sys/kernel/x"]
)
async def test_nothing_outside_the_workspace_can_be_written(
    sandbox: Sandbox, workspace: Path, path: str
) -> None:
    assert (await sh(sandbox, workspace, f"echo x > {path}")).exit_code != 0


async def test_tmp_is_writable_and_gone_afterwards(sandbox: Sandbox, workspace: Path) -> None:
    assert (
        await sh(sandbox, workspace, "echo x > /tmp/x && cp /tmp/x /dev/shm && cat /var/tmp/x")
    ).output == "x\n"
    assert (await sh(sandbox, workspace, "ls /tmp/x /dev/shm/x")).exit_code == 2


async def test_read_only_workspace_can_be_read_only(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "f").write_text("x")
    ran = await sandbox.run(
        ["sh", "-c", "cat f; echo y > f || echo refused"],
        workspace=workspace,
        seconds=20,
        writable=False,
    )
    assert ran.output.startswith("x")
    assert ran.output.endswith("refused\n")
    assert (workspace / "f").read_text() == "x"


async def test_processes_of_the_machine_are_not_there(sandbox: Sandbox, workspace: Path) -> None:
    ran = await sh(sandbox, workspace, f"kill -0 {os.getpid()} 2>&1; ls -d /proc/[0-9]* | wc -l")
    assert "No such process" in ran.output
    assert int(ran.output.split()[-1]) < 8


async def test_no_right_can_be_won_back(sandbox: Sandbox, workspace: Path) -> None:
    ran = await sh(
        sandbox,
        workspace,
        "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; mount -t tmpfs x /mnt || echo no mount; chown 1 /tmp || echo no chown",
    )
    assert "NoNewPrivs:\t1" in ran.output
    assert "CapEff:\t0000000000000000" in ran.output
    assert "no mount" in ran.output
    assert "no chown" in ran.output


# How it ends.


@pytest.mark.parametrize(
    "escape",
    [
        "sleep {mark}",
        "sleep {mark} & wait",
        "setsid nohup sleep {mark} > /dev/null 2>&1 < /dev/null & (setsid setsid sleep {mark} &) & sleep {mark}",
        "trap '' TERM INT HUP; while :; do sleep {mark}; done",
    ],
)
async def test_timeout_ends_every_process(sandbox: Sandbox, workspace: Path, escape: str) -> None:
    mark = f"{100_000 + os.getpid()}.0625"
    ran = await sh(sandbox, workspace, "echo before; " + escape.format(mark=mark), seconds=0.5)
    assert (ran.timed_out, ran.exit_code, ran.stopped) == (True, None, "timeout")
    assert ran.output in ("before\n", "")
    assert not is_running(mark)


async def test_what_a_command_leaves_behind_ends_with_it(sandbox: Sandbox, workspace: Path) -> None:
    mark = f"{200_000 + os.getpid()}.0625"
    ran = await sh(sandbox, workspace, f"(setsid sleep {mark} &) ; sleep {mark} & echo done")
    assert (ran.exit_code, ran.output) == (0, "done\n")
    assert not is_running(mark)


async def test_cancelled_command_is_ended(sandbox: Sandbox, workspace: Path) -> None:
    mark = f"{300_000 + os.getpid()}.0625"
    said = asyncio.Event()
    task = asyncio.create_task(
        sandbox.run(
            ["bash", "-c", f"echo up; sleep {mark}"],
            workspace=workspace,
            seconds=60,
            on_output=lambda piece: said.set(),
        )
    )
    await said.wait()
    assert is_running(mark)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(mark)


async def test_no_descriptor_is_left_open(sandbox: Sandbox, workspace: Path) -> None:
    await sh(sandbox, workspace, "true")
    before = len(names(Path("/proc/self/fd")))
    await asyncio.gather(*(sh(sandbox, workspace, f"echo {n}") for n in range(5)))
    await sh(sandbox, workspace, "sleep 9", seconds=0.2)
    await sandbox.run(["no-such-program"], workspace=workspace, seconds=9)
    assert len(names(Path("/proc/self/fd"))) == before


# Limits.


@pytest.mark.parametrize("has_group", [True, False])
async def test_fork_bomb_is_stopped(
    make_sandbox: MakeSandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch, has_group: bool
) -> None:
    if not has_group:
        monkeypatch.setattr(groups, "make", lambda *limits: None)
    sandbox = make_sandbox(limits=Limits(processes=40))
    program = """
import os, sys, time
count = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
    except OSError as error:
        sys.exit(f"{count} {error}")
"""
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=30)
    assert ran.stopped == "processes" or "Resource temporarily unavailable" in ran.output
    assert not ran.timed_out


@pytest.mark.parametrize("has_group", [True, False])
async def test_memory_is_limited_for_all_processes_together(
    make_sandbox: MakeSandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch, has_group: bool
) -> None:
    if not has_group:
        monkeypatch.setattr(groups, "make", lambda *limits: None)
    sandbox = make_sandbox(limits=Limits(memory_bytes=120_000_000))
    program = """
import os, time
os.fork(), os.fork()
hog = b"x" * 60_000_000
time.sleep(60)
"""
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=30)
    assert (ran.stopped, ran.exit_code) == ("memory", None)


async def test_reserved_memory_is_not_used_memory(
    make_sandbox: MakeSandbox, workspace: Path
) -> None:
    sandbox = make_sandbox(limits=Limits(memory_bytes=120_000_000))
    program = "import mmap; mmap.mmap(-1, 8 << 30); print('reserved')"
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=30)
    assert ran.output == "reserved\n"


async def test_files_processor_and_tmp_are_limited(
    make_sandbox: MakeSandbox, workspace: Path
) -> None:
    sandbox = make_sandbox(limits=Limits(file_bytes=10_000, cpu_seconds=1, tmp_bytes=100_000))
    ran = await sh(sandbox, workspace, "head -c 20000 /dev/zero > big; echo $?; ulimit -c")
    assert ran.output.split()[-2:] == ["153", "0"]
    assert (workspace / "big").stat().st_size == 10_000
    ran = await sh(
        sandbox, workspace, "for n in $(seq 30); do head -c 9000 /dev/zero > /tmp/$n; done"
    )
    assert "No space left" in ran.output
    assert (await sh(sandbox, workspace, "while :; do :; done")).exit_code in (137, 152)


# What it said.


async def test_long_output_keeps_both_ends_and_says_what_is_missing(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sandbox.run(["seq", "100000"], workspace=workspace, seconds=20, output_limit=3000)
    whole = "".join(f"{n}\n" for n in range(1, 100_001)).encode()
    assert ran.output.startswith("1\n2\n")
    assert ran.output.endswith("99999\n100000\n")
    assert f"{len(whole) - 3000} bytes are left out" in ran.output
    assert len(ran.output) < 3100
    assert ran.output_bytes == len(whole)
    assert ran.output_hash == hashlib.sha256(whole).hexdigest()


async def test_short_output_is_whole_and_odd_bytes_are_marked(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sh(sandbox, workspace, "printf 'a\\377b\\303\\244'")
    assert ran.output == "a\ufffdb\u00e4"


async def test_endless_output_is_ended(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_OUTPUT_BYTES", 1_000_000)
    ran = await sh(sandbox, workspace, "yes")
    assert (ran.stopped, ran.exit_code, ran.timed_out) == ("output", None, False)


# What is not there.


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["no-such-program", "x"], "no-such-program"),
        (["/usr/bin/no-such-program"], "/usr/bin/no-such-program"),
        (["bash", "-o", "pipefail", "-c", "no-such-program | cat"], "no-such-program"),
        (["sh", "-c", "no-such-program"], "no-such-program"),
        (["env", "A=b", "no-such-program"], "no-such-program"),
        (["timeout", "9", "no-such-program"], "no-such-program"),
        (["python", "-m", "no_such_module"], "no_such_module"),
        (["python", "-X", "dev", "-m", "no_such_module.sub"], "no_such_module"),
        (["bash", "-c", "cd . && python3 -m no_such_module -q"], "no_such_module"),
    ],
)
async def test_missing_program_is_told_from_a_failing_one(
    sandbox: Sandbox, workspace: Path, argv: list[str], name: str
) -> None:
    ran = await sandbox.run(argv, workspace=workspace, seconds=20)
    assert (ran.missing, ran.missing_name) == (True, name)


@pytest.mark.parametrize(
    ("argv", "exit_code"),
    [
        (["sh", "-c", "exit 127"], 127),
        (["sh", "-c", "echo 'sh: 1: pytest: not found'"], 0),
        (["./run.sh"], 127),
        (["/workspace/run.sh"], 127),
        (["sh", "-c", "./run.sh"], 127),
        (["python", "tool.py"], 2),
        (["python", "-c", "import no_such_module"], 1),
        (["python", "-c", "import sys; sys.exit('python: No module named pytest')"], 1),
        (["./plain.txt"], 126),
    ],
)
async def test_failing_program_is_not_called_missing(
    sandbox: Sandbox, workspace: Path, argv: list[str], exit_code: int
) -> None:
    (workspace / "plain.txt").write_text("x")
    ran = await sandbox.run(argv, workspace=workspace, seconds=20)
    assert (ran.exit_code, ran.missing) == (exit_code, False)


async def test_script_without_a_first_line_runs_in_the_shell(
    sandbox: Sandbox, workspace: Path
) -> None:
    (workspace / "run.sh").write_text("echo $1\n")
    (workspace / "run.sh").chmod(0o755)
    ran = await sandbox.run(["./run.sh", "hello"], workspace=workspace, seconds=20)
    assert (ran.exit_code, ran.output) == (0, "hello\n")


@pytest.mark.parametrize("argv", [[], [""], ["a", "b\0c"], ["\ud800"]])
async def test_command_that_nobody_can_run_is_refused(
    sandbox: Sandbox, workspace: Path, argv: list[str]
) -> None:
    with pytest.raises(ToolError):
        await sandbox.run(argv, workspace=workspace, seconds=20)


async def test_words_and_names_of_any_bytes_arrive(sandbox: Sandbox, tmp_path: Path) -> None:
    where = tmp_path / "a b\n'c\""
    where.mkdir()
    word = os.fsdecode(b"\xff\n '")
    ran = await sandbox.run(["printf", "%s|", word, "", "ü"], workspace=where, seconds=20)
    assert ran.output == "\ufffd\n '||ü|"


async def test_lost_workspace_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="is gone"):
        await sandbox.run(["true"], workspace=tmp_path / "gone", seconds=20)


async def test_further_file_is_shown_read_only_though_it_is_closed(
    sandbox: Sandbox, workspace: Path, tmp_path: Path
) -> None:
    answer = tmp_path / "answer.md"
    answer.write_text("the answer")
    answer.chmod(0o600)
    (tmp_path / "more").mkdir()
    (tmp_path / "more/f").write_text("more")
    ran = await sandbox.run(
        ["sh", "-c", "cat $MIMIR_ANSWER /opt/more/f; echo x > $MIMIR_ANSWER || echo refused"],
        workspace=workspace,
        seconds=20,
        extra_ro={"/answers/answer.md": answer, "/opt/more": tmp_path / "more"},
        env={"MIMIR_ANSWER": "/answers/answer.md"},
    )
    assert ran.output.startswith("the answermore")
    assert ran.output.endswith("refused\n")
    assert answer.read_text() == "the answer"


# When there is none.


async def test_probe_runs_a_command(sandbox: Sandbox) -> None:
    report = await sandbox.probe()
    assert (report.ok, report.backend, report.problem) == (True, "bubblewrap", "")


async def test_without_a_sandbox_nothing_is_run(make_sandbox: MakeSandbox, workspace: Path) -> None:
    sandbox = make_sandbox(programs=[])
    report = await sandbox.probe()
    assert not report.ok
    assert "not installed" in report.problem
    assert "apt install bubblewrap" in report.fix
    with pytest.raises(SandboxError) as refusal:
        await sandbox.run(["touch", str(workspace / "ran")], workspace=workspace, seconds=20)
    assert refusal.value.next_step == report.fix
    assert refusal.value.exit_code == 69
    assert names(workspace) == []


def fake(tmp_path: Path, text: str) -> Path:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


async def test_sandbox_that_cannot_be_built_is_explained(
    make_sandbox: MakeSandbox, tmp_path: Path, workspace: Path
) -> None:
    broken = fake(tmp_path, "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    sandbox = make_sandbox(programs=[broken])
    report = await sandbox.probe()
    assert not report.ok
    assert "setting up uid map: Permission denied" in report.problem
    assert "sandbox" in report.fix
    with pytest.raises(SandboxError):
        await sandbox.run(["true"], workspace=workspace, seconds=20)


async def test_second_program_is_tried_if_the_first_cannot(
    make_sandbox: MakeSandbox, sandbox: Sandbox, tmp_path: Path, workspace: Path
) -> None:
    await sandbox.probe()
    assert sandbox._way is not None
    both = [fake(tmp_path, "exit 1"), tmp_path / "none", sandbox._way[0]]
    assert (
        await make_sandbox(programs=both).run(["true"], workspace=workspace, seconds=20)
    ).exit_code == 0


@pytest.mark.parametrize("recipe", RECIPES)
async def test_each_way_to_a_sandbox_can_use_any_workspace(
    make_sandbox: MakeSandbox, workspace: Path, recipe: Recipe
) -> None:
    one = await made_by(recipe, make_sandbox)
    if os.geteuid() == 0:
        os.chown(workspace, 65534, 65534)
    (workspace / "given").write_text("x")
    ran = await sh(one, workspace, "id -u; echo y >> given; echo z > new; cat given new")
    assert ran.output == "65534\nxy\nz\n"


async def test_sandbox_that_breaks_in_mid_run_is_no_failed_command(
    make_sandbox: MakeSandbox, sandbox: Sandbox, tmp_path: Path, workspace: Path
) -> None:
    await sandbox.probe()
    assert sandbox._way is not None
    program = tmp_path / "bwrap"
    program.symlink_to(sandbox._way[0])
    breaking = make_sandbox(programs=[program])
    assert (await breaking.run(["true"], workspace=workspace, seconds=20)).exit_code == 0
    program.unlink()
    with pytest.raises(SandboxError, match="cannot be started"):
        await breaking.run(["true"], workspace=workspace, seconds=20)
    fake(tmp_path, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    with pytest.raises(SandboxError, match="No permissions to create new namespace"):
        await breaking.run(["true"], workspace=workspace, seconds=20)


async def test_command_that_says_what_bubblewrap_would_say_is_a_failed_command(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sh(
        sandbox, workspace, "echo 'bwrap: execvp x: No such file or directory' >&2; exit 1"
    )
    assert ran.exit_code == 1


async def test_mode_none_confines_nothing_and_says_so(
    make_sandbox: MakeSandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    sandbox = make_sandbox(mode="none", programs=[])
    assert await sandbox.probe() == type(await sandbox.probe())(ok=True, backend="none")
    assert sandbox.owner is None
    mark = f"{400_000 + os.getpid()}.0625"
    (tmp_path / "answer").write_text("the answer")
    ran = await sandbox.run(
        [
            "bash",
            "-c",
            f"pwd; env; cat $MIMIR_ANSWER; git rev-parse --show-toplevel; sleep {mark} & exit 4",
        ],
        workspace=workspace,
        seconds=20,
        extra_ro={"/answer": tmp_path / "answer"},
        env={"MIMIR_ANSWER": "/answer"},
    )
    assert (ran.exit_code, ran.backend) == (4, "none")
    assert ran.output.startswith("/workspace\n")
    assert "the answer" in ran.output
    assert "secret" not in ran.output
    assert "not a git repository" in ran.output
    assert not is_running(mark)
    assert (await sandbox.run(["no-such"], workspace=workspace, seconds=20)).missing
    ended = await sandbox.run(["sleep", mark], workspace=workspace, seconds=0.3)
    assert ended.timed_out
    assert not is_running(mark)
