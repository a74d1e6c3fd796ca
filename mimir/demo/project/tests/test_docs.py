"""Release 0.2: what is new can be read about."""

from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_readme_tells_of_every_option():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in ("--top", "--markdown", "p95 ms", "broken lines") if name not in readme] == []


def test_the_changelog_begins_with_this_release():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changelog.startswith("# Changes\n\n## 0.2\n")
