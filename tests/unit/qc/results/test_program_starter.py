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
