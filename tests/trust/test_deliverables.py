"""What a deliverable may bring into a project, by the command line: each case ends right, with a finding, or is refused."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk, Said
from tests.support.projects import make_project
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, calls, plan, step, worker, writes

FILES = {"README.md": "# A project\n", ".gitignore": "*.log\n", "plan.md": render(plan(step("a")))}
RIGHT = writes("a.txt", "a\n")
Work = Callable[..., tuple[Desk, Said]]


def runs(*commands: str) -> dict[str, object]:
    """Return a turn that runs these commands."""
    return {"calls": [calls("run", command=command) for command in commands]}


@pytest.fixture
def work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Work:
    """Execute a plan of one task on a new project; its worker makes the given turns, then writes `a.txt`."""

    def execute(*turns: object, **settings: object) -> tuple[Desk, Said]:
        desk = Desk(make_project(tmp_path / "project", FILES), monkeypatch, capsys)
        with PlayServer({"parts": [worker("a", *turns, RIGHT, "Written."), *REST]}) as server:  # type: ignore[arg-type]
            return desk, desk.ask(server, **settings).type("execute", "plan.md", "--yes")

    return execute


def report(desk: Desk) -> str:
    return " ".join(desk.type("report").out.split())


def is_repository(directory: Path, marker: Path) -> bool:
    """Return whether git takes a directory for a repository, or runs what its configuration names."""
    done = subprocess.run(
        ["git", "-C", str(directory), "rev-parse", "--absolute-git-dir"],
        capture_output=True,
        text=True,
    )
    subprocess.run(["git", "-C", str(directory), "status"], capture_output=True)
    return marker.exists() or done.stdout.strip().startswith(f"{directory}")


BARE = (
    "mkdir -p vendor/kit/objects/x vendor/kit/refs/heads && echo 'ref: refs/heads/m' > vendor/kit/HEAD"
    " && touch vendor/kit/objects/x/y vendor/kit/refs/k"
)
CONFIG = "printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = \"touch %s; false\"\\n' {} > vendor/{}/config"
REPOSITORIES = {
    "bare": f"{BARE} && {CONFIG.format('{marker}', 'kit')}",
    "linked parts": f"{BARE} && mv vendor/kit/objects vendor/o && ln -s ../o vendor/kit/objects"
    f" && {CONFIG.format('{marker}', 'kit')}",
    "common directory": f"{BARE} && mkdir vendor/c && mv vendor/kit/objects vendor/kit/refs vendor/c"
    f" && echo ../c > vendor/kit/commondir && {CONFIG.format('{marker}', 'c')}",
    "git file": f"{BARE} && {CONFIG.format('{marker}', 'kit')} && mkdir t && echo 'gitdir: ../vendor/kit' > t/.git",
}
MANY = "for i in $(seq 25); do mkdir r && cd r && git init -q . && echo x > f; done"
ODD = [b" ", b"  x ", b"a\nb|c`d", b"\xff\xfe", b"\x1b[2J", b"-rf", b"\"q\"", b"'", b"a\rb", b"dots...", b"x" * 250, b"*", b"[a]", b":(top)", b"~", b"#", b"\xe2\x80\xae"]  # fmt: skip
WRITE_ODD = (
    f"python3 - <<'E'\nfor n in ({', '.join(map(repr, ODD))}):\n    open(n, 'w').write('x')\nE"
)
REFUSED = (".GIT", "git~1", ".mimir-apply-0123456789abcdef")
DEEP = "python3 -c \"import os\nfor i in range(40):\n os.mkdir('d' * 200)\n os.chdir('d' * 200)\n open('f', 'w')\""


def test_no_embedded_repository_is_delivered(work: Work, tmp_path: Path):
    marker = tmp_path / "ran"
    inside = (
        f"mkdir '{name}' && cd '{name}' && {command.format(marker=marker)}"
        for name, command in REPOSITORIES.items()
    )
    desk, said = work(runs(*inside, MANY))
    assert said.code == 0, said.err
    assert (desk.project / "a.txt").read_text() == "a\n"
    assert not list(desk.project.glob("*/**/.git"))
    found = report(desk)
    assert "The nested repository 'r' was removed" in found
    for name in REPOSITORIES:
        assert f"git would take '{name}/vendor/kit' for a repository" in found
        for directory in ("vendor/kit", "vendor", "t"):
            if (desk.project / name / directory).is_dir():
                assert not is_repository(desk.project / name / directory, marker)


def test_the_file_tool_completes_no_repository(work: Work):
    parts = ("kit/HEAD", "kit/objects/x", "kit/refs/y", "kit/README")
    written = [calls("write_file", path=path, content="ref: refs/x\n") for path in parts]
    desk, said = work({"calls": written})
    assert said.code == 0
    assert {path.name for path in (desk.project / "kit").iterdir()} == {"HEAD", "objects", "README"}
    found = report(desk)
    assert "would make 'kit' a git repository" in found
    assert "not in the deliverable" not in found


def test_every_name_that_git_can_store_is_applied_and_others_are_named(work: Work):
    touch = " && ".join(f"echo x > {name}" for name in REFUSED)
    desk, said = work(runs(WRITE_ODD, touch, "mkfifo pipe", DEEP))
    assert said.code == 0, said.err
    assert set(map(os.fsdecode, ODD)) <= {path.name for path in desk.project.iterdir()}
    found = report(desk)
    for name in (*REFUSED, "pipe"):
        assert not (desk.project / name).exists()
        assert f"'{name}' is not in the deliverable" in found
    assert "its path is too long" in found


@pytest.mark.parametrize(
    ("command", "setting", "finding"),
    [
        ("head -c 3000000 /dev/zero > big.bin", {"RUN__DELIVERABLE_MB": 2}, "more than 2 MB"),
        (
            "for i in $(seq 30); do echo $i > f$i; done",
            {"RUN__DELIVERABLE_FILES": 20},
            "more than 20",
        ),
    ],
)
def test_too_large_deliverables_are_refused(
    work: Work, command: str, setting: dict[str, object], finding: str
):
    desk, said = work(runs(command), **setting)
    assert said.code == 1
    assert not (desk.project / "a.txt").exists()
    assert finding in report(desk)


ORDINARY = (
    "mkdir -p lib/objects lib/refs && echo 1 > lib/objects/a && echo 1 > lib/refs/b && echo 1 > HEAD",
    "mkdir src && cd src && for i in $(seq 3000); do echo $i > f$i; done",
)


def test_a_large_ordinary_deliverable_is_applied(work: Work):
    desk, said = work(runs(*ORDINARY))
    assert said.code == 0
    assert len(list((desk.project / "src").iterdir())) == 3000
    assert (desk.project / "lib/objects/a").exists()
    assert (desk.project / "HEAD").exists()
    assert "not in the deliverable" not in report(desk)
