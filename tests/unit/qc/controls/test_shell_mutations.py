"""Comparisons of shell scripts that a control changes."""

import pytest

from mimir.qc.controls import scripts


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('if [ "$(add 2 3)" != "5" ]; then\n  bad=1\nfi', 'if [ "$(add 2 3)" != "6" ]; then\n  bad=1\nfi'),
        ("if test $x -ne 2\nthen exit 1; fi", "if test $x -ne 3\nthen exit 1; fi"),
        ('if [ "$OS" != Linux ]; then\n  exit 0\nfi\nfail=1', None),
    ],
)  # fmt: skip
def test_a_difference_that_a_shell_script_reports_as_a_failure_changes(
    line: str, other: str | None
):
    assert scripts.mutate_script(line, "sh", "expectations") == other
    strict = line.replace("if ", "if exit 1; ", 1) if other else None
    assert scripts.mutate_script(line, "sh", "strict") == strict


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('test "$(add 2 3)" = 5', 'test "$(add 2 3)" = 6'),
        ("[[ $x == 'a b' ]]", "[[ $x == 'a bzq7' ]]"),
        ('[ "$x" -eq 2 ] || { echo no; exit 1; }', '[ "$x" -eq 3 ] || { echo no; exit 1; }'),
        ('[ "$(uname)" = Linux ] || exit 0', None),
        ('  [ "$x" = 5 ]', None),
        ('[ "$x" = 5 ] && skip', None),
        ('[ "$x" = "$y" ]', None),
    ],
)
def test_comparisons_that_end_a_shell_script_change(line: str, other: str | None):
    text = "set -eu\n{}\ndone\n"
    before = text.format(line)

    changed = scripts.mutate_script(before, "sh", "expectations")

    assert changed == (other and text.format(other))
    strict = text.format(f"exit 1; {line}") if other else None
    assert scripts.mutate_script(before, "sh", "strict") == strict
    assert scripts.mutate_script(f"{line.partition(' ||')[0]}\n", "sh", "expectations") is None


ASSERT = 'assert_eq() {\n[ "$1" = 5 ] || exit 1\n}\n'
"""Function whose comparison is not reached unless a line calls it."""


@pytest.mark.parametrize(
    ("line", "other"),
    [
        (f'{ASSERT}assert_eq "$(add 2 3)" 5\n', 'assert_eq "$(add 2 3)" 6\n'),
        (f'{ASSERT}  assertEquals "$sum" "a b"\n', 'assertEquals "$sum" "a bzq7"\n'),
        (f'{ASSERT}assert_eq "$x"\n', '[ "$1" = 6 ] || exit 1\n'),
        (ASSERT, None),
        ('assert_eq "$x" "$y" "adds two"\n', None),
        ("assert_ne $x 5\n", None),
    ],
)
def test_called_assertions_of_a_shell_script_change(line: str, other: str | None):
    changed = scripts.mutate_script(line, "sh", "expectations")

    assert (changed is None) == (other is None)
    assert (other or "") in (changed or "")
