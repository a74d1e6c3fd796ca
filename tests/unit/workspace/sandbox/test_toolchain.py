"""The project's own tools are there, and import the workspace's code."""

import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from mimir.workspace import tree_removal
from mimir.workspace.sandbox import mounts, toolchain
from mimir.workspace.sandbox.sandbox import CommandResult, Sandbox
from tests.support.projects import git, write_files
from tests.unit.workspace.conftest import MakeSandbox, OpenHistory

SYSTEM_PYTHON = Path("/usr/bin/python3")
HOOK = """\
import sys
from importlib.machinery import PathFinder, ModuleSpec
from importlib.util import spec_from_file_location
MAPPING = {"shape": %r}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return spec_from_file_location(name, MAPPING[name] + "/__init__.py", submodule_search_locations=[MAPPING[name]])
def install():
    sys.meta_path.append(Finder)
"""


def make_environment(python: Path, where: Path) -> None:
    subprocess.run([python, "-m", "venv", "--without-pip", str(where)], check=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a real environment into which it is installed in the three ways that editors of it use."""
    project = tmp_path_factory.mktemp("person") / "project"
    write_files(
        project,
        {
            "flat.py": "where = 'the person'\n",
            "src/deep/__init__.py": "where = 'the person'\n",
            "lib/shape/__init__.py": "where = 'the person'\n",
        },
    )
    make_environment(Path(sys.executable), project / ".venv")
    (site,) = (project / ".venv/lib").glob("python*/site-packages")
    write_files(
        site,
        {
            "flat.pth": f"{project}\n",
            "__editable__.deep-1.0.pth": f"{project}/src\n",
            "__editable__.shape-1.0.pth": "import __editable___shape_1_0_finder; __editable___shape_1_0_finder.install()\n",
            "__editable___shape_1_0_finder.py": HOOK % f"{project}/lib/shape",
            "shape-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: shape\nVersion: 1.0\n",
            "shape-1.0.dist-info/RECORD": "",
        },
    )
    script = project / ".venv/bin/tool"
    script.write_text(f"#!{project}/.venv/bin/python\nimport flat; print(flat.where)\n")
    script.chmod(0o755)
    write_files(project, {"node_modules/.bin/linter": "#!/bin/sh\necho linted\n"})
    (project / "node_modules/.bin/linter").chmod(0o755)
    return project


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    where = tmp_path / "w"
    mine = "where = 'the workspace'\n"
    write_files(
        where, {"flat.py": mine, "src/deep/__init__.py": mine, "lib/shape/__init__.py": mine}
    )
    return where


def is_link(path: Path) -> bool:
    return path.is_symlink()


async def run(
    sandbox: Sandbox, workspace: Path, project: Path, argv: Sequence[str]
) -> CommandResult:
    return await sandbox.run(argv, workspace=workspace, seconds=30, project=project)


IMPORT = """
import flat, deep, shape, sys
from importlib.metadata import version
print(flat.where, deep.where, shape.where, version('shape'))
"""


@pytest.mark.parametrize("python", ["python", "python3", ".venv/bin/python"])
async def test_editable_installs_import_the_workspaces_code(
    sandbox: Sandbox, workspace: Path, project: Path, python: str
) -> None:
    # From another directory, so that only the installation can find them.
    program = [
        "sh",
        "-c",
        f'p=$(command -v {python}); cd /tmp; case $p in /*) ;; *) p=/workspace/$p;; esac; "$p" -c "$0"',
        IMPORT,
    ]
    ran = await run(sandbox, workspace, project, program)
    assert ran.output == "the workspace the workspace the workspace 1.0\n"


async def test_scripts_of_the_environment_run_with_the_workspaces_code(
    sandbox: Sandbox, workspace: Path, project: Path
) -> None:
    for argv in (["tool"], [f"{project}/.venv/bin/tool"], ["linter"]):
        ran = await run(sandbox, workspace, project, argv)
        assert ran.output == ("linted\n" if argv == ["linter"] else "the workspace\n"), argv


async def test_projects_own_path_leads_to_the_workspace(
    sandbox: Sandbox, workspace: Path, project: Path
) -> None:
    ran = await run(
        sandbox, workspace, project, ["sh", "-c", f'cd "{project}" && pwd -P && echo x > new']
    )
    assert ran.output == "/workspace\n"
    assert (workspace / "new").exists()
    assert not (project / "new").exists()


async def test_writes_into_dependency_folders_are_discarded(
    sandbox: Sandbox, workspace: Path, project: Path
) -> None:
    write = "echo x > .venv/x && rm -rf node_modules/.bin && cat .venv/x"
    assert (await run(sandbox, workspace, project, ["sh", "-c", write])).output == "x\n"
    assert (await run(sandbox, workspace, project, ["cat", ".venv/x"])).exit_code == 1
    assert (project / "node_modules/.bin/linter").exists()
    assert not (project / ".venv/x").exists()


async def test_files_of_the_user_are_absent_from_the_sandbox(
    sandbox: Sandbox, workspace: Path, project: Path
) -> None:
    write_files(project, {"secret.txt": "x", ".mimir/mimir.db": "x"})
    ran = await run(
        sandbox, workspace, project, ["sh", "-c", f'ls -A "{project}" "{project.parent}"']
    )
    assert "secret" not in ran.output
    assert ".mimir" not in ran.output


async def test_pytest_of_the_engine_is_there_and_starts_without_its_plugins(
    sandbox: Sandbox, workspace: Path, tmp_path: Path
) -> None:
    write_files(
        workspace,
        {
            "test_it.py": "import flat\n\n\ndef test_it():\n    assert flat.where == 'the workspace'\n"
        },
    )
    ran = await sandbox.run(["python", "-m", "pytest", "-q"], workspace=workspace, seconds=60)
    assert ran.exit_code == 0
    assert "1 passed" in ran.output
    ran = await sandbox.run(
        ["sh", "-c", "env | grep AUTOLOAD; command -v python"], workspace=workspace, seconds=20
    )
    assert ran.output.splitlines() == [
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1",
        f"{sys.prefix}/bin/python",
    ]


async def test_projects_own_python_keeps_its_plugins(
    sandbox: Sandbox, workspace: Path, project: Path
) -> None:
    ran = await run(
        sandbox, workspace, project, ["sh", "-c", "env | grep -c AUTOLOAD; command -v python"]
    )
    assert ran.output.splitlines() == ["0", "/workspace/.venv/bin/python"]


async def test_environment_that_a_worker_made_is_its_own(
    sandbox: Sandbox, workspace: Path, project: Path
) -> None:
    write_files(workspace, {".venv/bin/python": "#!/bin/sh\necho the worker\n"})
    (workspace / ".venv/bin/python").chmod(0o755)
    assert (await run(sandbox, workspace, project, ["python"])).output == "the worker\n"


async def test_planted_link_is_not_mounted_on(
    sandbox: Sandbox, workspace: Path, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (workspace / "node_modules").symlink_to(tmp_path / "outside")
    ran = await run(sandbox, workspace, project, ["sh", "-c", "ls node_modules/ 2>&1"])
    assert "linter" not in ran.output
    assert list((tmp_path / "outside").iterdir()) == []


async def test_shared_folder_and_read_only_directory_are_there(
    make_sandbox: MakeSandbox, workspace: Path, project: Path, tmp_path: Path
) -> None:
    write_files(project, {"packages/a/assets/m.js": "m"})
    write_files(tmp_path / "sdk", {"tool": "s"})
    sandbox = make_sandbox(share=("packages/*/assets",), read_only=(tmp_path / "sdk",))
    ran = await run(
        sandbox,
        workspace,
        project,
        ["sh", "-c", f"cat packages/a/assets/m.js {tmp_path}/sdk/tool"],
    )
    assert ran.output == "ms"


async def test_environment_that_a_link_leads_to(
    sandbox: Sandbox, workspace: Path, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "person" / "linked"
    other.mkdir(parents=True)
    (other / ".venv").symlink_to(project / ".venv")
    assert (await run(sandbox, workspace, other, ["python", "-c", "print(1)"])).output == "1\n"


async def test_programs_of_a_named_folder_are_found_before_the_systems(
    make_sandbox: MakeSandbox, workspace: Path, tmp_path: Path
) -> None:
    write_files(
        tmp_path / "sdk/bin", {"gauge": "#!/bin/sh\necho 7\n", "cat": "#!/bin/sh\necho own\n"}
    )
    for name in ("gauge", "cat"):
        (tmp_path / "sdk/bin" / name).chmod(0o755)
    sandbox = make_sandbox(read_only=(tmp_path / "sdk",))
    ran = await run(sandbox, workspace, None, ["sh", "-c", "gauge; cat"])
    assert ran.output == "7\nown\n"


def test_toolchains_below_usr_local_are_last() -> None:
    there = [str(path) for path in sorted(Path("/usr/local").glob("*/bin"))]
    path = toolchain.search_path(["/first"]).split(":")
    assert path[0] == "/first"
    assert path[len(path) - len(there) :] == there


async def test_read_only_workspace_has_its_dependencies_too(
    sandbox: Sandbox, workspace: Path, project: Path
) -> None:
    ran = await sandbox.run(
        ["tool"], workspace=workspace, seconds=30, project=project, writable=False
    )
    assert ran.output == "the workspace\n"


async def test_project_above_the_interpreter_still_has_one(
    sandbox: Sandbox, workspace: Path
) -> None:
    home = Path(sys.base_prefix).parent
    ran = await run(sandbox, workspace, home, ["python", "-c", "print('up')"])
    assert ran.output == "up\n"


async def test_system_python_environment(sandbox: Sandbox, workspace: Path, tmp_path: Path) -> None:
    project = tmp_path / "person"
    make_environment(SYSTEM_PYTHON, project / "venv")
    ran = await run(sandbox, workspace, project, ["python", "-c", "import sys; print(sys.prefix)"])
    assert ran.output == "/workspace/venv\n"


def test_only_an_installation_is_bound_and_never_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_files(home, {".ssh/id": "key", "bin/x": "", ".venv/pyvenv.cfg": f"home = {home}/bin\n"})
    assert toolchain.environment_binds(home / ".venv") == []
    write_files(home, {"lib/python3.11/os.py": ""})
    bound = {bind.target for bind in toolchain.environment_binds(home / ".venv")}
    assert bound == {f"{home}/bin", f"{home}/lib"}


def test_project_in_a_directory_of_the_system_is_covered_by_the_workspace(tmp_path: Path) -> None:
    wanted = mounts.MountRequest(
        workspace=tmp_path, writable=True, project=Path("/usr/local"), view=None
    )
    options = mounts.lay_out(wanted, as_root=False).options
    at = options.index("/usr/local")
    assert options[at - 2 : at + 1] == ("--bind", str(tmp_path), "/usr/local")


@pytest.mark.parametrize("place", ["/", "/tmp", "/workspace", "/workspace/sub"])
def test_project_at_an_unusual_path_gets_no_alias(tmp_path: Path, place: str) -> None:
    wanted = mounts.MountRequest(workspace=tmp_path, writable=True, project=Path(place), view=None)
    options = mounts.lay_out(wanted, as_root=False).options
    aliases = [
        options[n + 2]
        for n, word in enumerate(options)
        if word == "--symlink" and options[n + 1] == "/workspace"
    ]
    assert aliases == []


# Git in the sandbox.


async def test_git_changes_files_of_the_workspace_and_no_reference(
    sandbox: Sandbox, tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    history = await open_history(tmp_project)
    base = await history.base("r1")
    where, index = tmp_path / "w", tmp_path / "w.index"
    await history.fill(base.commit, where, index)
    view = await history.view(base.commit)
    write_files(where, {"calc.py": "changed\n", "new.py": "x\n"})
    script = f"""
        cat .git
        git status --porcelain
        git log --format=%s
        git diff --stat | tail -1
        git -C "{tmp_project}" rev-parse --show-toplevel
        env | grep GIT_
        git commit -qam x 2>&1 | grep -o "not kept"
        git stash 2>/dev/null || git diff --quiet || echo no stash, no loss
        git checkout -qb other 2>/dev/null || echo no branch
        git mv calc.py moved.py && git add -A && git diff --cached --name-status
        git checkout -q HEAD calc.py && git reset -q --hard && git status --porcelain
        printf 'changed\\n' > calc.py && echo x > new.py
        rm .git 2>/dev/null || echo no removal
        echo x 2>/dev/null > .git || echo no writing
    """
    ran = await sandbox.run(
        ["sh", "-c", textwrap.dedent(script)],
        workspace=where,
        seconds=30,
        project=tmp_project,
        view=view,
    )
    assert ran.output.splitlines() == [
        "gitdir: /git-view",
        " M calc.py",
        "?? new.py",
        "Start",
        " 1 file changed, 1 insertion(+), 2 deletions(-)",
        "/workspace",
        "not kept",
        "no stash, no loss",
        "no branch",
        "D\tcalc.py",
        "A\tmoved.py",
        "A\tnew.py",
        "no removal",
        "no writing",
    ]
    taken = await history.snapshot(where, index)
    assert taken.nested == ()
    changed = await history.diff_trees(base.tree, taken.tree)
    assert [change.path for change in changed] == ["calc.py", "new.py"]


async def test_tests_that_make_repositories_of_their_own_work(
    sandbox: Sandbox, tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    history = await open_history(tmp_project)
    base = await history.base("r1")
    where = tmp_path / "w"
    await history.checkout(base.commit, where)
    script = "cd $(mktemp -d) && git init -q . && echo x > f && git add f && git commit -qm made && git log --format='%an %s'"
    view = await history.view(base.commit)
    ran = await sandbox.run(
        ["sh", "-c", script], workspace=where, seconds=30, project=tmp_project, view=view
    )
    assert ran.output == "mimir made\n"


async def test_planted_repository_is_replaced_by_the_view(
    sandbox: Sandbox, tmp_project: Path, tmp_path: Path, open_history: OpenHistory
) -> None:
    history = await open_history(tmp_project)
    base = await history.base("r1")
    where = tmp_path / "w"
    await history.checkout(base.commit, where)
    view = await history.view(base.commit)
    git(where, "init", "--quiet")
    ran = await sandbox.run(["git", "log", "--format=%s"], workspace=where, seconds=30, view=view)
    assert ran.output == "Start\n"
    tree_removal.remove_tree(where / ".git")
    (where / ".git").symlink_to("/etc")
    ran = await sandbox.run(["git", "log", "--format=%s"], workspace=where, seconds=30, view=view)
    assert ran.output == "Start\n"
    assert not is_link(where / ".git")


def test_settings_that_packages_link_to_are_found_without_those_of_one_user(tmp_path: Path):
    etc = tmp_path / "etc"
    write_files(
        etc,
        {
            "tool/tool.conf": "a",
            "closed/key": "b",
            "deep/one.conf": "c",
            "variables": "d",
            "app/api_key": "e",
        },
    )
    (etc / "closed/key").chmod(0o600)
    links = {
        "usr/tool/conf": "tool",
        "usr/tls/private": "closed",
        "usr/deep/one.conf": "deep/one.conf",
        "usr/env/all": "variables",
        "usr/app/conf": "app",
        "usr/gone/conf": "missing",
    }
    for place, target in links.items():
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).symlink_to(etc / target)
    found = toolchain.find_linked_settings(tmp_path / "usr", [str(etc)])
    assert sorted(found) == [str(etc / "deep/one.conf"), str(etc / "tool")]
