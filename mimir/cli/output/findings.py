"""Findings of a plan as lines that users and editors read."""

from collections.abc import Sequence

from mimir.cli.console import clean_line
from mimir.planning.format.diagnostics import PlanFinding


def is_error(finding: PlanFinding) -> bool:
    """True if a plan with this finding cannot run."""
    return finding.severity == "error"


def as_lines(findings: Sequence[PlanFinding], file: str) -> list[str]:
    """Return `file:line:column: severity CODE: message`, each followed by its suggestion."""
    lines: list[str] = []
    for one in sorted(findings, key=lambda f: (f.line, f.column)):
        place = f"{clean_line(file)}:{one.line}:{one.column}"
        lines.append(f"{place}: {one.severity} {one.code}: {clean_line(one.message)}")
        if one.suggestion:
            lines.append(f"    {clean_line(one.suggestion)}")
    return lines


def summary(findings: Sequence[PlanFinding], tasks: int, file: str) -> str:
    """Return the last line: whether the plan can run, and the counts."""
    errors = sum(map(is_error, findings))
    counts = [_count_noun(tasks, "task")]
    counts += [_count_noun(errors, "error")] if errors else []
    counts += [_count_noun(len(findings) - errors, "warning")] if len(findings) > errors else []
    verdict = "cannot run" if errors else "can run"
    return f"{clean_line(file)} {verdict}: {', '.join(counts)}."


def _count_noun(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
