"""Release 0.2: what the command line can be asked for."""

from pathlib import Path

import pytest

from tally.__main__ import main

LOG = """\
2026-03-01T10:00:00Z GET /cart 200 40
2026-03-01T10:00:01Z GET / 200 10
this line is broken
2026-03-01T10:00:02Z GET /cart 500 70
"""


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "access.log"
    path.write_text(LOG, encoding="utf-8")
    return str(path)


def test_broken_lines_are_counted(log: str, capsys: pytest.CaptureFixture[str]):
    assert main([log]) == 0
    assert "broken lines      1" in capsys.readouterr().out


def test_the_slow_requests_are_told(log: str, capsys: pytest.CaptureFixture[str]):
    main([log])
    assert "p95 ms           70" in capsys.readouterr().out


def test_the_busiest_paths_are_listed_on_request(log: str, capsys: pytest.CaptureFixture[str]):
    main([log, "--top", "1"])
    assert capsys.readouterr().out.splitlines()[-1] == "/cart         2"


def test_tables_are_markdown_on_request(log: str, capsys: pytest.CaptureFixture[str]):
    main([log, "--markdown"])
    assert "| errors | 1 |" in capsys.readouterr().out
