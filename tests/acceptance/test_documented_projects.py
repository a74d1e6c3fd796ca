"""Each section of "Use your project": its commands work, and `mimir doctor` lists the promised tools."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.compiled_projects import enter_home, go_project, rust_project
from tests.support.projects import git, make_project, write_files

PAGE = Path(__file__).parents[2] / "docs/use-your-project.md"
SECTIONS = {
    title: re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for title, text in re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
}
BACKEND = """\
import zipfile

def _build(directory, *rest):
    name = "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as archive:
        archive.writestr("pkg-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: pkg\\nVersion: 1.0\\n")
        archive.writestr("pkg-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("pkg-1.0.dist-info/RECORD", "")
    return name

build_editable = build_wheel = _build
"""
PYPROJECT = (
    '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n\n'
    '[project]\nname = "pkg"\nversion = "1.0"\n'
)
LOCK = """\
{"name": "app", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "app", "dependencies": {"dep": "file:dep"}},
  "dep": {"version": "1.0.0"},
  "node_modules/dep": {"resolved": "dep", "link": true}}}
"""


def python_project(where: Path) -> Path:
    """A package with a build backend of its own; a wheel named `pytest` is there without an index."""
    wheels = where / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "pytest-9.0-py3-none-any.whl", "w") as archive:
        info = "pytest-9.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: pytest\nVersion: 9.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return make_project(
        where / "project",
        {".gitignore": ".venv/\n", "backend.py": BACKEND, "pyproject.toml": PYPROJECT},
    )


def node_project(where: Path) -> Path:
    """A package whose dependency is a folder."""
    return make_project(
        where / "project",
        {
            ".gitignore": "node_modules/\n",
            "package.json": '{"name": "app", "dependencies": {"dep": "file:dep"}}\n',
            "package-lock.json": LOCK,
            "dep/package.json": '{"name": "dep", "version": "1.0.0"}\n',
        },
    )


def java_project(where: Path) -> Path:
    """A Maven project, and a stand-in for `mvn`, which would need a network."""
    mvn = where / "bin/mvn"
    write_files(
        where, {"bin/mvn": '#!/bin/sh\nmkdir -p "$HOME/.m2/repository/junit" target/classes\n'}
    )
    mvn.chmod(0o755)
    return make_project(where / "project", {".gitignore": "target/\n", "pom.xml": "<project/>\n"})


def monorepo(where: Path) -> Path:
    """A package of a workspace, with its dependencies at the root."""
    root = make_project(
        where / "project",
        {".gitignore": "node_modules/\n", "packages/app/package.json": '{"name": "app"}\n'},
    )
    write_files(root, {"node_modules/dep/index.js": "", "package.json": "{}\n"})
    return root


def submodule_project(where: Path) -> Path:
    """A fresh clone of a project with a submodule."""
    library = make_project(where / "library", {"k.py": "K = 1\n"})
    origin = make_project(where / "origin", {"a.py": "A = 1\n"})
    allowed = ("-c", "protocol.file.allow=always")
    git(origin, *allowed, "submodule", "--quiet", "add", str(library), "lib")
    git(origin, "commit", "--quiet", "--message", "Library")
    git(where, "clone", "--quiet", str(origin), "project")
    return where / "project"


def local_project(where: Path) -> Path:
    return make_project(where / "project", {"a.py": "A = 1\n"})


def first_of(
    shape: Callable[[Path], tuple[Path, object, object, object]],
) -> Callable[[Path], Path]:
    return lambda where: shape(where)[0]


SHAPES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "Python": (python_project, ".venv"),
    "JavaScript and TypeScript": (node_project, "node_modules"),
    "Go": (first_of(go_project), "~/go/pkg/mod"),
    "Rust": (first_of(rust_project), "target, vendor"),
    "Java": (java_project, "~/.m2/repository"),
    "Monorepos": (monorepo, "node_modules"),
    "Submodules": (submodule_project, "lib"),
    "Local models": (local_project, "sandbox"),
}
"""Section → its project, and the expected lines of `mimir doctor`."""


def test_each_section_with_commands_has_a_project():
    assert {title for title, blocks in SECTIONS.items() if blocks} == set(SHAPES)


@pytest.mark.parametrize("title", SHAPES)
def test_commands_of_a_section_work(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_home(tmp_path / "home", monkeypatch)
    shape, listed = SHAPES[title]
    project = shape(tmp_path)
    write_files(tmp_path, {"bin/mimir": f'#!/bin/sh\nexec {sys.executable} -m mimir "$@"\n'})
    (tmp_path / "bin/mimir").chmod(0o755)
    [commands] = SECTIONS[title]
    # The project's test is red, which a user sees before mimir is started.
    script = commands.replace("cargo test\n", "cargo test || true\n")
    script = script.replace("go test ./...", "go test ./... || true")
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=project,
        env={
            **os.environ,
            "PATH": f"{tmp_path}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OPENAI_API_KEY": "sk-test-0123456789",
            # No command may need a network.
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tmp_path / "wheels"),
            "npm_config_offline": "true",
            "npm_config_audit": "false",
            "CARGO_NET_OFFLINE": "true",
            "GOPROXY": f"file://{tmp_path / 'proxy'}",
            "GONOSUMDB": "*",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "protocol.file.allow",
            "GIT_CONFIG_VALUE_0": "always",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert listed in done.stdout
