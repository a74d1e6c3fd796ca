"""The program that starts go and cargo in their place."""

import os
import subprocess
import sys
from pathlib import Path

from mimir.qc.results import reporters

STARTER = Path(reporters.__file__).with_name("programs.py")


def test_quiet_tests_of_cargo_are_reported_by_name(tmp_path: Path):
    cargo = tmp_path / "bin/cargo"
    cargo.parent.mkdir()
    cargo.write_text('#!/bin/sh\necho "$CARGO_TERM_QUIET $*"\n')
    cargo.chmod(0o755)
    environment = {
        "PATH": f"{cargo.parent}:{os.environ['PATH']}",
        "MIMIR_RESULTS": str(tmp_path),
    }

    words = ("-q", "test", "--offline", "--quiet", "--", "-q", "--nocapture")
    started = (sys.executable, str(STARTER), str(tmp_path / "starter/cargo"), *words)
    subprocess.run(started, env=environment, check=True)

    (report,) = tmp_path.glob("*.libtest")
    assert report.read_text() == "false test --offline -- --nocapture\n"


def test_output_of_go_names_the_failed_tests_unless_the_command_is_verbose(tmp_path: Path):
    lines = (
        '{"Action":"output","Test":"TestA","Output":"=== RUN   TestA\\n"}',
        '{"Action":"output","Test":"TestA","Output":"printed\\n"}',
        '{"Action":"output","Test":"TestA","Output":"    --- PASS: TestA/b (0.00s)\\n"}',
        '{"Action":"output","Test":"TestC","Output":"--- FAIL: TestC (0.00s)\\n"}',
        '{"Action":"output","Output":"FAIL\\n"}',
    )
    go = tmp_path / "bin/go"
    go.parent.mkdir()
    go.write_text(f"#!/bin/sh\ncat <<'E'\n{chr(10).join(lines)}\nE\n")
    go.chmod(0o755)

    def show(*words: str) -> list[str]:
        folder = tmp_path / f"results{len(words)}"
        folder.mkdir()
        environment = {
            "PATH": f"{go.parent}:{os.environ['PATH']}",
            "MIMIR_RESULTS": str(folder),
        }
        started = (sys.executable, str(STARTER), str(tmp_path / "starter/go"), "test", *words)
        made = subprocess.run(started, env=environment, check=True, capture_output=True, text=True)
        return made.stdout.splitlines()

    assert show("./...") == ["printed", "--- FAIL: TestC (0.00s)", "FAIL"]
    assert len(show("-v", "./...")) == len(lines)
