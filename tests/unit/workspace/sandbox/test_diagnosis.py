"""Why there is no sandbox, and the way out, on each kind of machine."""

import sys
from pathlib import Path

import pytest

from mimir.workspace.sandbox import diagnosis, missing_program
from mimir.workspace.sandbox.limits import cgroups
from mimir.workspace.sandbox.output import BoundedOutput


def test_other_systems_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert diagnosis.diagnose_platform() is None
    monkeypatch.setattr(sys, "platform", "darwin")
    wrong = diagnosis.diagnose_platform()
    assert wrong is not None
    assert "macOS" in wrong.problem
    assert "container" in wrong.fix
    assert 'sandbox = "none"' in wrong.fix


@pytest.mark.parametrize(
    ("file", "value", "said"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "apparmor_restrict_unprivileged_userns=0",
        ),
        ("kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "max_user_namespaces=10000"),
        ("none", "", "bwrap --unshare-all"),
    ],
)
def test_sandbox_advice_fits_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, value: str, said: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(value)
    monkeypatch.setattr(diagnosis, "_PROC", tmp_path)
    monkeypatch.setattr(diagnosis, "_is_container", lambda: False)
    wrong = diagnosis.diagnose_failure(["first", "bwrap: No permissions\n"])
    assert wrong.problem.endswith("bwrap: No permissions")
    assert said in wrong.fix
    monkeypatch.setattr(diagnosis, "_is_container", lambda: True)
    assert ("--security-opt" in diagnosis.diagnose_failure([]).fix) == (file == "none")


@pytest.mark.parametrize(
    ("argv", "code", "output", "name"),
    [
        (["bash", "-c", "x"], 127, "bash: line 1: x: command not found\n", "x"),
        (["bash", "-c", "x"], 127, "/usr/bin/bash: line 3: x: command not found\n", "x"),
        (["sh", "-c", "npm test"], 127, "> jest\n\nsh: 1: jest: not found\n", "jest"),
        (["bash", "-c", "x"], 1, "bash: line 1: x: command not found\n", None),
        (["bash", "-c", "./x"], 127, "bash: line 1: ./x: No such file or directory\n", None),
        (["bash", "-c", "x"], None, "bash: line 1: x: command not found\n", None),
        (["python", "-m", "pytest", "t"], 1, "/usr/bin/python: No module named pytest\n", "pytest"),
        (["python", "-m", "pytest"], 1, "E  ModuleNotFoundError: No module named 'flask'\n", None),
        (["python", "-m", "a"], 1, "/usr/bin/python: No module named b\n", None),
        (["make"], 1, "/usr/bin/python: No module named pytest\n", None),
        (["pytest", "-m", "slow"], 1, "/usr/bin/python: No module named slow\n", None),
    ],
)
def test_missing_program_is_derived_from_the_end_of_its_command(
    argv: list[str], code: int | None, output: str, name: str | None
) -> None:
    assert missing_program.missing_name(argv, code, output) == name


def test_control_group_of_a_killed_engine_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_places", lambda: [(tmp_path, ("memory",))])
    (tmp_path / "mimir-1-1").mkdir()
    (tmp_path / "theirs").mkdir()
    cgroups.remove_stale_groups()
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_cgroup_has_its_limits_and_reports_out_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [(tmp_path / "closed/no", ("memory",)), (tmp_path, ("memory", "pids"))]
    monkeypatch.setattr(cgroups, "_places", lambda: places)
    group = cgroups.make_group(1000, 20)
    assert group is not None
    (path,) = group.paths
    assert (path / "memory.max").read_text() == "1000"
    assert (path / "pids.max").read_text() == "20"
    group.take(77)
    assert (path / "cgroup.procs").read_text() == "77"
    assert not group.ran_out()
    (path / "memory.events").write_text("low 0\noom_kill 2\n")
    assert group.ran_out()


def test_limits_of_two_hierarchies_make_one_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [(tmp_path / "m", ("memory",)), (tmp_path / "p", ("pids",))]
    for place, _ in places:
        place.mkdir()
    monkeypatch.setattr(cgroups, "_places", lambda: places)
    group = cgroups.make_group(1000, 20)
    assert group is not None
    assert [path.parent.name for path in group.paths] == ["m", "p"]
    monkeypatch.setattr(cgroups, "_places", list)
    assert cgroups.make_group(1000, 20) is None


def test_output_is_complete_up_to_its_limit() -> None:
    output = BoundedOutput(9)
    for piece in (b"abc", b"", b"defghi"):
        output.add(piece)
    assert output.text == "abcdefghi"
    output.add(b"j" * 100 + b"klmnop")
    assert output.text == "abc\n… 106 bytes are left out here …\nklmnop"
    assert output.total == 115


def test_character_across_the_two_parts_of_an_output_is_complete() -> None:
    output = BoundedOutput(6)
    output.add("aßc".encode())
    assert output.text == "aßc"
