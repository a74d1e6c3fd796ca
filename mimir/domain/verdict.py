"""QC's answer and the engine's verdict on an attempt. Pure."""

from fractions import Fraction
from typing import Literal

from mimir.domain.value_class import value_class

State = Literal["passed", "failed", "unverified"]


@value_class
class CriterionOpinion:
    """QC's statement on one criterion; untrusted."""

    id: str
    state: State
    quote: str = ""
    source: str = ""
    """`check:<id>`, `file:<path>`, `qc:<seq>`, `call:<seq>` or `answer`."""


@value_class
class FixOpinion:
    """QC's statement on one required fix of the previous attempt; untrusted."""

    index: int
    """1-based, as in the numbered list."""
    state: State
    quote: str = ""
    source: str = ""


@value_class
class QCAnswer:
    """QC's answer, parsed strictly; nothing in it is verified."""

    verdict: Literal["PASS", "FAIL"]
    score: Fraction
    """0 to 100, the model's own number."""
    feedback: str = ""
    issues: tuple[str, ...] = ()
    required_fixes: tuple[str, ...] = ()
    criteria: tuple[CriterionOpinion, ...] = ()
    fixes: tuple[FixOpinion, ...] = ()
    criteria_impossible: bool = False


@value_class
class CriterionResult:
    """Verified state of one criterion."""

    id: str
    text: str
    state: State
    basis: Literal["executed", "judged"]
    """"executed": a required check decided; "judged": a verified quote of QC."""
    points: Fraction
    """Share of 100."""
    critical: bool = False
    quote: str = ""
    source: str = ""
    reason: str = ""


@value_class
class Verdict:
    """The engine's decision on an attempt; only this moves a task to `qc_passed`."""

    passed: bool
    score: Fraction
    """100 × points of passed criteria ÷ points of decided ones; 0 if none is decided."""
    model_score: Fraction
    verdict: QCAnswer
    criteria: tuple[CriterionResult, ...]
    reasons: tuple[str, ...] = ()
    """Reasons of a verdict that did not pass; empty when passed."""
    issues: tuple[str, ...] = ()
    """Issues of QC and of the engine: failed checks, protected files, failed fixes."""
    required_fixes: tuple[str, ...] = ()
    fixes_failed: tuple[int, ...] = ()
    """1-based indices of required fixes that are still not done."""
    unverifiable: bool = False
    criteria_impossible: bool = False
    unsupported_claims: tuple[str, ...] = ()
