"""The official inspector and the conformance suite of the protocol against `mimir mcp`, over both transports."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from mimir.planning.renderer import render
from tests.support.mcp_http import http_site
from tests.support.projects import make_project
from tests.support.protocol_programs import run_conformance, run_inspector
from tests.support.terminal import environment
from tests.support.whole_run import REST, plan, step, wrote

MIMIR = (sys.executable, "-m", "mimir")
MADE = plan(step("a"))
SCRIPT = {"parts": [{"role": "pm", "turns": [render(MADE)]}, wrote("a"), *REST]}
RESOURCE = ("--method", "resources/read", "--uri", "mimir://guide/delegation")
PROMPT = ("--method", "prompts/get", "--prompt-name", "delegate", "--prompt-args", "task=Write it")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(SCRIPT), encoding="utf-8")
    return make_project(tmp_path / "project", {"README.md": "# A project\n"})


@pytest.mark.timeout(400)  # fourteen programs start, one after another
def test_the_official_programs_find_no_new_fault(project: Path, tmp_path: Path):
    env = environment(
        HOME=str(tmp_path),
        MIMIR_MODEL="play:../script.yaml",
        MIMIR_CHECKS__CONTROLS="never",
        # The programs send many requests in a second.
        MIMIR_MCP__REQUESTS_PER_MINUTE="1000",
    )
    made = subprocess.run(
        [*MIMIR, "mcp", "token", "official", "--scope", "read,work,answer"],
        cwd=project, env=env, check=True, capture_output=True, text=True,
    )  # fmt: skip
    token = made.stdout.strip()

    with http_site(project, env) as site:
        inspect = partial(_inspect, project, env, _http(site.url, token))
        listed = inspect("--method", "tools/list", "--strict")
        call = partial(_call, inspect)
        planned = call("plan", request="Write the file a.txt.")
        executed = call("execute", plan=planned["path"])
        read = [call(name, run=executed["run"]) for name in ("status", "report")]
        call("answer")
        call("memory_search", text="file")
        call("memory_add", text="a.txt has one line.")
        call("inbox")
        inspect(*RESOURCE)
        inspect(*PROMPT)
        suite = run_conformance(site.url, token, place=tmp_path)

    names = [tool["name"] for tool in listed["tools"]]
    assert names == [
        *("plan", "execute", "status", "report", "answer", "memory_search", "memory_add", "inbox")
    ]
    assert (planned["status"], executed["status"]) == ("completed", "completed")
    assert [one["run"] for one in read] == [executed["run"]] * 2
    assert suite.returncode == 0, suite.stdout[-3000:] + suite.stderr

    # The same over standard input and output, where each request starts a server.
    pipe = partial(_inspect, project, env, ("--", *MIMIR, "mcp", "--tools", "core"))
    assert pipe("--method", "tools/list", "--strict") == listed
    assert _call(pipe, "status", run=executed["run"])["status"] == "completed"


def _http(url: str, token: str) -> tuple[str, ...]:
    return (
        "--transport",
        "http",
        "--server-url",
        url,
        "--header",
        f"Authorization: Bearer {token}",
    )


def _inspect(project: Path, env: dict[str, str], target: tuple[str, ...], *words: str) -> Any:
    """Return the result of a request; any error or finding of the inspector fails the test."""
    done = run_inspector(*words, *target, project=project, env=env)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return json.loads(done.stdout)


def _call(inspect: "partial[Any]", tool: str, **arguments: object) -> dict[str, Any]:
    words = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    return inspect("--method", "tools/call", *words)["structuredContent"]
