import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain import overlap as module
from mimir.domain.globs import matches
from mimir.domain.overlap import GlobSet, overlap


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ("a.py", "a.py", True),
        ("a.py", "b.py", False),
        ("src", "src/a.py", True),
        ("src/", "lib/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**", "src/deep/a.py", True),
        ("**/*.py", "docs/*.md", False),
        ("**/test_*.py", "tests/**", True),
        ("a*c", "*b*", True),
        ("a*.py", "b*.py", False),
        ("/etc/passwd", "**", False),
        ("..", "**", False),
        ("[ab].py", "c.py", True),
    ],
)
def test_overlap_of_two_globs(a: str, b: str, answer: bool) -> None:
    assert overlap(a, b) is answer
    assert overlap(b, a) is answer


names = st.sampled_from(["a", "b", "ab"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
globs = st.lists(st.sampled_from(["a", "b", "*", "a*", "?", "**"]), min_size=1, max_size=3).map(
    "/".join
)


@given(paths, globs, globs)
def test_globs_that_name_one_path_overlap(path: str, a: str, b: str) -> None:
    if matches(path, [a]) and matches(path, [b]):
        assert overlap(a, b)


GLOBS = st.sampled_from(
    ["a.py", "src", "src/", "src/a.py", "src/*.py", "src/**", "src/deep/b.py", "**/*.py", "**", "./a.py", "[ab].py", "..", "", "lib/*/c", "lib/x/c"]
)  # fmt: skip


@given(st.lists(st.lists(GLOBS, max_size=3), max_size=8), st.data())
def test_glob_set_meets_each_overlapping_glob(sets, data):
    gone = data.draw(st.lists(st.integers(0, 7), unique=True, max_size=4))
    held = GlobSet()
    for globs in sets:
        held.add(globs)
    left = [globs for n, globs in enumerate(sets) if n not in gone]
    for n in gone:
        if n < len(sets):
            held.remove(sets[n])
    for glob in ["a.py", "src/a.py", "src/**", "lib/x/c", "**/c", "b.py", "docs"]:
        assert held.meets([glob]) is any(overlap(glob, other) for globs in left for other in globs)
    again = GlobSet()
    for globs in left:
        again.add(globs)
    assert held == again


def test_large_glob_set_compares_only_equal_beginnings(monkeypatch):
    held = GlobSet()
    held.add(f"src/part{n}/**" for n in range(1_000))
    held.add(["docs/*.md"])
    compared: list[str] = []
    monkeypatch.setattr(module, "overlap", lambda a, b: compared.append(b) or overlap(a, b))
    assert held.meets(["src/part7/a.py"])
    assert not held.meets(["src/part1000/a.py"])
    assert compared == ["src/part7/**"]
