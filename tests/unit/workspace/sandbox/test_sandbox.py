"""Abilities of a command in the sandbox, and its limits."""

import os
import socket
from pathlib import Path

import pytest

from mimir.workspace import tree_removal
from mimir.workspace.sandbox.commands import Recipe
from mimir.workspace.sandbox.sandbox import Sandbox
from tests.unit.workspace.conftest import RECIPES, MakeSandbox, made_by, names, sh


async def test_command_runs_in_the_workspace(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "given").write_text("hello")
    ran = await sh(
        sandbox, workspace, "pwd; cat given; echo out; echo err >&2; echo made > new; exit 3"
    )
    assert ran.exit_code == 3
    assert ran.output == "/workspace\nhelloout\nerr\n"
    assert (workspace / "new").read_text() == "made\n"
    assert (ran.timed_out, ran.is_program_missing, ran.stop_reason, ran.backend) == (
        False,
        False,
        "",
        "bubblewrap",
    )


async def test_sandbox_environment_is_equal_on_every_machine(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sh(sandbox, workspace, "id -un; id -u; hostname; echo $HOME; date +%Z; umask; tty")
    assert ran.output == "mimir\n65534\nmimir\n/tmp\nUTC\n0022\nnot a tty\n"


async def test_files_of_a_command_can_be_removed_by_the_engine(
    sandbox: Sandbox, workspace: Path
) -> None:
    await sh(
        sandbox, workspace, "mkdir -p a/b; echo x > a/b/f; chmod 000 a/b/f a/b a; ln -s / root"
    )
    tree_removal.remove_tree(workspace)
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


async def test_broken_pipe_ends_a_command_as_in_a_terminal(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sandbox.run(
        ["bash", "-o", "pipefail", "-c", "yes | head -1"], workspace=workspace, seconds=20
    )
    assert (ran.exit_code, ran.output) == (141, "y\n")


# Limits.


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


async def test_home_store_and_other_workspaces_are_absent(
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


SETTINGS = """
import os
for top in ("/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/acpi", "/proc/irq", "/proc/bus", "/proc/fs"):
    for directory, _, files in os.walk(top):
        for path in [os.path.join(directory, name) for name in files] or [top]:
            try:
                os.close(os.open(path, os.O_WRONLY))
            except OSError:
                continue
            if not path.startswith(OF_THE_NAMESPACE):
                print(path)
""".replace(
    "OF_THE_NAMESPACE",
    repr(
        ("/proc/sys/net", "/proc/sys/fs/mqueue", "/proc/sys/user", "/proc/sys/kernel/ns_last_pid")
    ),
)


@pytest.mark.parametrize("recipe", RECIPES)
async def test_no_setting_of_the_kernel_can_be_opened_for_writing(
    make_sandbox: MakeSandbox, workspace: Path, recipe: Recipe
) -> None:
    sandbox = await made_by(recipe, make_sandbox)
    ran = await sandbox.run(["python", "-c", SETTINGS], workspace=workspace, seconds=20)
    assert (ran.exit_code, ran.output) == (0, "")


async def test_tmp_is_writable_and_empty_for_the_next_command(
    sandbox: Sandbox, workspace: Path
) -> None:
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


async def test_processes_of_the_machine_are_hidden(sandbox: Sandbox, workspace: Path) -> None:
    ran = await sh(sandbox, workspace, f"kill -0 {os.getpid()} 2>&1; ls -d /proc/[0-9]* | wc -l")
    assert "No such process" in ran.output
    assert int(ran.output.split()[-1]) < 8


async def test_sandboxed_command_cannot_regain_capabilities(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sh(
        sandbox,
        workspace,
        "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; mount -t tmpfs x /mnt || echo no mount; chown 1 /tmp || echo no chown",
    )
    assert "NoNewPrivs:\t1" in ran.output
    assert "CapEff:\t0000000000000000" in ran.output
    assert "no mount" in ran.output
    assert "no chown" in ran.output


FAMILIES = """
import os, socket
for family, kind in ((1, 1), (2, 1), (2, 2), (10, 1), (10, 2), (16, 3), *((number, kind) for number in (0, 3, 4, 5, 9, 17, 21, 29, 30, 31, 38, 39, 40, 41, 42, 43, 44, 45) for kind in (1, 2, 3, 5))):
    for open_one in (socket.socket, socket.socketpair):
        try:
            opened = open_one(family, kind)
        except OSError as error:
            outcome = "refused" if error.errno in (97, 95, 38) else error.strerror
        else:
            outcome = "open"
        if open_one is socket.socket or outcome == "open":
            print(family, outcome)
"""


@pytest.mark.parametrize("recipe", RECIPES)
async def test_only_local_socket_families_can_be_opened(
    make_sandbox: MakeSandbox, workspace: Path, recipe: Recipe
) -> None:
    sandbox = await made_by(recipe, make_sandbox)
    ran = await sandbox.run(["python", "-c", FAMILIES], workspace=workspace, seconds=20)
    outcomes = {tuple(line.split(" ", 1)) for line in ran.output.splitlines()}
    opened = {(family, outcome) for family, outcome in outcomes if int(family) in (1, 2, 10, 16)}
    assert opened == {("1", "open"), ("2", "open"), ("10", "open"), ("16", "open")}
    assert {outcome for _, outcome in outcomes - opened} == {"refused"}


async def test_sockets_cannot_be_opened_by_another_way(sandbox: Sandbox, workspace: Path) -> None:
    program = """
import ctypes, platform
call = ctypes.CDLL(None, use_errno=True).syscall
x32 = 0x40000000 + 41 if platform.machine() == "x86_64" else 425
for number, *words in ((425, 1, ctypes.create_string_buffer(256)), (x32, 40, 1, 0)):
    print(call(number, *words), ctypes.get_errno())
"""
    ran = await sandbox.run(["python", "-c", program], workspace=workspace, seconds=20)
    assert ran.output == "-1 38\n-1 38\n"


async def test_output_has_the_text_that_a_terminal_shows(sandbox: Sandbox, workspace: Path) -> None:
    ran = await sh(
        sandbox,
        workspace,
        "printf '\\033[32m715 passed\\033[0m\\n'; env | grep -E '^(TERM|CI)=|COLOR'; "
        "\"$SHELL\" -c 'set -o pipefail; false | true' || echo a shell with pipefail",
    )
    # Without NO_COLOR, under which the colour tests of a project fail
    shown = {"715 passed", "TERM=dumb", "CI=1", "a shell with pipefail"}
    assert shown == set(ran.output.splitlines())


async def test_flood_of_codes_keeps_the_visible_end(sandbox: Sandbox, workspace: Path) -> None:
    ran = await sh(
        sandbox,
        workspace,
        "echo begins; yes \"$(printf '\\033[31m\\033[0m')\" | head -c 100000000; echo 3 failed",
    )
    assert (ran.exit_code, ran.stop_reason) == (0, "")
    assert ran.output.startswith("begins\n")
    assert ran.output.endswith("3 failed\n")
    assert "\x1b" not in ran.output
