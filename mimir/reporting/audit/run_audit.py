"""Audit of the record of a run: each fact, each stored node and the report are as sealed."""

from collections.abc import Callable, Iterator

from mimir.domain.json_value import NO_MEMBERS, JsonObject, as_object, as_text
from mimir.domain.value_class import value_class
from mimir.errors import DamagedNode, StoreError
from mimir.reporting.audit.chain_audit import EvidenceChain
from mimir.store.protocol import ReadOps
from mimir.store.sealing.comparison import compare_run, load_report_to_compare
from mimir.store.sealing.row_digests import run_chain
from mimir.store.sealing.run_facts import Facts, has_record_form, load_facts

ReportHash = Callable[[str], str | None]
"""Returns the SHA-256 of a file of the project; None: there is no such file."""


@value_class
class RunAudit:
    """Comparison of a run with its record."""

    facts: Facts | None
    """Facts as stored, which the final gate seals. None: the run has an older form."""
    report: JsonObject
    """Path and hash of the sealed report. Empty: none, or a later run replaced it."""
    problems: tuple[str, ...]


def audit_run(reads: ReadOps, run: str, chain: EvidenceChain, *, ended: bool) -> RunAudit:
    """Compare a run with its record; `ended`: it must have one, unless it is older."""
    sealed = [(one.id, one.body) for one in chain.records]
    try:
        facts = load_facts(reads, run) if has_record_form(reads, run) else None
        report = load_report_to_compare(reads, run, sealed) if sealed else NO_MEMBERS
        if sealed:
            problems = tuple(compare_run(reads, run, sealed))
        elif facts and ended:
            problems = (f"{run_chain(run)}#00000: the record of the run is gone",)
        else:
            problems = ()
    except DamagedNode as error:
        problems, facts, report = (
            (f"{error.id}: it cannot be read; it was changed",), None, NO_MEMBERS,
        )  # fmt: skip
    except StoreError as error:
        problems, facts, report = (
            (f"{run}: it cannot be compared with its record: {error}",), None, NO_MEMBERS,
        )  # fmt: skip
    return RunAudit(facts=facts, report=report, problems=problems)


def report_problems(audit: RunAudit, report_hash: ReportHash, *, has_seal: bool) -> Iterator[str]:
    """Yield whether the files of report and plan are not those that were sealed.

    `has_seal`: a seal was given, which covers files that a copy of the store may lack, and a plan that the user may edit for the next run.
    """
    path = as_text(audit.report.get("path"))
    found = report_hash(path) if path else None
    if found is None and path and has_seal:
        yield f"{path}: this report is gone; `mimir report` writes it again"
    elif found not in (None, as_text(audit.report.get("sha256"))):
        yield f"{path}: this report is not the one that was sealed"
    plan = as_object(audit.report.get("plan"))
    path = as_text(plan.get("path"))
    if path and has_seal and (found := report_hash(path)) != as_text(plan.get("sha256")):
        yield f"{path}: this plan {'is gone' if found is None else 'is not the one that was executed'}"
