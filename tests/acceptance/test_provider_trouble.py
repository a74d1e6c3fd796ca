"""Trouble with the model, through the whole command line: a run ends truly or pauses; nothing is failed for the provider's faults."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk, asked_twice
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, Part, calls, plan, qc, step, worker, writes, wrote

TWO = plan(step("a"), step("b", "a"), title="Two small files")
ONE = plan(step("a"), title="One small file")
QUICK = {"LLM__TRIES": 2, "LLM__RETRY_SECONDS": 2, "LLM__STALL_SECONDS": 1, "LLM__CONNECT_SECONDS": 1}  # fmt: skip
DONE = "a.txt is written."
VERDICT = {"verdict": {"auto": "pass"}}


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.write("two.md", render(TWO))
    desk.write("one.md", render(ONE))
    return desk


def staged(fault: str, **more: object) -> dict[str, object]:
    return {"fault": {"name": fault, **more}}


def play(*parts: Part) -> dict[str, object]:
    return {"parts": [*parts, wrote("a"), wrote("b"), *REST]}


def first(turn: dict[str, object], *then: object) -> Part:
    """Let the worker of `a` begin with a turn, and do its work behind it."""
    return worker("a", turn, *(then or (writes("a.txt", "a\n"), DONE)))


class Falling(PlayServer):
    """Lose the server when a task is claimed; start it again on request."""

    down_at = "b"

    async def _completion(self, line, connection, headers, body):  # type: ignore[no-untyped-def]
        if f"/{self.down_at}/" in headers.get("x-mimir-lane", ""):
            self.down_at = "-"
            await self._close()
            return False
        return await super()._completion(line, connection, headers, body)


def test_a_provider_that_is_down_for_good_pauses_the_run_until_it_is_back(desk: Desk):
    with Falling(play()) as server:
        paused = desk.ask(server, **QUICK).type("execute", "two.md", "--yes")

        assert paused.code == 75
        assert desk.statuses() == {"a": "completed", "b": "worker_executing"}
        status = desk.status()
        assert (status["status"], status["reason"]) == ("paused", "provider")
        assert "mimir resume" in paused.out
        assert "Traceback" not in paused.out + paused.err
        assert desk.type("resume").code == 75, "it is still down"
        assert desk.statuses() == {"a": "completed", "b": "worker_executing"}

        server.accept()
        resumed = desk.type("resume")
        assert resumed.code == 0, resumed.out + resumed.err
        assert asked_twice(server) == []
    tasks = desk.status()["tasks"]
    assert [(t["status"], t["attempts"], t["score"]) for t in tasks] == [
        ("completed", 1, 100.0)
    ] * 2
    assert (desk.project / "b.txt").read_text(encoding="utf-8") == "b\n"
    assert desk.type("verify").code == 0


@pytest.mark.parametrize(
    ("fault", "setting"),
    [
        ("unauthorized", "llm.api_key"),
        ("payment_required", "llm.api_key"),
        ("forbidden", "llm.api_key"),
        ("no_credit", "llm.api_key"),
        ("unknown_model", "llm.model"),
        ("wrong_address", "llm.base_url"),
    ],
)
def test_wrong_configuration_pauses_at_once_and_resume_continues_after_a_repair(
    fault: str, setting: str, desk: Desk, tmp_path: Path
):
    broken = tmp_path / "broken"
    broken.touch()
    with PlayServer(play(first({**staged(fault, while_file=str(broken)), **writes("a.txt", "a\n")}, DONE))) as server:  # fmt: skip
        desk.ask(server, **QUICK)
        paused = desk.type("execute", "one.md", "--yes")
        assert paused.code == 78
        assert len(server.of("worker")) == 1, "it was not tried again"
        assert setting in paused.out
        assert "mimir resume" in paused.out
        assert desk.statuses() == {"a": "worker_executing"}
        assert desk.status()["reason"] == "configuration"

        broken.unlink()
        assert desk.type("resume").code == 0
        assert desk.status()["tasks"][0]["attempts"] == 1


@pytest.mark.parametrize("role", ["worker", "qc"])
def test_unknown_model_is_replaced_by_the_configured_model_at_resume(
    role: str, desk: Desk, tmp_path: Path
):
    broken = tmp_path / "broken"
    broken.touch()
    refused = staged("unknown_model", while_file=str(broken))
    parts = {"worker": first({**refused, **writes("a.txt", "a\n")}, DONE), "qc": qc("a", {**refused, **VERDICT})}  # fmt: skip
    with PlayServer(play(parts[role])) as server:
        desk.ask(server, MODEL="misspelt", **QUICK)
        assert desk.type("execute", "one.md", "--yes", "--record", "run.jsonl").code == 78
        broken.unlink()
        before = len(server.requests)
        desk.environ(MIMIR_MODEL="right")

        resumed = desk.type("resume", "--record", "run.jsonl", "--max-calls", "50")

        assert resumed.code == 0, resumed.out + resumed.err
        assert {seen.body["model"] for seen in server.requests[before:]} == {"right"}
    assert "The run uses other models from now on: " in resumed.out
    assert f"{role} right" in resumed.out
    assert desk.status()["tasks"][0]["attempts"] == 1
    for words in (("replay", "run.jsonl"), ("replay",)):
        replayed = desk.type(*words)
        assert replayed.code == 0, replayed.out + replayed.err


def test_a_run_whose_answers_another_model_has_replaced_cannot_be_replayed(
    desk: Desk, tmp_path: Path
):
    broken = tmp_path / "broken"
    broken.touch()
    refused = staged("unknown_model", while_file=str(broken))
    reads = {"calls": [calls("read_file", path="one.md")]}
    with PlayServer(play(worker("a", reads, {**refused, **writes("a.txt", "a\n")}, DONE))) as server:  # fmt: skip
        desk.ask(server, MODEL="retired", **QUICK)
        assert desk.type("execute", "one.md", "--yes", "--record", "run.jsonl").code == 78
        broken.unlink()
        desk.environ(MIMIR_MODEL="newer")
        assert desk.type("resume", "--record", "run.jsonl").code == 0
    for words in (("replay", "run.jsonl"), ("replay",)):
        refusal = desk.type(*words)
        assert refusal.code == 65
        assert "the earlier calls are gone" in refusal.err


def test_resumed_run_uses_the_models_of_its_start(desk: Desk):
    with PlayServer(play()) as server:
        desk.ask(server, MODEL="first", **QUICK)
        assert desk.type("execute", "one.md", "--yes", "--max-calls", "4").code == 75
        desk.environ(MIMIR_MODEL="second", MIMIR_ROLES__QC__TEMPERATURE="0.9")

        resumed = desk.type("resume", "--max-calls", "50")

        assert resumed.code == 0, resumed.out + resumed.err
        assert {seen.body["model"] for seen in server.requests} == {"first"}
        assert {seen.body.get("temperature") for seen in server.of("qc")} == {0.0}
    assert "Other models are set now; the run continues with those of its start: " in resumed.out
    assert desk.type("replay").code == 0


def test_wrong_key_is_named_but_not_shown_and_a_right_key_resumes(desk: Desk):
    with PlayServer(play(), key="sk-the-right-one-77") as server:
        desk.ask(server, **QUICK)
        paused = desk.type("execute", "one.md", "--yes", "--json")
        assert paused.code == 78
        assert paused.events[-1]["outcome"] == "paused"
        assert "llm.api_key" in paused.err
        assert not server.requests
        desk.environ(OPENAI_API_KEY="sk-the-right-one-77")
        assert desk.type("resume").code == 0
    everything = [p.read_bytes() for p in desk.project.rglob("*") if p.is_file()]
    assert not any(b"sk-the-right-one-77" in one or b"sk-test-0123456789" in one for one in everything)  # fmt: skip


PASSING = {
    "rate_limited": staged("rate_limited", times=1, seconds=1),
    "bare 429": staged("rate_limited_bare", times=1),
    "server error": staged("server_error", times=1),
    "refused": staged("refused", times=1),
    "reset": staged("reset", times=1),
    "stall": staged("stall_first_byte", times=1),
    "stall in the middle": staged("stall_middle", times=1),
    "cut stream": staged("cut_stream", times=1),
    "error in the stream": staged("error_in_stream", times=1),
    "page": staged("html_page", times=1),
}


ALONE = ("--yes", "--workers", "1")
"""One task at a time: the trouble of one must not meet the requests of another."""


def numbered(cases: Iterable[str]) -> dict[str, str]:
    """Return case by task, for one run of them all."""
    return {f"t{number}": case for number, case in enumerate(cases, start=1)}


def test_short_provider_error_uses_up_no_attempt(desk: Desk):
    tasks = numbered(PASSING)
    desk.write("many.md", render(plan(*map(step, tasks))))
    parts = [
        worker(id, {**PASSING[trouble], **writes(f"{id}.txt", f"{id}\n")}, DONE)
        for id, trouble in tasks.items()
    ]
    with PlayServer(play(*parts)) as server:
        patient = {**QUICK, "LLM__STALL_SECONDS": 3}  # a loaded machine is no trouble
        ended = desk.ask(server, **patient).type("execute", "many.md", *ALONE)
        assert ended.code == 0, ended.out + ended.err
        asked = {name: len(server.of("worker", id)) for id, name in tasks.items()}
    assert asked == dict.fromkeys(PASSING, 3)
    assert {task["attempts"] for task in desk.status()["tasks"]} == {1}
    assert "Traceback" not in ended.err


ODD = {
    "empty": "completed",
    "unknown_tool": "completed",
    "wrong_arguments": "completed",
    "invalid_arguments": "completed",
    "hundred_calls": "failed",
    "odd_characters": "failed",
    "context_length": "failed",
    "filtered": "failed",
    "finish_length": "completed",
    "usage_missing": "completed",
}


def odd(id: str, fault: str) -> Part:
    made = writes(f"{id}.txt", f"{id}\n")
    turns = [{**staged(fault), **made}] if fault == "usage_missing" else [staged(fault), made]
    return {**worker(id, *turns, DONE), "closing": {"text": "I had no calls left."}}


def test_unusual_answer_leads_to_a_correct_outcome(desk: Desk):
    tasks = numbered(ODD)
    desk.write("many.md", render(plan(*map(step, tasks))))
    with PlayServer(play(*(odd(id, fault) for id, fault in tasks.items()))) as server:
        ended = desk.ask(server, **{**QUICK, "LLM__STALL_SECONDS": 3}).type(
            "execute", "many.md", *ALONE
        )
    statuses = desk.statuses()
    assert {fault: statuses[id] for id, fault in tasks.items()} == ODD, ended.out
    assert ended.code == 1
    assert "Traceback" not in ended.out + ended.err
    assert desk.type("verify").code == 0
    assert all(task["tool_calls"] <= task["limit"] for task in desk.status()["tasks"])


def test_planning_pauses_and_resumes(desk: Desk, tmp_path: Path):
    broken = tmp_path / "broken"
    broken.touch()
    pm = {"role": "pm", "turns": [{**staged("unavailable", while_file=str(broken)), "text": render(ONE)}]}  # fmt: skip
    with PlayServer(play(pm)) as server:
        paused = desk.ask(server, **QUICK).type("chain", "Write one small file")
        assert paused.code == 75
        assert len(paused.error) <= 3
        assert "mimir resume" in paused.err
        broken.unlink()
        resumed = desk.type("resume")
        assert resumed.code == 0, resumed.err
    assert (desk.project / "chains/write-one-small-file/chain-output.md").is_file()
