from dataclasses import replace

from mimir.recordings.engine_replay.differences import diff_outcomes
from mimir.recordings.format.recording import RecordedOutcome

END = RecordedOutcome(status="completed", seal="", report="", plan="", evidence=(), verdicts=())


def differing(report: str, now: str) -> str:
    (one,) = diff_outcomes(replace(END, report=report), replace(END, report=now))
    return f"{one.where}: {one.what}"


def test_short_lines_that_differ_are_shown_whole():
    assert differing("a\nb\n", "a\nc\n") == "report, line 2: recorded 'b', replayed 'c'"


def test_long_lines_are_shown_where_they_differ():
    line = "| task-1.4 | Markdown tables | worker_executing | 0 | 2 of 3 | {} of 9 | none |"

    said = differing(line.format(2), line.format(14))

    assert said == "report, line 1: characters 64–65: recorded '2', replayed '14'"


def test_line_that_is_missing_is_told_as_empty():
    assert differing("a\nb\n", "a\n") == "report, line 2: recorded 'b', replayed ''"
