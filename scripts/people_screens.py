"""Generator of the screens in docs/people.md: `python -m scripts.people_screens`.

It runs the tutorial of the page with a scripted model: one of four tasks asks, the process is killed, and the answer comes from another one.
Ids and times are replaced, because each run has others.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "people.md"
BEGIN = "<!-- screen {}: written by scripts/people_screens.py -->"
END = "<!-- screen: end -->"
_FILES = ("limits", "region", "health", "notes")
_PREAMBLE = "\n".join(
    f"## {name}\n{'Work with care, look before you write, and report what you saw. ' * 3}"
    for name in ("Expertise", "How to work", "Use of tools", "Output")
)
_FIXED = (
    (r"run-\d{4}-\d{4}-[0-9a-f]{6}", "run-1127-1025-7b9b3f"),
    (r"q-[0-9a-f]{10}", "q-23fd3dd3e8"),
    (r"asked \d{4}-\d\d-\d\d \d\d:\d\d", "asked 2026-11-27 10:25"),
    (r"expires: \d{4}-\d\d-\d\d \d\d:\d\d", "expires: 2026-12-04 10:25"),
    (r"^ *\d+:\d\d  ", "   0:03  "),
)
"""Pattern → its replacement on the page."""

Screens = Mapping[str, Sequence[str]]
"""Name of a screen → its lines."""


def make_screens(place: Path) -> Screens:
    """Run the tutorial in an empty directory."""
    story = _Story(place)
    asked = story.run_until_question()
    (question,) = json.loads("".join(story.type("inbox", "--json")))["questions"]
    paused = story.type("resume")
    inbox = story.type("inbox")
    answered = story.type("answer", question["id"], "us-east")
    ended = story.type("resume")
    ended_lines = [*_select(ended, "completed", "4 of 4", "applied:"), "$ cat region.txt"]
    screens = {
        "asked": ["$ mimir execute plan.md --yes", "…", asked, "Killed"],
        "paused": ["$ mimir resume", "…", *_select(paused, "paused:", "3 of 4", "next:")],
        "inbox": ["$ mimir inbox", *inbox],
        "answered": ["$ mimir answer q-23 us-east", *answered],
        "ended": ["$ mimir resume", "…", *ended_lines, *story.read("region.txt")],
    }
    return {name: [_fix(line) for line in lines] for name, lines in screens.items()}


def put(document: str, screens: Screens) -> str:
    """Return the document with each screen between its marks."""
    for name, lines in screens.items():
        begin = BEGIN.format(name)
        before, _, rest = document.partition(begin)
        after = rest.partition(END)[2]
        document = "\n".join([f"{before}{begin}", "```", *lines, "```", f"{END}{after}"])
    return document


class _Story:
    """A project with a plan, and commands in it, each a process of its own."""

    def __init__(self, place: Path) -> None:
        self._project = place / "project"
        self._project.mkdir()
        (self._project / "plan.md").write_text(_plan(), encoding="utf-8")
        (place / "script.json").write_text(json.dumps(_script()), encoding="utf-8")
        kept = {name: text for name, text in os.environ.items() if not name.startswith("MIMIR_")}
        own = {"MIMIR_MODEL": "play:../script.json", "MIMIR_CHECKS__CONTROLS": "never"}
        self._env = {**kept, **own, "HOME": str(place)}

    def type(self, *words: str) -> list[str]:
        """Return the output of a command on both streams."""
        done = subprocess.run(
            [sys.executable, "-m", "mimir", *words],
            cwd=self._project,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout.splitlines()

    def run_until_question(self) -> str:
        """Execute the plan, and kill the process when it has asked; return the line of the question."""
        words = [sys.executable, "-m", "mimir", "execute", "plan.md", "--yes"]
        with subprocess.Popen(
            words, cwd=self._project, env=self._env, stdout=subprocess.PIPE, text=True
        ) as process:
            lines = process.stdout or ()
            asked = next(line for line in lines if "QuestionAsked" in line)
            process.send_signal(signal.SIGKILL)
        return asked.rstrip()

    def read(self, path: str) -> list[str]:
        """Return the lines of a file of the project."""
        return (self._project / path).read_text(encoding="utf-8").splitlines()


def _select(lines: Sequence[str], *beginnings: str) -> Iterator[str]:
    yield from (line for line in lines if line.startswith(beginnings))


def _fix(line: str) -> str:
    for pattern, text in _FIXED:
        line = re.sub(pattern, text, line)
    return line


def _plan() -> str:
    """Return a plan of four files, one of which needs an answer."""
    tasks = "\n".join(
        _TASK.format(name=name, tools=_TOOLS if name == "region" else "") for name in _FILES
    )
    return f"# Plan: Deploy\n**Request:** Prepare the deployment.\n**Goal:** Four files.\n\n## Tasks\n\n{tasks}"


_TOOLS = "**Tools:** read_file, write_file, ask_user\n"
_TASK = """### {name}: Write {name}.txt
**Task ID:** {name}
**Title:** Write {name}.txt
**Agent Role Description:** Writer of small files
**Prompt:**
<prompt>
Write {name}.txt.
</prompt>
{tools}**Dependencies:** None
**Estimated Tool Calls:** 4
**QC Agent Role Description:** Reviewer of small files
**Verification Criteria:**
- [ ] (100 pts) c1: {name}.txt is not empty
**Checks:**
```yaml
- id: unit
  criteria: [c1]
  run: [grep, -q, ., {name}.txt]
  kind: flip
```
**Max Retries:** 0
"""


def _script() -> Mapping[str, object]:
    """Return the script of the model."""
    question = {
        "title": "Which region?",
        "text": "Where is it deployed?",
        "options": ["eu-west", "us-east"],
        "default": "eu-west",
    }
    asks = {"calls": [{"tool": "ask_user", "arguments": question}]}
    turns: dict[str, Sequence[object]] = {
        name: [_writes(name, f"{name}\n"), "Done."] for name in _FILES
    }
    turns["region"] = [
        asks,
        {"when": {"last_has": "us-east"}, **_writes("region", "us-east\n")},
        "Done.",
    ]
    workers = [{"role": "worker", "task": name, "turns": told} for name, told in turns.items()]
    others = (
        {"role": "agentinator", "turns": [{"text": _PREAMBLE, "repeat": "forever"}]},
        {"role": "*_reporter", "turns": [{"text": "It is done.", "repeat": "forever"}]},
        {"role": "qc", "turns": [{"verdict": {"auto": "pass"}, "repeat": "forever"}]},
    )
    return {"parts": [*workers, *others]}


def _writes(name: str, content: str) -> dict[str, object]:
    given = {"path": f"{name}.txt", "content": content}
    return {"calls": [{"tool": "write_file", "arguments": given}]}


def main() -> int:
    """Write the screens."""
    with tempfile.TemporaryDirectory() as place:
        screens = make_screens(Path(place))
    DOCUMENT.write_text(put(DOCUMENT.read_text(encoding="utf-8"), screens), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
