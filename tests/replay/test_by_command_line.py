"""Recordings from the command line: two kills in the middle, then the same bytes; another program calls the endpoint."""

import json
import shutil
import signal
import subprocess
import urllib.request
from dataclasses import replace
from pathlib import Path

import yaml

from mimir.planning.renderer import render
from tests.support import shipped_recording
from tests.support.crash.process_forge import PythonProcess
from tests.support.killed_processes import MIMIR, Place, environment
from tests.support.projects import make_project
from tests.support.whole_run import REST, Part

REQUEST = "Write three small files."


def place_env(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user without a key and without an endpoint."""
    given = environment("http://127.0.0.1:9/v1", tmp_path).items()
    return {n: v for n, v in given if not n.startswith("OPENAI_")} | {"PYTHONPATH": str(Path.cwd())}


def place_of(tmp_path: Path, *parts: Part) -> tuple[Place, list[str]]:
    """Return a project with the shipped run's plan, and flags that script its models (or `parts`) and record."""
    made, own = shipped_recording.run()
    project = make_project(tmp_path / "project", shipped_recording.README)
    if not parts:
        (project / "plan.md").write_text(render(made), encoding="utf-8")
    play = tmp_path / "play.yaml"
    play.write_text(yaml.safe_dump({"parts": [*(parts or own), *REST]}), encoding="utf-8")
    place = Place(project=project, env=place_env(tmp_path))
    return place, ["--model", f"play:{play}", "--record", "run.jsonl"]


def test_run_that_was_killed_twice_is_recorded_completely_and_replays(tmp_path: Path) -> None:
    place, flags = place_of(tmp_path)
    assert place.killed_after(14, "execute", "plan.md", "--yes", *flags)
    assert place.killed_after(2, "resume", *flags)
    ended = place.run("resume", *flags)
    assert ended.returncode == 0, ended.stderr

    for what in ("run.jsonl", str(place.status()["run"])):
        replayed = place.run("replay", what, "--json")
        assert replayed.returncode == 0, replayed.stdout
        (run,) = json.loads(replayed.stdout)["runs"]
        assert (run["status"], run["differences"]) == ("completed", [])

    with (place.project / "run.jsonl").open("r+b") as file:
        file.truncate(file.seek(0, 2) - 100)
    cut = place.run("replay", "run.jsonl")
    assert cut.returncode == 65
    error = cut.stderr.splitlines()
    assert len(error) <= 3
    assert "recording-cut" in error[0]


def test_other_program_uses_a_recording_as_its_endpoint(tmp_path: Path) -> None:
    place, _ = place_of(tmp_path)
    words = [*MIMIR, "serve-recording", str(shipped_recording.FILE)]
    with PythonProcess(
        words, cwd=place.project, env=dict(place.env), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/models") as answer:
            assert json.loads(answer.read())["data"][0]["id"] == "recorded"
        server.send_signal(signal.SIGINT)
        assert server.wait() == 130


def test_planned_request_is_repeated_in_a_clone_more_than_once(
    tmp_path: Path,
) -> None:
    made, parts = shipped_recording.run()
    planning = (
        {"role": "ecko", "turns": ["## Goal\nWrite three small files.\n## Assumptions\nNone."]},
        {"role": "pm", "turns": [render(made)]},
    )
    place, flags = place_of(tmp_path, *planning, *parts)
    common = ["execute", REQUEST, "--ecko", "--yes", "--apply", "never"]
    done = place.run(*common, *flags)
    assert done.returncode == 0, done.stderr[-2000:]

    subprocess.run(["git", "clone", "--quiet", place.project, "clone"], cwd=tmp_path, check=True)
    clone = replace(place, project=tmp_path / "clone")
    shutil.copy(place.project / "run.jsonl", clone.project)
    for _ in range(2):  # the second time there is a memory of the first, and preambles are cached
        again = ["--replay", "run.jsonl", "--strict", "--workers", "2"]
        done = clone.run(*common, *again)
        assert done.returncode == 0, done.stderr[-2000:]
        assert "missed" not in done.stderr
        assert "not used" not in done.stderr
