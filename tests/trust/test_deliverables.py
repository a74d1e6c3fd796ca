"""Hostile content of a deliverable, by the command line: each case is right, has a finding, or is refused."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk, Said
from tests.support.projects import git, make_project, write_files
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, calls, plan, step, worker, writes

FILES = {"README.md": "# A project\n", ".gitignore": "*.log\n", "plan.md": render(plan(step("a")))}
NOTHING: Mapping[str, str] = {}
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

    def execute(
        *turns: object, ignored: Mapping[str, str] = NOTHING, **settings: object
    ) -> tuple[Desk, Said]:
        project = make_project(tmp_path / "project", FILES)
        write_files(project, ignored)
        desk = Desk(project, monkeypatch, capsys)
        with PlayServer({"parts": [worker("a", *turns, RIGHT, "Written."), *REST]}) as server:  # type: ignore[arg-type]
            return desk, desk.ask(server, **settings).type("execute", "plan.md", "--yes")

    return execute


def report(desk: Desk) -> str:
    return " ".join(desk.type("report").out.split())


def is_repository(directory: Path, marker: Path) -> bool:
    """Return whether git uses a directory as a repository, or runs commands of its configuration."""
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
    assert "Refused tool calls of its worker: 1" in found
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
    "mkdir src && cd src && for i in $(seq 500); do echo $i > f$i; done",
)


def test_a_large_ordinary_deliverable_is_applied(work: Work):
    desk, said = work(runs(*ORDINARY))
    assert said.code == 0
    assert len(list((desk.project / "src").iterdir())) == 500
    assert (desk.project / "lib/objects/a").exists()
    assert (desk.project / "HEAD").exists()
    assert "not in the deliverable" not in report(desk)


IGNORED = {".env": "NOTE=canary-note\n", "conf/.env": "x\n", "conf/app.ini": "x\n", "x.log": "x\n"}
LINKS = {
    "l1": "ln -s .env l1",
    "l2": "ln -s data/node_modules/x l2",
    "l3": "ln -s .mimir/mimir.db l3",
    "d/l4": "mkdir d && ln -s ../chains/a d/l4",
    "d/l5": "ln -s .. d/l5",
    "l6": "ln -s n.txt l6 && ln -s ./.env n.txt",
    "l7": "ln -s ../conf d/c && ln -s d/c/.env l7",
    "l8": "ln -s conf l8",
}
"""Links to an ignored file, an ignored folder, the store, plans, the top, through links, and to a folder above."""


def test_a_link_to_a_hidden_path_is_refused(work: Work):
    desk, said = work(runs(" && ".join(LINKS.values())), ignored=IGNORED, RUN__APPLY="never")
    assert said.code == 1
    refusal = "leads out of the workspace, or to an ignored or hidden path"
    found = report(desk)
    assert [link for link in LINKS if f"The symbolic link '{link}' {refusal}" not in found] == []


def test_links_inside_the_tree_are_applied(work: Work):
    ordinary = (
        "mkdir -p lib web docs && echo 1 > lib/a && ln -s ../lib web/lib && ln -s README.md docs/x && ln -s lib l",
        "ln -s ../README.md docs/readme && ln -s later.txt soon && ln -s web/lib/a chained",
    )
    ignored = {"lib/__pycache__/a.pyc": "x", "lib/dist/a.js": "x", "lib/debug.log": "x"}
    desk, said = work(runs(*ordinary), ignored=ignored)
    assert said.code == 0, said.err
    assert (desk.project / "chained").read_text() == "1\n"


def test_a_file_that_was_ignored_stays_hidden_until_the_user_names_it(work: Work):
    # Given: a deliverable that shows the user's ignored file.
    reveal = writes(".gitignore", "!.env\n!new.log\n")
    desk, said = work(reveal, ignored=IGNORED)
    # Then: it is not applied without an answer, and the message names one command.
    assert said.code == 1
    assert "git would no longer ignore existing files" in said.out
    run = desk.type("status", "--json").json["run"]
    assert f"next: Apply it as it is: mimir apply {run} --yes" in said.out
    assert "shows existing files of the user to git" in report(desk)
    refused = desk.type("apply")
    assert refused.code == 1
    assert "'.env'" in refused.out
    assert not (desk.project / "a.txt").exists()
    # When: the rules show a file that an earlier base ignored.
    desk.write(".gitignore", "!.env\n!new.log\n")
    desk.write("new.log", "canary-later\n")
    look = runs("! grep -r 'cana[r]y' .")
    with PlayServer({"parts": [worker("a", look, RIGHT, "Written."), *REST]}) as server:
        desk.ask(server, RUN__APPLY="never")
        hidden = desk.type("execute", "plan.md", "--yes")
        assert hidden.code == 0, hidden.out
        assert "canary" not in hidden.out
        found = report(desk)
        assert "Files that git ignored in an earlier run are not part of the run" in found
        # Then: it is part of a run only after the user tracks it.
        git(desk.project, "add", "new.log")
        desk.type("execute", "plan.md", "--yes")
        assert "new.log" not in report(desk)
        git_dir = f"--git-dir={desk.project / '.mimir/work/history.git'}"
        bases = git(
            desk.project, git_dir, "for-each-ref", "--format=%(objectname)", "refs/mimir/base"
        )
        held = [
            set(git(desk.project, git_dir, "ls-tree", "-r", "--name-only", base).splitlines())
            for base in bases.split()
        ]
    assert not any(".env" in names for names in held)
    assert sum("new.log" in names for names in held) == 1


def test_the_user_can_apply_a_result_that_shows_ignored_files(work: Work):
    desk, _ = work(writes(".gitignore", "!x.log\n"), ignored=IGNORED)
    applied = desk.type("apply", "--yes")
    assert applied.code == 0
    assert (desk.project / "a.txt").exists()
