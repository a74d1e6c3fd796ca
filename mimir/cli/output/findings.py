"""Findings of a plan as lines that users and editors read."""

from collections.abc import Sequence

from mimir.cli.console import clean_line
from mimir.domain.finding import Finding
from mimir.domain.quoted_text import count_noun
from mimir.qc.scope.owned_tests import OwnedTest, describe_owners

MAX_OWNERS = 20
"""Lines on the owners of tests."""


def is_error(finding: Finding) -> bool:
    """True if a plan with this finding cannot run."""
    return finding.severity == "error"


def as_lines(findings: Sequence[Finding], file: str) -> list[str]:
    """Return `file:line:column: severity CODE: message`, errors first, with suggestions."""
    lines: list[str] = []
    for one in sorted(findings, key=lambda f: (not is_error(f), f.line, f.column)):
        place = f"{clean_line(file)}:{one.line}:{one.column}"
        lines.append(f"{place}: {one.severity} {one.code}: {clean_line(one.message)}")
        if one.suggestion:
            lines.append(f"    {clean_line(one.suggestion)}")
    return lines


def owner_lines(tests: Sequence[OwnedTest]) -> list[str]:
    """Return a line for each group of tests with the same owners, at most `MAX_OWNERS`."""
    lines = [clean_line(sentence) for sentence in describe_owners(tests)]
    more = len(lines) - MAX_OWNERS
    return [*lines[:MAX_OWNERS], *([f"and {more} more"] if more > 0 else [])]


def summary(findings: Sequence[Finding], tasks: int, file: str) -> str:
    """Return the last line: whether the plan can run, and the counts."""
    errors = sum(map(is_error, findings))
    counts = [count_noun(tasks, "task")]
    counts += [count_noun(errors, "error")] if errors else []
    counts += [count_noun(len(findings) - errors, "warning")] if len(findings) > errors else []
    verdict = "cannot run" if errors else "can run"
    return f"{clean_line(file)} {verdict}: {', '.join(counts)}."
