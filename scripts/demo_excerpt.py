"""Generator of the screen in README.md: `python -m scripts.demo_excerpt`.

It runs the demo and keeps the lines of one task, of the plan and of the end. Times are left out: they are those of a machine.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parent.parent / "README.md"
BEGIN = "<!-- screen: written by scripts/demo_excerpt.py -->"
END = "<!-- screen: end -->"
_SHOWN = ("PM", "task-1.4", "final gate", "completed:", "verify")
_TIME = 8
"""Columns of the time at the beginning of a line."""


def select(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the excerpt, each with its continuation."""
    is_shown = False
    for line in lines:
        text = line[_TIME:] if re.match(r" *\d+\.\d s ", line) else line
        if not line.startswith(" " * _TIME):
            is_shown = text.startswith(_SHOWN)
        if is_shown and line.strip():
            yield text if text != line or not line.startswith(" ") else line[_TIME:]


def put(document: str, lines: Iterable[str]) -> str:
    """Return the document with these lines between the marks."""
    before, _, rest = document.partition(BEGIN)
    after = rest.partition(END)[2]
    return "\n".join([f"{before}{BEGIN}", "```", *lines, "```", f"{END}{after}"])


def main() -> int:
    """Run the demo and write the screen; the exit code is that of the demo."""
    with tempfile.TemporaryDirectory() as place:
        words = [sys.executable, "-m", "mimir", "demo", "--directory", f"{place}/demo"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        document = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(put(document, select(done.stdout.splitlines())), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
