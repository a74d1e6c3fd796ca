"""Evidence that the engine produced itself; only this can make a task completed. Pure."""

from dataclasses import field
from typing import Literal

from mimir.domain.json_value import OMIT_EMPTY
from mimir.domain.plan import CheckKind
from mimir.domain.test_results import TestResults
from mimir.domain.value_class import value_class

CheckState = Literal["passed", "failed", "unverified", "broken"]
"""`broken`: the check could not have worked on this machine with any work."""
RecordKind = Literal["check", "control", "deliverable", "verdict", "gate", "run", "later"]
PRODUCTS_TEXT = "products"
"""Name of the run's text that lists the files that its checks write before the work."""
ControlState = Literal["red", "insensitive", "unexercised"]
"""Red: the check can fail. Insensitive: it cannot. Unexercised: the work is no part of it."""


@value_class
class ControlResult:
    """Conclusion of a negative control: can the check fail on this deliverable?"""

    state: ControlState
    method: str
    """The change, as a sentence."""
    sensitive: int = 0
    """Tests that the control turned red."""
    counted: int = 0
    """Tests that the green run counted. 0: the exit code alone is known."""
    runs: int = 0
    """Check runs of the control. 0: the run before the work is the control."""
    reason: str = ""
    """Finding; empty if red."""


@value_class
class CheckRun:
    """One execution of a check's command on one clean checkout."""

    check: str
    argv: tuple[str, ...]
    phase: Literal["before", "after", "control", "merged", "gate"]
    tree: str
    exit_code: int | None
    """None: killed (timeout) or never started (missing)."""
    timed_out: bool = False
    missing: bool = False
    """True: the program, or the module that it names, is not on this machine."""
    cut_short: bool = False
    """True: exit code 0, but a control on this tree showed that the check cannot fail."""
    seconds: float = 0.0
    output_hash: str = ""
    """SHA-256 of the whole output."""
    output_tail: str = ""
    """End of the output, bounded, secrets replaced."""
    sandbox: str = ""
    """"bubblewrap", or "none" if the user switched the sandbox off."""
    again: bool = False
    """True: a second run on the same tree, because the first one was red."""
    stands_for: str = ""
    """Tree that the run proves, if check files were restored in `tree`; empty: `tree`."""
    results: TestResults | None = None
    """Results of single tests. None: the command started no known test runner."""
    control: ControlResult | None = None
    """Conclusion of a control. None: the run is of another phase."""
    shared: bool = False
    """True: the result of an equal command on this tree, which was not executed again."""
    products: tuple[str, ...] = field(default=(), metadata=OMIT_EMPTY)
    """New files and folders that a command before the work made."""

    @property
    def green(self) -> bool:
        """True if the command ended with 0 and nothing contradicts it."""
        is_stopped = self.timed_out or self.missing or self.cut_short
        return self.exit_code == 0 and not is_stopped and not self.contradiction

    @property
    def contradiction(self) -> str:
        """Contradiction of its single tests to an exit code 0; empty: none."""
        if self.results is None or self.exit_code != 0:
            return ""
        return self.results.contradiction

    @property
    def describe_end(self) -> str:
        """End of the command, as text."""
        return describe_exit(
            self.exit_code,
            timed_out=self.timed_out,
            missing=self.missing,
            cut_short=self.cut_short,
            is_contradicted=bool(self.contradiction),
        )


def describe_exit(
    code: int | None,
    *,
    timed_out: bool,
    missing: bool,
    cut_short: bool,
    is_contradicted: bool = False,
) -> str:
    """Describe an exit, such as `exit 1`, `timed out` or `cut short (exit 0)`."""
    if missing:
        return "program missing"
    if timed_out:
        return "timed out"
    if code is None:
        return "killed"
    if is_contradicted and code == 0:
        return "exit 0, but its tests have not passed"
    return f"cut short (exit {code})" if cut_short else f"exit {code}"


@value_class
class CheckOutcome:
    """Result of the runs of one check, by the decision table."""

    check: str
    state: CheckState
    required: bool
    kind: CheckKind
    inferred: bool = False
    """True: the plan gives no kind; it follows from the run before."""
    before: CheckRun
    after: CheckRun
    again: CheckRun | None = None
    """Second run on the tree of a red `after`. None: there is none."""
    flaky: bool = False
    self_authored: bool = False
    """True: the attempt wrote the files of its own check."""
    findings: tuple[str, ...] = ()
    """The first one of a broken check is why it is broken."""


def describe_broken_check(task: str, check: str, why: str) -> str:
    """Name a broken check with its reason, for report, status and screen."""
    return f"Check {check!r} of {task} is broken: {why}"


@value_class
class EvidenceRecord:
    """One sealed record of an evidence chain."""

    seq: int
    """0-based within its chain."""
    kind: RecordKind
    body: str
    """Canonical JSON of the sealed values."""
    previous: str
    """Hash of the record before; for the first one the hash of the chain name."""
    hash: str
