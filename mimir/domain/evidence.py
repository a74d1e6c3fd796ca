"""What the engine executed and saw: the only thing that a "completed" may rest on."""

from dataclasses import dataclass
from typing import Literal

from mimir.domain.plan import CheckKind

CheckState = Literal["passed", "failed", "unverified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One execution of a check's command on one clean checkout."""

    check: str
    argv: tuple[str, ...]
    phase: Literal["before", "after", "merged", "gate"]
    tree: str
    """Git tree id that was checked out; everything that the command could read of the project."""
    exit_code: int | None
    """None: killed (timeout) or never started (missing)."""
    timed_out: bool = False
    missing: bool = False
    """True: the program, or the module that it names, is not on the machine."""
    cut_short: bool = False
    """True: it ended with 0, but the test runner that it starts did not say that the tests passed, or the work ended its program."""
    seconds: float = 0.0
    output_hash: str = ""
    """SHA-256 of the whole output."""
    output_tail: str = ""
    """Its bounded end, secrets replaced."""
    sandbox: str = ""
    """Back-end: "bubblewrap", or "none" when the person said so by name."""
    again: bool = False
    """True: the second run on the same tree, made because the first one was red."""
    stands_for: str = ""
    """Tree that it says something of, where the check's own files were put back in `tree`; empty: `tree` itself."""

    @property
    def green(self) -> bool:
        """True if the command ended with 0, and nothing that it said is against it."""
        return self.exit_code == 0 and not (self.timed_out or self.missing or self.cut_short)

    @property
    def describe_end(self) -> str:
        """How it ended, in words."""
        return how_it_ended(
            self.exit_code, timed_out=self.timed_out, missing=self.missing, cut_short=self.cut_short
        )


def how_it_ended(code: int | None, *, timed_out: bool, missing: bool, cut_short: bool) -> str:
    """Say how a command ended: `exit 1`, `timed out`, `program missing`, `killed`, `cut short (exit 0)`."""
    if missing:
        return "program missing"
    if timed_out:
        return "timed out"
    if code is None:
        return "killed"
    return f"cut short (exit {code})" if cut_short else f"exit {code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """What the runs of one check prove, by the table of §9."""

    check: str
    state: CheckState
    required: bool
    kind: CheckKind
    inferred: bool = False
    """True: the plan gave no kind; it follows from the run before."""
    before: CheckRun
    after: CheckRun
    again: CheckRun | None = None
    """A second run on the tree of `after`, made because that one was red. None: not made."""
    flaky: bool = False
    self_authored: bool = False
    """True: the check's files were written by the attempt that it judges."""
    findings: tuple[str, ...] = ()
    """What a person should know of it, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRecord:
    """One sealed record of a chain."""

    seq: int
    """0-based within its chain."""
    kind: Literal["check", "deliverable", "verdict", "gate"]
    body: str
    """Canonical JSON of what is sealed."""
    previous: str
    """Hash of the record before; the chain's name hashed for the first."""
    hash: str
