"""Attacks on `mimir mcp --http`: no token, wrong headers, too much, and the runs of another token."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from mimir.planning.renderer import render
from tests.support.mcp_http import HttpSite, http_site
from tests.support.projects import make_project
from tests.support.terminal import environment
from tests.support.whole_run import REST, calls, plan, step, worker

SECRET = "The words of the owner"
ASKS = calls("ask_user", title=SECRET, text="Where?", options=["eu-west", "us-east"])
SCRIPT = {"parts": [worker("c", {"calls": [ASKS]}, "Done."), *REST]}


@dataclass(frozen=True, kw_only=True)
class Served:
    """A served project with a paused run of the token `owner`."""

    site: HttpSite
    tokens: Mapping[str, str]
    run: str
    question: str
    project: Path
    env: Mapping[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    room = tmp_path_factory.mktemp("mcp")
    project = make_project(room / "project", {"README.md": "# A project\n"})
    (room / "script.yaml").write_text(yaml.safe_dump(SCRIPT), encoding="utf-8")
    made = plan(step("c", tools=("read_file", "write_file", "ask_user")), title=SECRET)
    (project / "plan.md").write_text(render(made), encoding="utf-8")
    env = environment(
        HOME=str(room),
        XDG_CONFIG_HOME=str(room / "config"),
        MIMIR_MODEL="play:../script.yaml",
        MIMIR_CHECKS__CONTROLS="never",
    )

    def mimir(*words: str, code: int = 0, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mimir", *words],
            cwd=project,
            env={**env, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    mimir("execute", "plan.md", "--yes", code=75, MIMIR_PRINCIPAL="token:owner")
    scopes = {
        "owner": "read,work,answer",
        "other": "read,work,answer",
        "reader": "read",
        "busy": "read",
        "gone": "read",
        "old": "read",
        "listener": "read",
    }
    tokens = {
        name: mimir("mcp", "token", name, "--scope", given).strip()
        for name, given in scopes.items()
    }
    mimir("mcp", "revoke", "old")
    file = room / "config" / "mimir" / "tokens.json"
    assert not any(token in file.read_text() for token in tokens.values())
    assert file.stat().st_mode & 0o077 == 0
    status = json.loads(mimir("status", "--json"))
    with http_site(project, env) as site:
        yield Served(
            site=site,
            tokens=tokens,
            run=status["run"],
            question=status["questions"][0]["id"],
            project=project,
            env=env,
        )


def test_requests_without_right_token_host_origin_type_or_size_are_refused(served: Served):
    site, token = served.site, served.tokens["reader"]
    expected: dict[str, tuple[int, dict[str, Any]]] = {
        "no token": (401, {"headers": {"Authorization": ""}}),
        "wrong token": (401, {"headers": {"Authorization": f"Bearer {token}x"}}),
        "revoked token": (401, {"headers": {"Authorization": f"Bearer {served.tokens['old']}"}}),
        "token in the address": (401, {"query": f"?token={token}"}),
        "wrong host": (421, {"headers": {"Host": "evil.example"}}),
        "wrong origin": (403, {"headers": {"Origin": "http://evil.example"}}),
        "own origin": (200, {"headers": {"Origin": site.url.removesuffix("/mcp")}}),
        "wrong type": (415, {"headers": {"Content-Type": "text/plain"}}),
        "too large": (413, {"content": b" " * (4 * 1024 * 1024 + 1)}),
        "another method in the header": (400, {"headers": {"Mcp-Method": "tools/call"}}),
        "no JSON": (400, {"content": b"{"}),
    }
    for case, (status, changed) in expected.items():
        response = site.post(token, **changed)
        assert response.status_code == status, (case, response.text)
        assert str(served.project) not in response.text
        assert "Traceback" not in response.text
    # A stream would hold one of the places of the token.
    assert site.get(token).status_code == 405


def test_left_clients_free_their_places_and_an_occupied_port_is_named(served: Served):
    site, token = served.site, served.tokens["gone"]
    # Given more clients than places, each of which leaves in the middle of its request
    place = ("127.0.0.1", int(site.url.rpartition(":")[2].partition("/")[0]))
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    for _ in range(12):
        with socket.create_connection(place) as client:
            client.sendall(head.encode())

    # Then the next one is served, as soon as the server has seen the ends
    answers = (site.post(token) for _ in range(30))
    assert next((one for one in answers if one.status_code == 200), None), "every place is taken"

    second = [sys.executable, "-m", "mimir", "mcp", "--http", "--address", f"{place[0]}:{place[1]}"]
    refused = subprocess.run(
        second, cwd=served.project, env=served.env, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 69
    assert "Another project may be served there" in refused.stderr


def test_a_scope_limits_the_list_and_the_calls(served: Served):
    site, token = served.site, served.tokens["reader"]
    listed = [one["name"] for one in site.post(token).json()["result"]["tools"]]
    refused = site.post(token, "tools/call", {"name": "execute", "arguments": {"plan": "plan.md"}})

    assert listed == ["status", "report", "memory_search", "inbox"]
    assert refused.status_code == 403
    assert 'scope="work"' in refused.headers["WWW-Authenticate"]


def test_a_token_sees_nothing_of_the_runs_of_another(served: Served):
    site, other, owner = served.site, served.tokens["other"], served.tokens["owner"]
    answers = [
        site.call(other, "status"),
        site.call(other, "status", run=served.run),
        site.call(other, "status", run="run-"),
        site.call(other, "report", run=served.run),
        site.call(other, "execute", plan="plan.md", **{"from": served.run}),
        site.call(other, "answer", answers={served.question: "eu-west"}),
    ]
    unknown = site.call(other, "status", run="run-none")

    assert all(one["is_error"] for one in answers)
    assert answers[1]["problem"] == unknown["problem"].replace("run-none", served.run)
    assert site.call(other, "inbox")["questions"] == []
    assert site.call(other, "answer")["next"] == "No question is open."
    assert SECRET not in json.dumps([answers, site.call(other, "memory_search", text=SECRET)])
    # And the owner sees all of it.
    assert site.call(owner, "status")["run"] == served.run
    assert site.call(owner, "inbox")["questions"][0]["id"] == served.question
    assert SECRET in site.call(owner, "report")["text"]


def test_notices_are_of_own_runs_only_and_end_with_the_token(served: Served):
    site, method = served.site, "subscriptions/listen"
    report = f"mimir://runs/{served.run}/report"

    def watch(*uris: str) -> dict[str, object]:
        return {"notifications": {"resourceSubscriptions": [*uris]}}

    foreign = site.post(served.tokens["other"], method, watch(report))
    unknown = site.post(served.tokens["other"], method, watch("mimir://runs/run-none/report"))
    assert "nothing to watch" in foreign.text
    assert foreign.json()["error"] == unknown.json()["error"]

    # When a token that listens is revoked, its stream ends without any notice of the run.
    with site.stream(served.tokens["listener"], method, watch("mimir://inbox", report)) as lines:
        assert "subscriptions/acknowledged" in next(lines)
        words = [sys.executable, "-m", "mimir", "mcp", "revoke", "listener"]
        subprocess.run(words, cwd=served.project, env=served.env, check=True, capture_output=True)
        rest = "".join(lines)
    assert "result" in rest
    assert served.run not in rest


def test_a_hundred_requests_at_once_are_limited(served: Served):
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(served.site.post, [served.tokens["busy"]] * 100))

    codes = [one.status_code for one in answers]
    assert set(codes) == {200, 429}
    assert codes.count(200) <= 60
    assert all("Retry-After" in one.headers for one in answers if one.status_code == 429)
    # The limit is that of one token.
    assert served.site.post(served.tokens["reader"]).status_code == 200


def test_a_sealed_state_answers_for_its_principal_and_call_only_and_once(served: Served):
    site, owner, other = served.site, served.tokens["owner"], served.tokens["other"]
    asked = site.post(owner, "tools/call", {"name": "answer"}).json()["result"]
    assert list(asked["inputRequests"]) == [served.question]
    form = {"action": "accept", "content": {"answer": "us-east"}}
    filled = {
        "name": "answer",
        "requestState": asked["requestState"],
        "inputResponses": {served.question: form},
    }
    forged = [
        site.post(other, "tools/call", filled),
        site.post(owner, "tools/call", {**filled, "arguments": {"questions": ["q-1"]}}),
        site.post(owner, "tools/call", {**filled, "requestState": f"{asked['requestState']}A"}),
    ]
    # A server whose key file is lost asks again; the next one with the key takes the answer.
    (key,) = served.project.parent.glob("**/request-state")
    kept = key.rename(key.with_name("kept"))
    with http_site(served.project, served.env) as keyless:
        forged.append(keyless.post(owner, "tools/call", filled))
        again = keyless.post(owner, "tools/call", {"name": "answer"}).json()["result"]
    kept.rename(key)
    with http_site(served.project, served.env) as restarted:
        first = restarted.post(owner, "tools/call", filled).json()["result"]
    second = site.post(owner, "tools/call", filled).json()["result"]

    assert {one.json()["error"]["code"] for one in forged} == {-32602}
    assert list(again["inputRequests"]) == [served.question]
    assert first["structuredContent"]["answered"][0]["answer"] == "us-east"
    assert second["structuredContent"]["answered"] == []
    assert "was answered" in second["structuredContent"]["refused"][0]["problem"]
