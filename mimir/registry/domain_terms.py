"""Domain terms of a definition, which select memory and files for its context. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

MAX_TERMS = 24
MAX_PATHS = 30
_WORD = re.compile(r"[a-z][a-z0-9]{3,}")
_DOMAINS: Mapping[str, str] = {
    "security": "authentication patterns threat models security requirements",
    "devops": "deployment infrastructure constraints operations",
    "database": "data models performance consistency",
    "software": "code architecture patterns technical constraints",
    "test": "quality requirements coverage test patterns",
}


def domain_terms(name: str, description: str) -> tuple[str, ...]:
    """Return the words of a definition, and those of the domains that it names."""
    own = list(dict.fromkeys(_words(f"{name} {description}")))
    added = (
        word
        for domain, words in _DOMAINS.items()
        if any(_same(word, domain) for word in own)
        for word in words.split()
    )
    # The words of a domain come last: those of the definition say more.
    return tuple(dict.fromkeys([*own[: 2 * MAX_TERMS // 3], *added]))[:MAX_TERMS]


def select_paths(paths: Iterable[str], terms: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths that terms name, those of most terms first.

    A term that names very many paths says nothing about any of them.
    """
    # Hidden files are settings, such as the definitions themselves.
    words = {path: {*_words(path)} for path in paths if not path.startswith(".")}
    counts = Counter[str]()
    for term in terms:
        named = [path for path, own in words.items() if any(_same(word, term) for word in own)]
        counts.update(named if len(named) <= MAX_PATHS else ())
    best = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return tuple(path for path, _ in best[:MAX_PATHS])


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("_", " "))


def _same(word: str, term: str) -> bool:
    """Return whether two words are equal, apart from a plural."""
    return word.removesuffix("s") == term.removesuffix("s")
