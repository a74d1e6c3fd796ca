from dataclasses import replace

from mimir.recordings.engine_replay.differences import diff_outcomes
from mimir.recordings.format.recording import RecordedOutcome

END = RecordedOutcome(status="completed", seal="", report="", plan="", evidence=(), verdicts=())


def differing(report: str, now: str) -> str:
    (one,) = diff_outcomes(replace(END, report=report), replace(END, report=now), is_older=False)
    return f"{one.where}: {one.detail}"


def test_short_lines_that_differ_are_shown_whole():
    assert differing("a\nb\n", "a\nc\n") == "report, line 2: recorded 'b', replayed 'c'"


def test_long_lines_are_shown_where_they_differ():
    line = "| task-1.4 | Markdown tables | worker_executing | 0 | 2 of 3 | {} of 9 | none |"

    said = differing(line.format(2), line.format(14))

    assert said == "report, line 1: characters 64–65: recorded '2', replayed '14'"


def test_missing_line_is_an_empty_difference():
    assert differing("a\nb\n", "a\n") == "report, line 2: recorded 'b', replayed ''"


def test_report_is_compared_only_with_the_version_that_wrote_it():
    recorded, now = replace(END, report="a\n"), replace(END, report="b\n")
    assert [one.where for one in diff_outcomes(recorded, now, is_older=False)] == ["report, line 1"]
    assert diff_outcomes(recorded, now, is_older=True) == []


def test_facts_of_another_version_are_compared():
    recorded = replace(END, plan="q\n", verdicts=({"id": "v", "score": 1},))
    now = replace(END, plan="p\n", status="failed", verdicts=({"id": "v", "score": 2},), seal="s")
    found = [one.where for one in diff_outcomes(recorded, now, is_older=True)]
    assert found == ["plan, line 1", "verdict v", "seal", "status"]


def test_members_and_records_that_another_version_lacks_are_not_compared():
    recorded = replace(END, evidence=({"id": "e", "hash": "1"},), seal="s")
    known = {"id": "e", "hash": "1", "tests": "3 of 3"}
    now = replace(END, plan="p\n", evidence=(known, {"id": "control", "hash": "2"}), seal="t")
    assert diff_outcomes(recorded, now, is_older=True) == []
    changed = replace(now, evidence=({**known, "hash": "3"},))
    found = [one.where for one in diff_outcomes(recorded, changed, is_older=True)]
    assert found == ["evidence e", "seal"]
