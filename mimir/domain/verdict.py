"""QC's structured judgement, and what the engine makes of it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

State = Literal["passed", "failed", "unverified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionOpinion:
    """What QC says of one criterion; untrusted."""

    id: str
    state: State
    quote: str = ""
    source: str = ""
    """`check:<id>`, `file:<path>`, `qc:<seq>`, `call:<seq>` or `answer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixOpinion:
    """What QC says of one required fix of the attempt before."""

    index: int
    """1-based, as in the numbered checklist."""
    state: State
    quote: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QCAnswer:
    """QC's answer, read strictly; nothing in it is believed yet."""

    verdict: Literal["PASS", "FAIL"]
    score: Fraction
    """0–100, the model's own number."""
    feedback: str = ""
    issues: tuple[str, ...] = ()
    required_fixes: tuple[str, ...] = ()
    criteria: tuple[CriterionOpinion, ...] = ()
    fixes: tuple[FixOpinion, ...] = ()
    criteria_impossible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """The state of one criterion after the engine looked."""

    id: str
    text: str
    state: State
    basis: Literal["executed", "judged"]
    """"executed": a required check decided; "judged": QC's verified quote did."""
    points: Fraction
    """Share of 100."""
    critical: bool = False
    quote: str = ""
    source: str = ""
    reason: str = ""
    """Why it is not passed, in words; empty when passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The engine's ruling on one attempt; the only thing that moves a task to `qc_passed`."""

    passed: bool
    score: Fraction
    """Recomputed: 100 × points of passed criteria ÷ points of decided ones; 0 when none is decided."""
    model_score: Fraction
    verdict: QCAnswer
    criteria: tuple[CriterionResult, ...]
    reasons: tuple[str, ...] = ()
    """Why it did not pass; empty when passed."""
    issues: tuple[str, ...] = ()
    """QC's issues and the engine's own: failed checks, protected files, failed fixes."""
    required_fixes: tuple[str, ...] = ()
    fixes_failed: tuple[int, ...] = ()
    """1-based indices of required fixes of the attempt before that are still not done."""
    unverifiable: bool = False
    criteria_impossible: bool = False
    unsupported_claims: tuple[str, ...] = ()
