"""Programs that are not there, and a sandbox that is not there."""

import asyncio
import os
from pathlib import Path

import pytest

from mimir.errors import SandboxError, ToolError, WorkspaceError
from mimir.workspace.sandbox.commands import Recipe
from mimir.workspace.sandbox.sandbox import Sandbox
from tests.unit.workspace.conftest import RECIPES, MakeSandbox, is_running, made_by, names, sh


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
async def test_missing_program_differs_from_a_failing_one(
    sandbox: Sandbox, workspace: Path, argv: list[str], name: str
) -> None:
    ran = await sandbox.run(argv, workspace=workspace, seconds=20)
    assert (ran.is_program_missing, ran.missing_name) == (True, name)


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
    assert (ran.exit_code, ran.is_program_missing) == (exit_code, False)


async def test_script_without_a_first_line_runs_in_the_shell(
    sandbox: Sandbox, workspace: Path
) -> None:
    (workspace / "run.sh").write_text("echo $1\n")
    (workspace / "run.sh").chmod(0o755)
    ran = await sandbox.run(["./run.sh", "hello"], workspace=workspace, seconds=20)
    assert (ran.exit_code, ran.output) == (0, "hello\n")


@pytest.mark.parametrize("argv", [[], [""], ["a", "b\0c"], ["\ud800"]])
async def test_command_that_cannot_run_is_refused(
    sandbox: Sandbox, workspace: Path, argv: list[str]
) -> None:
    with pytest.raises(ToolError):
        await sandbox.run(argv, workspace=workspace, seconds=20)


async def test_arguments_and_file_names_of_any_bytes_are_passed(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    where = tmp_path / "a b\n'c\""
    where.mkdir()
    word = os.fsdecode(b"\xff\n '")
    ran = await sandbox.run(["printf", "%s|", word, "", "ü"], workspace=where, seconds=20)
    assert ran.output == "\ufffd\n '||ü|"


async def test_lost_workspace_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="is missing"):
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


async def test_sandbox_probe_reports_the_trial_that_was_started(
    make_sandbox: MakeSandbox, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    sandbox = make_sandbox(programs=[fake(tmp_path, f"echo tried >> {tries}; exit 1")])
    sandbox.begin_trial()
    sandbox.begin_trial()
    once = await sandbox.probe()
    assert (once.ok, await sandbox.probe()) == (False, once)
    assert set(tries.read_text().split()) == {"tried"}
    assert len(tries.read_text().split()) == (4 if os.geteuid() == 0 else 2), (
        "each way, with overlays and without"
    )


async def test_abandoned_sandbox_trial_leaves_no_process_or_file(
    make_sandbox: MakeSandbox, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    sandbox = make_sandbox(programs=[fake(tmp_path, f"echo > {begun}; exec sleep 6123457")])
    await sandbox.end_trial()
    sandbox.begin_trial()
    await asyncio.to_thread(begun.read_text)
    await sandbox.end_trial()
    assert not is_running("6123457")
    assert names(tmp_path / "scratch") == []


async def test_trials_of_one_process_do_not_clear_each_other_away(
    make_sandbox: MakeSandbox, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    other = make_sandbox(programs=[fake(tmp_path, f"echo > {begun}; exec sleep 6123458")])
    other.begin_trial()
    await asyncio.to_thread(begun.read_text)
    rooms = names(tmp_path / "scratch")

    assert (await make_sandbox().probe()).ok

    assert names(tmp_path / "scratch") == rooms
    await other.end_trial()
    assert names(tmp_path / "scratch") == []


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


async def test_command_that_imitates_bubblewrap_errors_is_a_failed_command(
    sandbox: Sandbox, workspace: Path
) -> None:
    ran = await sh(
        sandbox, workspace, "echo 'bwrap: execvp x: No such file or directory' >&2; exit 1"
    )
    assert ran.exit_code == 1


async def test_sandbox_mode_none_is_marked_as_unconfined(
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
    assert (await sandbox.run(["no-such"], workspace=workspace, seconds=20)).is_program_missing
    ended = await sandbox.run(["sleep", mark], workspace=workspace, seconds=0.3)
    assert ended.timed_out
    assert not is_running(mark)
