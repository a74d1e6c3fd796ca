"""Plans with one defect each: a whole plan with one replaced line, and the expected finding with its position."""

from dataclasses import dataclass

WHOLE = """\
# Plan: Broken on purpose

## Tasks

### task-0: Look
**Task ID:** task-0
**Title:** Look
**Agent Role Description:** Operator
**Prompt:**
<prompt>
Look around.
</prompt>
**Dependencies:** None
**Estimated Tool Calls:** 3
**QC Agent Role Description:** Auditor
**Verification Criteria:**
- [ ] (100 pts) c1: all there
**Checks:**
```yaml
- id: env
  criteria: [c1]
  run: [python, -m, pytest, --version]
  kind: hold
```
**Max Retries:** 0

### task-1: Work
**Task ID:** task-1
**Title:** Work
**Agent Role Description:** Engineer
**Prompt:**
<prompt>
Work.
</prompt>
**Tools:** read_file, write_file
**Tool-Based Execution:** Use read_file first.
**Context Files:** api.py
**Files:** src/work.py
**Dependencies:** task-0
**Estimated Duration:** 15 minutes
**Estimated Tool Calls:** 8
**QC Agent Role Description:** Reviewer
**Verification Criteria:**
- [ ] (60 pts) c1: it works
- [ ] (40 pts) c2: it is tested
**Checks:**
```yaml
- id: unit
  criteria: [c1, c2]
  run: [pytest, -q, tests/test_work.py]
  tests: [tests/test_work.py]
  protect: [tests/test_work.py]
```
**Max Retries:** 2
"""


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A change to `WHOLE`, and the finding that it must bring."""

    name: str
    old: str
    new: str
    code: str
    at: tuple[int, int]
    """Line and column."""
    says: tuple[str, ...] = ()
    """Pieces of the message or suggestion."""
    severity: str = "error"

    @property
    def text(self) -> str:
        """The broken plan."""
        head, found, tail = WHOLE.rpartition(self.old)
        assert found, self.old
        return head + self.new + tail


TASK_0 = WHOLE[WHOLE.index("### task-0") : WHOLE.index("### task-1")]
TASK_1 = WHOLE[WHOLE.index("### task-1") :]
PROMPT_1 = "<prompt>\nWork.\n</prompt>\n"
RUN = "run: [pytest, -q, tests/test_work.py]"
CRITERIA = (
    "**Verification Criteria:**\n- [ ] (60 pts) c1: it works\n- [ ] (40 pts) c2: it is tested\n"
)


def error(name: str, old: str, new: str, code: str, at: tuple[int, int], *says: str) -> Broken:
    return Broken(name=name, old=old, new=new, code=code, at=at, says=says)


def warning(name: str, old: str, new: str, code: str, at: tuple[int, int], *says: str) -> Broken:
    return Broken(name=name, old=old, new=new, code=code, at=at, says=says, severity="warning")


BROKEN = (
    error("no task", TASK_0 + TASK_1, "Nothing to do.\n", "plan-empty", (1, 1)),
    error(
        "duplicate id",
        "**Task ID:** task-1",
        "**Task ID:** task-0",
        "task-duplicate",
        (28, 14),
        "task-0",
        "line 6",
    ),
    error(
        "missing id",
        "### task-1: Work\n**Task ID:** task-1\n",
        "### Work\n",
        "task-id-missing",
        (27, 5),
    ),
    error("empty id", "**Task ID:** task-1", "**Task ID:**", "task-id-missing", (28, 1)),
    error(
        "unreadable id",
        "**Task ID:** task-1",
        "**Task ID:** ../../etc",
        "task-id-unreadable",
        (28, 14),
        "../../etc",
    ),
    error(
        "unknown dependency",
        "**Dependencies:** task-0",
        "**Dependencies:** task-0, task-O1",
        "dependency-unknown",
        (39, 27),
        "task-O1",
        "Did you mean 'task-",
    ),
    error(
        "self-dependency",
        "**Dependencies:** task-0",
        "**Dependencies:** task-1",
        "dependency-self",
        (39, 19),
    ),
    error(
        "prose as a dependency",
        "**Dependencies:** task-0",
        "**Dependencies:** either task-0 or nothing",
        "dependency-unreadable",
        (39, 19),
        "either task-0",
    ),
    error(
        "cycle",
        "**Dependencies:** None",
        "**Dependencies:** task-1",
        "plan-cycle",
        (13, 19),
        "task-0 -> task-1 -> task-0",
    ),
    error("no prompt", "**Prompt:**\n" + PROMPT_1, "", "prompt-missing", (28, 14), "task-1"),
    error("blank prompt", "\nWork.\n", "\n \n", "prompt-missing", (31, 1)),
    error("open prompt", "Work.\n</prompt>", "Work.\n", "block-unclosed", (32, 1), "<prompt>"),
    error(
        "stray closing tag",
        "Work.\n</prompt>",
        "Work.\n</prompt>\nMore.\n</prompt>",
        "block-stray",
        (36, 1),
        "<prompt-2>",
    ),
    error(
        "open fence",
        "```\n**Max Retries:** 2",
        "**Max Retries:** 2",
        "block-unclosed",
        (47, 1),
        "```",
    ),
    error("no criterion", CRITERIA, "", "criteria-missing", (28, 14)),
    error("empty criterion", "c2: it is tested", "c2:", "criterion-unreadable", (45, 7), "c2"),
    error(
        "criterion twice", "c2: it is tested", "c1: it is tested", "criterion-duplicate", (45, 7)
    ),
    error("negative points", "(40 pts) c2", "(-40 pts) c2", "criterion-points", (45, 7)),
    error(
        "unknown criterion in a check",
        "criteria: [c1, c2]",
        "criteria: [c1, c3]",
        "check-criterion-unknown",
        (48, 3),
        "c3",
        "Did you mean 'c",
    ),
    error(
        "check of nothing", "criteria: [c1, c2]", "criteria: []", "check-without-criterion", (48, 3)
    ),
    error(
        "check twice",
        "  protect: [tests/test_work.py]\n",
        "- {id: unit, criteria: [c1], run: [pytest]}\n",
        "check-duplicate",
        (52, 3),
    ),
    error("check with true", RUN, 'run: ["true"]', "check-vacuous", (48, 3), "unit"),
    error(
        "check with a thrown-away status",
        RUN,
        'run: "pytest -q || true"',
        "check-vacuous",
        (48, 3),
        "pytest -q || true",
    ),
    error("check without a command", f"  {RUN}\n", "", "checks-unreadable", (48, 3), "Add run"),
    error("check with an empty command", RUN, "run: []", "check-vacuous", (48, 3), "no command"),
    error("check with an open quote", RUN, "run: pytest -k 'a", "check-command", (48, 3)),
    error(
        "misspelt key of a check",
        "  protect:",
        "  protekt:",
        "checks-unreadable",
        (52, 3),
        "protekt",
        "Did you mean 'protect'",
    ),
    error(
        "unknown kind of a check",
        "  tests: [tests/test_work.py]",
        "  kind: maybe",
        "checks-unreadable",
        (51, 9),
    ),
    error("broken YAML", "criteria: [c1, c2]", "criteria: [c1, c2", "checks-unreadable", (50, 6)),
    error(
        "YAML alias",
        "criteria: [c1, c2]",
        "criteria: &a [c1, c2]",
        "checks-unreadable",
        (49, 13),
        "alias",
    ),
    error(
        "YAML key twice",
        "  tests: [tests/test_work.py]",
        "  run: [pytest]",
        "checks-unreadable",
        (51, 3),
        "is repeated",
    ),
    error(
        "negative timeout",
        "  tests: [tests/test_work.py]",
        "  timeout_seconds: -1",
        "checks-unreadable",
        (51, 20),
    ),
    error(
        "NaN as a timeout",
        "  tests: [tests/test_work.py]",
        "  timeout_seconds: .nan",
        "checks-unreadable",
        (51, 20),
    ),
    error(
        "zero timeout",
        "  tests: [tests/test_work.py]",
        "  timeout_seconds: 0",
        "number-out-of-range",
        (48, 3),
    ),
    error(
        "unknown tool",
        "**Tools:** read_file, write_file",
        "**Tools:** read_file, writ_file",
        "tool-unknown",
        (35, 23),
        "writ_file",
        "Did you mean 'write_file'",
    ),
    error(
        "path above the project",
        "**Files:** src/work.py",
        "**Files:** src/work.py, ../other.py",
        "path-outside",
        (38, 25),
        "../other.py",
    ),
    error(
        "absolute context file",
        "**Context Files:** api.py",
        "**Context Files:** /etc/passwd",
        "path-outside",
        (37, 20),
    ),
    error(
        "a sentence among files",
        "**Files:** src/work.py",
        "**Files:** src/work.py, and whatever else there is",
        "value-unreadable",
        (38, 25),
        "and whatever else",
    ),
    error(
        "absolute path in a check",
        "protect: [tests/test_work.py]",
        "protect: [/tests/x.py]",
        "path-outside",
        (48, 3),
    ),
    error(
        "protected and written",
        "**Files:** src/work.py",
        "**Files:** src/work.py, tests/test_*.py",
        "path-protected",
        (48, 3),
        "tests/test_work.py",
        "unit",
    ),
    error(
        "words as retries",
        "**Max Retries:** 2",
        "**Max Retries:** a few",
        "value-unreadable",
        (54, 18),
        "a few",
    ),
    error(
        "no attempts at all",
        "**Max Retries:** 2",
        "**Max Attempts:** 0",
        "value-unreadable",
        (54, 19),
    ),
    error(
        "endless calls",
        "**Estimated Tool Calls:** 8",
        "**Estimated Tool Calls:** unlimited",
        "value-unreadable",
        (41, 27),
    ),
    error("words as a duration", "15 minutes", "a while", "value-unreadable", (40, 25)),
    error(
        "no time at all",
        "**Estimated Duration:** 15 minutes",
        "**Time Limit:** 0 minutes",
        "number-out-of-range",
        (40, 17),
    ),
    error(
        "field twice",
        "**Max Retries:** 2",
        "**Max Retries:** 2\n**Max Retries:** 3",
        "field-repeated",
        (55, 18),
        "line 54",
    ),
    error(
        "misspelt label",
        "**Dependencies:** task-0",
        "**Dependecies:** task-0",
        "label-misspelt",
        (39, 18),
        "Did you mean 'Dependencies'",
    ),
    warning(
        "unknown label",
        "**Max Retries:** 2",
        "**Colour:** blue\n**Max Retries:** 2",
        "label-unknown",
        (54, 13),
    ),
    warning("no estimate", "**Estimated Tool Calls:** 8\n", "", "estimate-missing", (28, 14)),
    warning(
        "no task 0", TASK_0 + TASK_1, TASK_1.replace("task-0", "None"), "task-0-missing", (6, 14)
    ),
    warning(
        "root beside task 0",
        "**Dependencies:** task-0",
        "**Dependencies:** None",
        "task-0-skipped",
        (39, 19),
        "task-0",
    ),
    warning(
        "no QC role",
        "**QC Agent Role Description:** Reviewer\n",
        "",
        "qc-role-missing",
        (28, 14),
        "Reviewer of: Engineer",
    ),
    warning(
        "no worker role", "**Agent Role Description:** Engineer\n", "", "role-missing", (28, 14)
    ),
    warning(
        "a tool that is not, in prose",
        "Use read_file first.",
        "Use read_files first.",
        "tool-unlikely",
        (36, 27),
        "Did you mean 'read_file'",
    ),
    warning(
        "too many context files",
        "**Context Files:** api.py",
        "**Context Files:** " + ", ".join(f"f{n}.py" for n in range(11)),
        "context-files-many",
        (37, 20),
    ),
    warning("no files", "**Files:** src/work.py\n", "", "files-missing", (28, 14), "task-1"),
    warning(
        "glob over a test of another task",
        TASK_1,
        f"{TASK_1}\n{TASK_1.replace('task-1', 'task-2').replace('src/work.py', 'tests/*.py')}",
        "files-broad",
        (67, 12),
        "tests/test_work.py",
    ),
    warning("points in another unit", "(60 pts)", "(60 credits)", "points-unread", (44, 7)),
    warning("points that are not 100", "(60 pts)", "(50 pts)", "points-sum", (43, 1), "90"),
    warning(
        "pipe whose reader may end first",
        RUN,
        'run: "pytest -q | grep -q passed"',
        "check-pipe",
        (48, 3),
        "grep -q",
    ),
    warning(
        "optional checks only",
        "  tests: [tests/test_work.py]",
        "  required: false",
        "check-missing",
        (47, 1),
    ),
    warning(
        "description beside the prompt",
        "**Prompt:**\n" + PROMPT_1,
        "**Description:** Some work.\n**Prompt:**\n" + PROMPT_1,
        "field-second",
        (31, 18),
        "Description",
        "line 32",
    ),
)
