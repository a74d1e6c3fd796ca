"""A recording's file: written lines are read back, and a changed line is refused by its number."""

import json
from pathlib import Path

import pytest

from mimir.errors import PlanError
from mimir.recordings.format.recording_file import (
    VERSION,
    RecordingWriter,
    hash_line,
    read_recording,
)
from tests.support.recorded_runs import Line, lines

EVENT: Line = {
    "kind": "event", "run": "run-1", "seq": 1, "event": "RunCreated", "at": "2026-01-02T03:04:05.000000Z",
    "task": "", "attempt": 0, "data": {"tasks": []},
}  # fmt: skip

CALL: Line = {
    "kind": "call", "lane": "run-1/t1/1/worker", "seq": 0, "call": "model", "tool": "", "title": "", "request": {},
    "request_hash": "", "answer": {"message": {"role": "assistant", "text": "x"}, "finish": "stop"}, "usage": None,
    "tree": "", "lane_hash": "",
}  # fmt: skip


def event(seq: int) -> Line:
    return {**EVENT, "seq": seq}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    writer = RecordingWriter(path, "run.jsonl", engine="1.0")
    for seq in (1, 2, 3):
        writer.write(event(seq))
    writer.close()
    return path


def refused(path: Path) -> PlanError:
    with pytest.raises(PlanError) as caught:
        read_recording(path, path.name)
    assert caught.value.exit_code == 65
    assert caught.value.next_step
    return caught.value


def test_lines_are_read_as_they_were_written(file: Path):
    tape, broken = read_recording(file, "run.jsonl")
    assert [e.seq for e in tape.runs["run-1"].events] == [1, 2, 3]
    assert broken == []
    assert file.stat().st_mode & 0o777 == 0o600


def test_lines_are_written_behind_those_that_are_there(file: Path):
    writer = RecordingWriter(file, "run.jsonl", engine="1.0")
    assert writer.known is not None
    writer.write(event(4))
    writer.close()
    assert [line.get("seq") for line in lines(file)] == [None, 1, 2, 3, 4]


def test_recordings_are_merged_by_putting_them_behind_one_another(file: Path):
    file.write_text(file.read_text() * 2)
    tape, _ = read_recording(file, "run.jsonl")
    assert [e.seq for e in tape.runs["run-1"].events] == [1, 2, 3]


def test_cut_last_line_is_refused_by_the_reader(file: Path):
    file.write_bytes(file.read_bytes()[:-20])
    error = refused(file)
    assert (error.at and error.at.line, error.code) == (4, "recording-cut")


def test_cut_last_line_is_removed_by_the_next_writer(file: Path):
    file.write_bytes(file.read_bytes()[:-20])
    writer = RecordingWriter(file, "run.jsonl", engine="1.0")
    assert writer.healed
    writer.write(event(3))
    writer.close()
    assert [e.seq for e in read_recording(file, "run.jsonl")[0].runs["run-1"].events] == [1, 2, 3]


@pytest.mark.parametrize("number", ["NaN", "1e999"])
def test_number_that_json_does_not_have_is_refused(file: Path, number: str):
    texts = file.read_text().splitlines()
    texts[2] = texts[2].replace('"attempt":0', f'"attempt":{number}')
    file.write_text("\n".join(texts) + "\n")
    error = refused(file)
    assert (error.at and error.at.line, error.code) == (3, "recording-damaged")
    assert "not a JSON object" in str(error)


def test_missing_member_of_a_line_is_named(tmp_path: Path):
    path = tmp_path / "odd.jsonl"
    short = {name: value for name, value in EVENT.items() if name != "task"}
    path.write_text(f"{hash_line({'recording': VERSION})}\n{hash_line(short)}\n")
    assert "event 1 (RunCreated) cannot be read: it has no 'task'." in str(refused(path))


def test_half_a_line_in_the_middle_is_refused(file: Path):
    texts = file.read_text().splitlines()
    texts[2] = texts[2][:40]
    file.write_text("\n".join(texts) + "\n")
    error = refused(file)
    assert (error.at and error.at.line, error.code) == (3, "recording-damaged")


def test_line_that_was_edited_is_refused_and_named(file: Path):
    content = lines(file)
    content[2]["task"] = "task-9"
    file.write_text("".join(json.dumps(line) + "\n" for line in content))
    error = refused(file)
    assert (error.at and error.at.line, error.code) == (3, "recording-changed")
    assert "event 2 (RunCreated)" in str(error)
    _, broken = read_recording(file, "run.jsonl", forgive=True)
    assert [(b.line, b.label) for b in broken] == [(3, "event 2 (RunCreated)")]


def test_edited_version_line_is_refused(file: Path):
    content = lines(file)
    content[0]["engine"] = "0.9"
    file.write_text("".join(json.dumps(line) + "\n" for line in content))
    error = refused(file)
    assert (error.at and error.at.line, error.code) == (1, "recording-changed")
    assert "the version line" in str(error)


def test_other_version_that_continues_a_recording_names_itself(file: Path):
    for engine in ("1.1", "1.1"):
        RecordingWriter(file, "run.jsonl", engine=engine).close()
    assert [line["engine"] for line in lines(file) if "recording" in line] == ["1.0", "1.1"]
    assert read_recording(file, "run.jsonl")[0].engine == "1.1"


def test_edited_hash_is_found_like_edited_content(file: Path):
    content = lines(file)
    content[1]["sha256"] = "0" * 64
    file.write_text("".join(json.dumps(line) + "\n" for line in content))
    assert refused(file).code == "recording-changed"


@pytest.mark.parametrize("version", [0, VERSION + 1, "1", None])
def test_recording_of_another_version_is_refused(file: Path, version: object):
    rest = file.read_text().split("\n", 1)[1]
    file.write_text(hash_line({"recording": version}) + "\n" + rest)
    error = refused(file)
    assert error.code == "recording-version"
    assert repr(str(version)) in str(error)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "recording-empty"),
        (b"hello\n", "recording-unknown"),
        (b"{}\n", "recording-unknown"),
        (b"[1]\n", "recording-unknown"),
        (b"\xff\xfe\n", "recording-unknown"),
        (b"[" * 100_000 + b"\n", "recording-unknown"),
        (hash_line({"recording": VERSION}).encode() + b"\n", "recording-empty"),
    ],
)
def test_file_that_is_no_recording_is_refused(tmp_path: Path, content: bytes, code: str):
    path = tmp_path / "odd.jsonl"
    path.write_bytes(content)
    assert refused(path).code == code


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "story"},
        {"seq": "two"},
        {"event": "Sang"},
        {"data": []},
        {"data": {"to": {}}},
        {"data": {"role": ["worker"]}},
        {"at": "yesterday"},
        {"at": "2026-13-02T03:04:05.000000Z"},
        {"task": 7},
        {"run": None},
        {"kind": "call"},
        {**CALL, "call": "song"},
        {
            **CALL,
            "answer": {"message": {"role": "assistant", "text": "x"}, "finish": "wandered off"},
        },
        {**CALL, "answer": {"message": {"role": "assistant", "text": 7}, "finish": "stop"}},
        {**CALL, "request": {"kept": 0, "messages": [{"role": "stranger", "text": "x"}]}},
        {**CALL, "usage": [1]},
        {**CALL, "usage": [1, 10**12]},
        {**CALL, "seq": 2**70},
        {
            **CALL,
            "call": "tool",
            "answer": {"text": "x", "is_error": False, "denied": False, "exit_code": "0"},
        },
        {**CALL, "call": "tool", "answer": {"text": "x", "is_error": False}},
        {"kind": "text", "name": "preambles", "text": [["worker", "Writer", "Work."]]},
        {"kind": "text", "name": "brief", "text": ["x"]},
        {"kind": "text", "name": "background", "text": {"given": 7}},
        {"kind": "attempt", "base": "", "seconds": "long"},
        {
            "kind": "end",
            "status": "completed",
            "seal": "",
            "report": "",
            "plan": "",
            "evidence": [7],
            "verdicts": [],
            "measured": [],
        },
        {"kind": "check", "timeout": None},
    ],
)
def test_line_of_another_form_is_refused(tmp_path: Path, change: Line):
    path = tmp_path / "odd.jsonl"
    path.write_text(f"{hash_line({'recording': VERSION})}\n{hash_line({**EVENT, **change})}\n")
    error = refused(path)
    assert (error.at and error.at.line, error.code) == (2, "recording-damaged")


def test_first_call_of_a_recording_is_read(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    path.write_text(f"{hash_line({'recording': VERSION})}\n{hash_line({**EVENT, **CALL})}\n")
    tape, _ = read_recording(path, path.name)
    assert tape.runs["run-1"].model_calls("t1/1/worker")[0].seq == 0


def test_file_that_is_not_there_is_refused(tmp_path: Path):
    assert refused(tmp_path / "none.jsonl").code == "recording-unreadable"
