"""`status`, `report`, `verify`, `doctor` and `mimir` alone."""

import os
from pathlib import Path

import pytest

from mimir.errors import ConfigurationError
from tests.support.fake_app import RUN, FakeDiagnosis, FakeMimir, FakeVerified, Mimir


def test_status_has_one_line_per_task(mimir: Mimir, fake: FakeMimir):
    fake.state = {"elapsed_seconds": 62, "calls": 12, "tokens": 3456, "title": "Limiter"}
    said = mimir("status")
    assert said.code == 0
    assert fake.opened[0][2] is False
    assert said.out.splitlines() == [
        "run-1  completed",
        "title: Limiter",
        "used: 1:02, 12 model calls, 3,456 tokens",
        "  task    phase      try  score  calls  criteria  title",
        "✔ task-0  completed    1    100   3/12  2x 1j     Look",
        "criteria: x executed, j judged, u unverified, f failed",
        "next: mimir report run-1",
        "next: mimir verify run-1",
    ]


def test_status_for_scripts_has_the_documented_shape(mimir: Mimir):
    shape = mimir("status", "--json").shape
    assert shape["schema"] == 1
    assert {"run", "status", "outcome", "tasks"} <= set(shape)


def test_verify_names_each_record_that_is_broken(mimir: Mimir, fake: FakeMimir):
    assert mimir("verify", "--seal", "5ea1").code == 0
    assert fake.calls("verify") == [(RUN, "5ea1")]
    fake.verified = FakeVerified(ok=False, problems=("run-1/task-0/1#00003: edited",))
    said = mimir("verify")
    assert said.code == 1
    assert said.out.splitlines() == [
        "run-1: 1 of 7 records differ from their sealed values:",
        "  run-1/task-0/1#00003: edited",
    ]
    shape = mimir("verify", "--json").shape
    assert shape["ok"] is False
    assert shape["problems"] == ["run-1/task-0/1#00003: edited"]


def test_doctor_fails_on_a_missing_requirement(mimir: Mimir, fake: FakeMimir):
    no_model = FakeDiagnosis(subject="model", ok=False, detail="none", fix="Set MIMIR_MODEL.")
    fake.diagnoses = (FakeDiagnosis(subject="git", ok=True, detail="2.39"), no_model)
    said = mimir("doctor")
    assert said.code == 0
    assert said.out.splitlines() == ["✔ git: 2.39", "✘ model: none", "    Set MIMIR_MODEL."]
    fake.diagnoses = (FakeDiagnosis(subject="sandbox", ok=False, detail="no bwrap"),)
    assert mimir("doctor").code == 69
    assert mimir("doctor", "--json").shape["ok"] is False


def test_mimir_without_arguments_shows_plan_and_run_in_twelve_lines(
    mimir: Mimir, fake: FakeMimir, project: Path
):
    (project / ".mimir" / "mimir.db").touch()
    said = mimir()
    assert said.code == 0
    assert len(said.out.splitlines()) <= 12
    assert "plan:  chains/limiter" in said.out
    assert "run:   run-1 completed" in said.out
    assert fake.opened[0][2] is False


def test_in_an_empty_directory_it_opens_nothing_and_names_the_keyless_way(
    mimir: Mimir, fake: FakeMimir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    said = mimir()
    assert said.code == 0
    assert "mimir demo" in said.out
    assert f"model: the one at {os.environ['OPENAI_BASE_URL']}" in said.out
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert "MIMIR_MODEL" in mimir().out
    assert fake.opened == []
    assert list((tmp_path / "empty").iterdir()) == []


def test_mimir_without_arguments_accepts_an_unreadable_store(
    mimir: Mimir, fake: FakeMimir, project: Path
):
    (project / ".mimir" / "mimir.db").touch()
    fake.raises = {"open": ConfigurationError("a newer schema")}
    said = mimir()
    assert said.code == 0
    assert "a newer schema" in said.err
