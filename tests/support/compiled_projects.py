"""Go and Rust projects with a dependency, and the home of a user of them.

The dependencies are written here and installed as a user installs them, but without a network: a module
cache filled by `go mod download`, and a vendored source of cargo that git ignores.
"""

import hashlib
import json
import os
import pwd
import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mimir.domain.plan import Check
from tests.support.environment import NEO4J_REQUIRED
from tests.support.projects import git, make_project, write_files
from tests.support.whole_run import check

Shape = tuple[Path, str, str, Check]

MODULE = "example.com/scale"
GO_DEPENDENCY = "module example.com/scale\n\ngo 1.21\n"
GO_WRONG = (
    'package tally\n\nimport "example.com/scale"\n\n// Add returns the scaled sum.\n'
    "func Add(a, b int) int { return scale.Twice(a - b) }\n"
)
GO_TEST = (
    'package tally\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
    '\tif got := Add(2, 3); got != 10 {\n\t\tt.Errorf("Add(2, 3) = %d; want 10", got)\n\t}\n}\n'
)
RUST_WRONG = "pub fn add(a: i32, b: i32) -> i32 {\n    scale::twice(a - b)\n}\n"
RUST_TEST = "#[test]\nfn adds() {\n    assert_eq!(tally::add(2, 3), 10);\n}\n"
MANIFEST = '[package]\nname = "{}"\nversion = "1.0.0"\nedition = "2021"\n'
VENDORED = (
    '[source.crates-io]\nreplace-with = "vendored-sources"\n\n'
    '[source.vendored-sources]\ndirectory = "vendor"\n'
)


def go_project(where: Path) -> Shape:
    """A module that requires another one, which is in the user's module cache."""
    proxy = where / "proxy" / MODULE / "@v"
    proxy.mkdir(parents=True)
    (proxy / "list").write_text("v1.0.0\n", encoding="utf-8")
    (proxy / "v1.0.0.info").write_text('{"Version": "v1.0.0"}\n', encoding="utf-8")
    (proxy / "v1.0.0.mod").write_text(GO_DEPENDENCY, encoding="utf-8")
    with zipfile.ZipFile(proxy / "v1.0.0.zip", "w") as archive:
        archive.writestr(f"{MODULE}@v1.0.0/go.mod", GO_DEPENDENCY)
        text = "package scale\n\n// Twice doubles.\nfunc Twice(n int) int { return 2 * n }\n"
        archive.writestr(f"{MODULE}@v1.0.0/scale.go", text)
    module = "module example.com/tally\n\ngo 1.21\n\nrequire example.com/scale v1.0.0\n"
    project = make_project(
        where / "project",
        {".gitignore": ".mimir/\n", "go.mod": module, "add.go": GO_WRONG, "add_test.go": GO_TEST},
    )
    proxied = {"GOPROXY": f"file://{where / 'proxy'}", "GONOSUMDB": "*", "GOFLAGS": "-modcacherw"}
    user_runs(project, "go", "mod", "tidy", variables=proxied)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "Sums")
    right = GO_WRONG.replace("a - b", "a + b")
    return project, "add.go", right, check("go", "test", "./...")


def rust_project(where: Path) -> Shape:
    """A crate whose dependency is in a vendored source that git ignores."""
    project = make_project(
        where / "project",
        {
            ".gitignore": "target/\nvendor/\n.mimir/\n",
            ".cargo/config.toml": VENDORED,
            "Cargo.toml": MANIFEST.format("tally") + '\n[dependencies]\nscale = "1"\n',
            "src/lib.rs": RUST_WRONG,
            "tests/add.rs": RUST_TEST,
        },
    )
    crate = {
        "Cargo.toml": MANIFEST.format("scale"),
        "src/lib.rs": "pub fn twice(n: i32) -> i32 {\n    2 * n\n}\n",
    }
    sums = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in crate.items()}
    crate[".cargo-checksum.json"] = json.dumps({"files": sums, "package": "0" * 64})
    write_files(project, {f"vendor/scale/{path}": text for path, text in crate.items()})
    user_runs(project, "cargo", "generate-lockfile", "--offline")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "Lock file")
    right = RUST_WRONG.replace("a - b", "a + b")
    return project, "src/lib.rs", right, check("cargo", "test", "--offline")


def user_runs(
    project: Path,
    *command: str,
    expect: Sequence[int] = (0,),
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run a command as the user does, before mimir is started."""
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in expect, done.stdout + done.stderr


def enter_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a user's home with the toolchains and the build cache of this machine."""
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    own = Path(pwd.getpwuid(os.getuid()).pw_dir)
    # Go compiles its own library at the first test: half a minute of CPU that is worth keeping.
    for name, place in (("RUSTUP_HOME", own / ".rustup"), ("GOCACHE", own / ".cache/go-build")):
        if name not in os.environ and own.is_dir():
            monkeypatch.setenv(name, str(place))


def require_program(name: str) -> None:
    """Skip the test without a program that it needs; in CI it fails."""
    if shutil.which(name) is None:
        stop = pytest.fail if os.environ.get(NEO4J_REQUIRED) else pytest.skip
        stop(f"needs the program {name}")
