"""Decision table of one check: the runs before and after the work decide its state. Pure.

| kind | before | after | criterion |
|---|---|---|---|
| any | program missing too | program missing | `broken`, plan finding, no retry |
| any | timed out | timed out | `broken`: its time limit is too short, or it hangs |
| flip | anything but exit 0 | exit 0 | passed |
| flip | exit 0 | exit 0 | `broken`: the check proves nothing |
| hold | exit 0 | exit 0 | passed |
| hold | not 0 | exit 0 | passed |
| hold | not 0 | not 0 | `broken`: was red before the work |
| any | | not 0, timeout, contradicted by its tests, or program missing only now | failed |
| none given | | | inferred from the run before (fails: flip, passes: hold) |

The first row that matches decides. Where the table is silent, "not 0" before the work is any run that is not green. A timeout after
the work counts as "red as before" only if the run before timed out too: a result that became worse is the fault of the work.
A `hold` that is red before only because of tests that earlier tasks wrote counts as green before.
`broken` needs a run before the work on the base as it is. If the attempt has a part in that run, such as its own tests, the check is
`unverified` instead, or failed after a timeout: the attempt could have made a check that works.
A required check that fails runs once more on the same tree; if that run is green, the check is flaky and proves nothing.
"""

from mimir.domain.evidence import CheckOutcome, CheckRun, CheckState
from mimir.domain.plan import Check, CheckKind

DecisionRow = tuple[str, CheckState]
"""A finding ("" for none) and a state."""


def kind_of(check: Check, before: CheckRun) -> CheckKind:
    """Return the kind of a check: the plan's, otherwise inferred from the run before the work."""
    if check.kind is not None:
        return check.kind
    return "hold" if before.green else "flip"


def needs_second_run(
    check: Check, before: CheckRun, after: CheckRun, *, on_base: bool = False
) -> bool:
    """True if the check must run once more on the tree of `after` before a decision."""
    state = _decide(kind_of(check, before), before, after, on_base)[1]
    return check.required and state == "failed"


def decide_check(
    check: Check,
    before: CheckRun,
    after: CheckRun,
    again: CheckRun | None = None,
    *,
    on_base: bool = False,
    self_authored: bool = False,
    notes: tuple[str, ...] = (),
) -> CheckOutcome:
    """Decide what the runs of one check prove; `notes` follow the findings of the table.

    `again` is the second run on the tree of `after`, if `needs_second_run`. `on_base`: the attempt has no part in `before`.
    """
    kind = kind_of(check, before)
    finding, state = _decide(kind, before, after, on_base)
    flaky = again is not None and again.green != after.green
    # A flaky check proves neither success nor failure.
    if flaky:
        finding, state = _FLAKY, "unverified"
    result = "fails" if kind == "flip" else "passes"
    note = f"The plan gives no kind; taken as {kind!r}, because it {result} before the work."
    findings = [note] if check.kind is None else []
    found = [text for text in (finding,) if text]
    # The reason of a broken check is quoted on its own, so it comes first.
    findings = [*found, *findings] if state == "broken" else [*findings, *found]
    return CheckOutcome(
        check=check.id,
        state=state,
        required=check.required,
        kind=kind,
        inferred=check.kind is None,
        before=before,
        after=after,
        again=again,
        flaky=flaky,
        self_authored=self_authored,
        findings=(*findings, *notes),
    )


def _decide(kind: CheckKind, before: CheckRun, after: CheckRun, on_base: bool) -> DecisionRow:
    no_proof: CheckState = "broken" if on_base else "unverified"
    # No retry can install a program, so this is a finding on the plan, not on the attempt.
    if before.missing and after.missing:
        return _MISSING, no_proof
    if on_base and before.timed_out and after.timed_out:
        return _TIMED_OUT, "broken"
    if after.green:
        # A flip that was green already can pass without the work.
        if kind == "flip" and before.green:
            return _PROVES_NOTHING if on_base else _TESTS_PROVE_NOTHING, no_proof
        return "", "passed"
    # "Red as before" excuses only what the work did not touch.
    got_worse = (
        before.green
        or after.missing
        or (after.timed_out and not before.timed_out)
        or (_is_refuted(after) and not _is_refuted(before))
    )
    if kind == "hold" and not got_worse:
        return _WAS_RED, no_proof
    return _failure(after), "failed"


def _failure(after: CheckRun) -> str:
    if after.missing:
        return "The program of this check was present before the work and is missing now."
    if after.timed_out:
        return "The check did not end within its time limit; timeout_seconds in the plan raises it."
    if after.contradiction:
        return f"The check ended with 0, but its tests decide: {after.contradiction}"
    return _CUT_SHORT if after.cut_short else ""


def _is_refuted(run: CheckRun) -> bool:
    return run.cut_short or bool(run.contradiction)


_CUT_SHORT = "The check ended with 0, but it cannot fail on this tree: the work ends its program early, or hides a failure."
_MISSING = (
    "The program of this check is not on this machine, or commands cannot see it: they see /usr, the "
    "project's environments, and the paths of `sandbox.read_only`. Install it, or name another program in the plan."
)
_TIMED_OUT = (
    "The check exceeds its time limit before the work and after it. Raise timeout_seconds in the plan, or name a faster "
    "command."
)
_PROVES_NOTHING = "The check proves nothing: it passes before the work too."
_TESTS_PROVE_NOTHING = (
    "The check proves nothing: with the tests of this attempt it passes before the work too. If the tests alone are the "
    "work, name their files, and no others, in the task's `Files`."
)
_WAS_RED = "The check was red before the work and still is; it proves nothing about the work."
_FLAKY = "The check is flaky: two runs on the same tree ended differently."
