"""The tutorial of docs/people.md shows the current output of its commands."""

from pathlib import Path

from scripts import people_screens


def test_the_screens_of_the_page_are_current(tmp_path: Path):
    page = people_screens.DOCUMENT.read_text(encoding="utf-8")

    screens = people_screens.make_screens(tmp_path)

    assert page == people_screens.put(page, screens), "python -m scripts.people_screens"
