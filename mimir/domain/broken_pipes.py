"""Pipelines whose reader ends first: the writer's exit 141 is no failure. Pure.

With pipefail, `seq 100000 | head -1` fails: `head` ends, and SIGPIPE kills `seq`. So each writer of a pipeline is followed by a test: after exit
141 it writes one byte itself. If that fails too, the reader has really ended. A command that only ends with 141 still fails.
"""

from collections.abc import Iterator, Sequence

from mimir.domain.shell_lexer import ShellLexer, ShellToken, UnknownSyntax

_PIPEFAIL = ("bash", "-o", "pipefail", "-c")
_OPENERS = frozenset({"!", "time", "if", "then", "elif", "else", "while", "until", "do", "{"})
_CLOSERS = frozenset({"}", "fi", "done", "esac", "in", "case", "for", "function", "select"})
_TEST = "(s=$?; trap '' PIPE; [ $s = 141 ] && ! printf '\\n' 2>/dev/null || exit $s)"


def forgive_broken_pipes(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command whose pipelines do not fail because their reader ended first."""
    words = list(argv)
    for at in range(len(words) - len(_PIPEFAIL)):
        if tuple(words[at : at + len(_PIPEFAIL)]) == _PIPEFAIL:
            words[at + len(_PIPEFAIL)] = _forgive(words[at + len(_PIPEFAIL)])
    return tuple(words)


def early_readers(script: str) -> Iterator[str]:
    """Yield the commands of a script that may end before they have read their pipe."""
    for before, word, after in _commands(script):
        if before in ("|", "|&") and (word == "head" or (word == "grep" and _is_quiet(after))):
            yield f"{word} {after}".strip()


def _is_quiet(option: str) -> bool:
    return option == "--quiet" or (option[:1] == "-" and option[:2] != "--" and "q" in option)


def _commands(script: str) -> Iterator[tuple[str, str, str]]:
    """Yield (operator before it, first word, second word) of each command."""
    tokens = _tokens(script)
    for at, token in enumerate(tokens):
        before = tokens[at - 1].kind if at else ""
        if token.kind == "word" and before not in ("word", "input"):
            after = tokens[at + 1] if at + 1 < len(tokens) else None
            yield before, token.word.text, after.word.text if after else ""


def _forgive(script: str) -> str:
    """Put the test after each simple command that writes to a pipe."""
    pieces: list[str] = []
    done = start = 0
    is_simple, is_first = True, True
    for token in _tokens(script):
        if token.kind not in ("word", "input"):
            if token.kind in ("|", "|&") and is_simple and not is_first:
                command = script[start : token.start].strip()
                pieces += [script[done:start], f" {{ {command} || {_TEST}; }} "]
                done = token.start
            # A compound command ends with `)`, or with a word of `_CLOSERS`.
            is_simple, is_first, start = token.kind != ")", True, token.end
        elif is_first and token.word.literal and token.word.text in _OPENERS:
            start = token.end
        else:
            is_simple = is_simple and not (is_first and token.word.text in _CLOSERS)
            is_first = False
    return "".join((*pieces, script[done:]))


def _tokens(script: str) -> list[ShellToken]:
    """Return the tokens; none for syntax that is not known, so that the script stays as it is."""
    try:
        return ShellLexer(script).tokens()
    except UnknownSyntax:
        return []
