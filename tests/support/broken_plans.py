"""Plans with one thing wrong each: a whole plan in which a line is replaced, and what must be said of it where."""

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

BROKEN = (
    Broken(
        name="no task", old=TASK_0 + TASK_1, new="Nothing to do.\n", code="plan-empty", at=(1, 1)
    ),
    Broken(
        name="duplicate id",
        old="**Task ID:** task-1",
        new="**Task ID:** task-0",
        code="task-duplicate",
        at=(28, 14),
        says=("task-0", "line 6"),
    ),
    Broken(
        name="missing id",
        old="### task-1: Work\n**Task ID:** task-1\n",
        new="### Work\n",
        code="task-id-missing",
        at=(27, 5),
    ),
    Broken(
        name="empty id",
        old="**Task ID:** task-1",
        new="**Task ID:**",
        code="task-id-missing",
        at=(28, 1),
    ),
    Broken(
        name="unreadable id",
        old="**Task ID:** task-1",
        new="**Task ID:** ../../etc",
        code="task-id-unreadable",
        at=(28, 14),
        says=("../../etc",),
    ),
    Broken(
        name="unknown dependency",
        old="**Dependencies:** task-0",
        new="**Dependencies:** task-0, task-O1",
        code="dependency-unknown",
        at=(39, 27),
        says=("task-O1", "Did you mean 'task-"),
    ),
    Broken(
        name="self-dependency",
        old="**Dependencies:** task-0",
        new="**Dependencies:** task-1",
        code="dependency-self",
        at=(39, 19),
    ),
    Broken(
        name="prose as a dependency",
        old="**Dependencies:** task-0",
        new="**Dependencies:** either task-0 or nothing",
        code="dependency-unreadable",
        at=(39, 19),
        says=("either task-0",),
    ),
    Broken(
        name="cycle",
        old="**Dependencies:** None",
        new="**Dependencies:** task-1",
        code="plan-cycle",
        at=(13, 19),
        says=("task-0 -> task-1 -> task-0",),
    ),
    Broken(
        name="no prompt",
        old="**Prompt:**\n" + PROMPT_1,
        new="",
        code="prompt-missing",
        at=(28, 14),
        says=("task-1",),
    ),
    Broken(name="blank prompt", old="\nWork.\n", new="\n \n", code="prompt-missing", at=(31, 1)),
    Broken(
        name="open prompt",
        old="Work.\n</prompt>",
        new="Work.\n",
        code="block-unclosed",
        at=(32, 1),
        says=("<prompt>",),
    ),
    Broken(
        name="stray closing tag",
        old="Work.\n</prompt>",
        new="Work.\n</prompt>\nMore.\n</prompt>",
        code="block-stray",
        at=(36, 1),
        says=("<prompt-2>",),
    ),
    Broken(
        name="open fence",
        old="```\n**Max Retries:** 2",
        new="**Max Retries:** 2",
        code="block-unclosed",
        at=(47, 1),
        says=("```",),
    ),
    Broken(name="no criterion", old=CRITERIA, new="", code="criteria-missing", at=(28, 14)),
    Broken(
        name="empty criterion",
        old="c2: it is tested",
        new="c2:",
        code="criterion-unreadable",
        at=(45, 7),
        says=("c2",),
    ),
    Broken(
        name="criterion twice",
        old="c2: it is tested",
        new="c1: it is tested",
        code="criterion-duplicate",
        at=(45, 7),
    ),
    Broken(
        name="negative points",
        old="(40 pts) c2",
        new="(-40 pts) c2",
        code="criterion-points",
        at=(45, 7),
    ),
    Broken(
        name="unknown criterion in a check",
        old="criteria: [c1, c2]",
        new="criteria: [c1, c3]",
        code="check-criterion-unknown",
        at=(48, 3),
        says=("c3", "Did you mean 'c"),
    ),
    Broken(
        name="check of nothing",
        old="criteria: [c1, c2]",
        new="criteria: []",
        code="check-without-criterion",
        at=(48, 3),
    ),
    Broken(
        name="check twice",
        old="  protect: [tests/test_work.py]\n",
        new="- {id: unit, criteria: [c1], run: [pytest]}\n",
        code="check-duplicate",
        at=(52, 3),
    ),
    Broken(
        name="check with true",
        old=RUN,
        new='run: ["true"]',
        code="check-vacuous",
        at=(48, 3),
        says=("unit",),
    ),
    Broken(
        name="check with a thrown-away status",
        old=RUN,
        new='run: "pytest -q || true"',
        code="check-vacuous",
        at=(48, 3),
        says=("pytest -q || true",),
    ),
    Broken(
        name="check without a command",
        old=f"  {RUN}\n",
        new="",
        code="checks-unreadable",
        at=(48, 3),
        says=("Add run",),
    ),
    Broken(
        name="check with an empty command",
        old=RUN,
        new="run: []",
        code="check-vacuous",
        at=(48, 3),
        says=("no command",),
    ),
    Broken(
        name="check with an open quote",
        old=RUN,
        new="run: pytest -k 'a",
        code="check-command",
        at=(48, 3),
    ),
    Broken(
        name="misspelt key of a check",
        old="  protect:",
        new="  protekt:",
        code="checks-unreadable",
        at=(52, 3),
        says=("protekt", "Did you mean 'protect'"),
    ),
    Broken(
        name="unknown kind of a check",
        old="  tests: [tests/test_work.py]",
        new="  kind: maybe",
        code="checks-unreadable",
        at=(51, 9),
    ),
    Broken(
        name="broken YAML",
        old="criteria: [c1, c2]",
        new="criteria: [c1, c2",
        code="checks-unreadable",
        at=(50, 6),
    ),
    Broken(
        name="YAML alias",
        old="criteria: [c1, c2]",
        new="criteria: &a [c1, c2]",
        code="checks-unreadable",
        at=(49, 13),
        says=("alias",),
    ),
    Broken(
        name="YAML key twice",
        old="  tests: [tests/test_work.py]",
        new="  run: [pytest]",
        code="checks-unreadable",
        at=(51, 3),
        says=("twice",),
    ),
    Broken(
        name="negative timeout",
        old="  tests: [tests/test_work.py]",
        new="  timeout_seconds: -1",
        code="checks-unreadable",
        at=(51, 20),
    ),
    Broken(
        name="NaN as a timeout",
        old="  tests: [tests/test_work.py]",
        new="  timeout_seconds: .nan",
        code="checks-unreadable",
        at=(51, 20),
    ),
    Broken(
        name="zero timeout",
        old="  tests: [tests/test_work.py]",
        new="  timeout_seconds: 0",
        code="number-out-of-range",
        at=(48, 3),
    ),
    Broken(
        name="unknown tool",
        old="**Tools:** read_file, write_file",
        new="**Tools:** read_file, writ_file",
        code="tool-unknown",
        at=(35, 23),
        says=("writ_file", "Did you mean 'write_file'"),
    ),
    Broken(
        name="path above the project",
        old="**Files:** src/work.py",
        new="**Files:** src/work.py, ../other.py",
        code="path-outside",
        at=(38, 25),
        says=("../other.py",),
    ),
    Broken(
        name="absolute context file",
        old="**Context Files:** api.py",
        new="**Context Files:** /etc/passwd",
        code="path-outside",
        at=(37, 20),
    ),
    Broken(
        name="absolute path in a check",
        old="protect: [tests/test_work.py]",
        new="protect: [/tests/x.py]",
        code="path-outside",
        at=(48, 3),
    ),
    Broken(
        name="protected and written",
        old="**Files:** src/work.py",
        new="**Files:** src/work.py, tests/test_*.py",
        code="path-protected",
        at=(48, 3),
        says=("tests/test_work.py", "unit"),
    ),
    Broken(
        name="words as retries",
        old="**Max Retries:** 2",
        new="**Max Retries:** a few",
        code="value-unreadable",
        at=(54, 18),
        says=("a few",),
    ),
    Broken(
        name="no attempts at all",
        old="**Max Retries:** 2",
        new="**Max Attempts:** 0",
        code="value-unreadable",
        at=(54, 19),
    ),
    Broken(
        name="endless calls",
        old="**Estimated Tool Calls:** 8",
        new="**Estimated Tool Calls:** unlimited",
        code="value-unreadable",
        at=(41, 27),
    ),
    Broken(
        name="words as a duration",
        old="15 minutes",
        new="a while",
        code="value-unreadable",
        at=(40, 25),
    ),
    Broken(
        name="no time at all",
        old="**Estimated Duration:** 15 minutes",
        new="**Time Limit:** 0 minutes",
        code="number-out-of-range",
        at=(40, 17),
    ),
    Broken(
        name="field twice",
        old="**Max Retries:** 2",
        new="**Max Retries:** 2\n**Max Retries:** 3",
        code="field-repeated",
        at=(55, 18),
        says=("line 54",),
    ),
    Broken(
        name="misspelt label",
        old="**Dependencies:** task-0",
        new="**Dependecies:** task-0",
        code="label-misspelt",
        at=(39, 18),
        says=("Did you mean 'Dependencies'",),
    ),
    Broken(
        name="unknown label",
        old="**Max Retries:** 2",
        new="**Colour:** blue\n**Max Retries:** 2",
        code="label-unknown",
        at=(54, 13),
        severity="warning",
    ),
    Broken(
        name="no estimate",
        old="**Estimated Tool Calls:** 8\n",
        new="",
        code="estimate-missing",
        at=(28, 14),
        severity="warning",
    ),
    Broken(
        name="no task 0",
        old=TASK_0 + TASK_1,
        new=TASK_1.replace("task-0", "None"),
        code="task-0-missing",
        at=(6, 14),
        severity="warning",
    ),
    Broken(
        name="root beside task 0",
        old="**Dependencies:** task-0",
        new="**Dependencies:** None",
        code="task-0-skipped",
        at=(39, 19),
        says=("task-0",),
        severity="warning",
    ),
    Broken(
        name="no QC role",
        old="**QC Agent Role Description:** Reviewer\n",
        new="",
        code="qc-role-missing",
        at=(28, 14),
        says=("Reviewer of: Engineer",),
        severity="warning",
    ),
    Broken(
        name="no worker role",
        old="**Agent Role Description:** Engineer\n",
        new="",
        code="role-missing",
        at=(28, 14),
        severity="warning",
    ),
    Broken(
        name="a tool that is not, in prose",
        old="Use read_file first.",
        new="Use read_files first.",
        code="tool-unlikely",
        at=(36, 27),
        says=("Did you mean 'read_file'",),
        severity="warning",
    ),
    Broken(
        name="too many context files",
        old="**Context Files:** api.py",
        new="**Context Files:** " + ", ".join(f"f{n}.py" for n in range(11)),
        code="context-files-many",
        at=(37, 20),
        severity="warning",
    ),
    Broken(
        name="points that are not 100",
        old="(60 pts)",
        new="(50 pts)",
        code="points-sum",
        at=(43, 1),
        says=("90",),
        severity="warning",
    ),
    Broken(
        name="optional checks only",
        old="  tests: [tests/test_work.py]",
        new="  required: false",
        code="check-missing",
        at=(47, 1),
        severity="warning",
    ),
    Broken(
        name="description beside the prompt",
        old="**Prompt:**\n" + PROMPT_1,
        new="**Description:** Some work.\n**Prompt:**\n" + PROMPT_1,
        code="field-second",
        at=(31, 18),
        says=("Description", "line 32"),
        severity="warning",
    ),
)
