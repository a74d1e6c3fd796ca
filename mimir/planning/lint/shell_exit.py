"""Possible exit codes of a bash command line, found by parsing, without execution. Pure.

The result errs on one side: an unknown command may succeed or fail, and unknown syntax raises
`UnknownSyntax`. So "cannot fail" is certain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto

from mimir.domain.shell_lexer import ShellLexer, ShellToken, ShellWord, UnknownSyntax

MAX_CHARS = 20_000
MAX_DEPTH = 30


class ExitOutcomes(Flag):
    """Possible ends of a command; EXIT_OK and EXIT_FAIL also end the shell."""

    NONE = 0
    OK = auto()
    FAIL = auto()
    EXIT_OK = auto()
    EXIT_FAIL = auto()
    EITHER = OK | FAIL
    EXITS = EXIT_OK | EXIT_FAIL

    def select(self, any_of: "ExitOutcomes", result: "ExitOutcomes") -> "ExitOutcomes":
        """Return `result` if any of the given ends is possible, otherwise NONE."""
        return result if self & any_of else ExitOutcomes.NONE

    def leave_subshell(self) -> "ExitOutcomes":
        """Return the ends of a subshell: an exit inside it is its status."""
        ok = self.select(ExitOutcomes.OK | ExitOutcomes.EXIT_OK, ExitOutcomes.OK)
        return ok | self.select(ExitOutcomes.FAIL | ExitOutcomes.EXIT_FAIL, ExitOutcomes.FAIL)

    def negate(self) -> "ExitOutcomes":
        """Return the ends of `! command`."""
        swapped = self.select(ExitOutcomes.OK, ExitOutcomes.FAIL)
        swapped |= self.select(ExitOutcomes.FAIL, ExitOutcomes.OK)
        return self & ExitOutcomes.EXITS | swapped


@dataclass(slots=True)
class ShellState:
    """Options and last status of a shell."""

    errexit: bool = False
    pipefail: bool = False
    last: ExitOutcomes = ExitOutcomes.OK
    always_zero: bool = False
    """True: a trap ends the shell with 0."""


Judge = Callable[[Sequence[ShellWord], ShellState, bool], ExitOutcomes]
"""Rule for a simple command: (words, state of the shell, input is a pipe) → its ends."""


def ends_of(
    text: str, judge: Judge, *, errexit: bool = False, pipefail: bool = False, depth: int = 0
) -> ExitOutcomes:
    """Return the possible ends of `bash -c text`.

    Raises:
        UnknownSyntax: The text is too long, nested too deep, or not understood.
    """
    if len(text) > MAX_CHARS or depth > MAX_DEPTH:
        raise UnknownSyntax
    state = ShellState(errexit=errexit, pipefail=pipefail)
    ends = _ShellParser(ShellLexer(text).tokens(), judge, state, depth).script().leave_subshell()
    # A trap that exits with 0 wins over every other end of the shell.
    return ExitOutcomes.OK if state.always_zero else ends


_RESERVED = frozenset({"then", "else", "elif", "fi", "do", "done", "}", "esac", "in"})


class _ShellParser:
    """Recursive-descent parser of bash; each method returns the ends of the part it read."""

    def __init__(
        self, tokens: list[ShellToken], judge: Judge, state: ShellState, depth: int
    ) -> None:
        self.tokens = tokens
        self.at = 0
        self.judge = judge
        self.state = state
        self.depth = depth

    def script(self) -> ExitOutcomes:
        """Return the ends of the whole text."""
        ends = self._list(frozenset())
        if self.at < len(self.tokens):
            raise UnknownSyntax
        return ends

    def _kind(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else "end"

    def _keyword(self) -> str:
        """Return the next word if it is not quoted or expanded, otherwise an empty text."""
        if self._kind() == "word" and self.tokens[self.at].word.literal:
            return self.tokens[self.at].word.text
        return ""

    def _take(self, keyword: str) -> None:
        if self._keyword() != keyword and self._kind() != keyword:
            raise UnknownSyntax
        self.at += 1

    def _list(self, ends_at: frozenset[str]) -> ExitOutcomes:
        """Return the ends of a sequence: those of its last command, and earlier exits."""
        exits, last = ExitOutcomes.NONE, ExitOutcomes.OK
        reachable = True
        while self._kind() not in ("end", ")", ";;") and self._keyword() not in ends_at:
            ends = self._and_or()
            # A background command never delays or fails its shell.
            if self._kind() == "&":
                ends = ExitOutcomes.OK
            if self.state.errexit and ends & ExitOutcomes.FAIL:
                ends = (ends & ~ExitOutcomes.FAIL) | ExitOutcomes.EXIT_FAIL
            # Commands after an unconditional exit are parsed, but their ends do not count.
            if reachable:
                exits |= ends & ExitOutcomes.EXITS
                last = ends & ExitOutcomes.EITHER
                # An exit alone leaves no status; OK keeps `exit` without a number harmless.
                self.state.last = last or ExitOutcomes.OK
                reachable = bool(last)
            while self._kind() in (";", "&"):
                self.at += 1
        return exits | last

    def _and_or(self) -> ExitOutcomes:
        ends = self._pipeline()
        while self._kind() in ("&&", "||"):
            continues = ExitOutcomes.OK if self._kind() == "&&" else ExitOutcomes.FAIL
            self.at += 1
            self._skip_breaks()
            if ends & ExitOutcomes.EITHER:
                self.state.last = ends & ExitOutcomes.EITHER
            right = self._pipeline()
            if ends & continues:
                ends = (ends & ~continues) | right
        return ends

    def _skip_breaks(self) -> None:
        while self._kind() == ";":
            self.at += 1

    def _pipeline(self) -> ExitOutcomes:
        negated = False
        while self._keyword() in ("!", "time"):
            negated ^= self._keyword() == "!"
            self.at += 1
        ends = self._command(piped=False)
        if self._kind() in ("|", "|&"):
            every = [ends.leave_subshell()]
            while self._kind() in ("|", "|&"):
                self.at += 1
                self._skip_breaks()
                every.append(self._command(piped=True).leave_subshell())
            ends = every[-1]
            if self.state.pipefail and any(one & ExitOutcomes.FAIL for one in every):
                ends |= ExitOutcomes.FAIL
            if self.state.pipefail and not all(one & ExitOutcomes.OK for one in every):
                ends &= ~ExitOutcomes.OK
        return ends.negate() if negated else ends

    def _command(self, *, piped: bool) -> ExitOutcomes:
        keyword = self._keyword()
        if self._kind() == "(":
            return self._subshell()
        if keyword == "{":
            self.at += 1
            ends = self._nested(frozenset({"}"}))
            self._take("}")
            return self._redirected(ends)
        if keyword == "if":
            return self._redirected(self._if())
        if keyword in ("for", "while", "until"):
            return self._redirected(self._loop())
        if keyword in ("case", "function", "select", "coproc") or keyword in _RESERVED:
            raise UnknownSyntax
        return self._simple(piped=piped)

    def _nested(self, ends_at: frozenset[str]) -> ExitOutcomes:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnknownSyntax
        ends = self._list(ends_at)
        self.depth -= 1
        return ends

    def _subshell(self) -> ExitOutcomes:
        self.at += 1
        # Options that a subshell sets end with it.
        outer, self.state = self.state, replace(self.state)
        ends = self._nested(frozenset()).leave_subshell()
        self.state = outer
        self._take(")")
        return self._redirected(ends)

    def _redirected(self, ends: ExitOutcomes) -> ExitOutcomes:
        while self._kind() == "input":
            self.at += 1
            ends |= ExitOutcomes.FAIL  # the file may be missing
        return ends

    def _if(self) -> ExitOutcomes:
        self.at += 1
        # Bash ignores `set -e` in a condition.
        errexit, self.state.errexit = self.state.errexit, False
        condition = self._nested(frozenset({"then"}))
        self.state.errexit = errexit
        self._take("then")
        ends = condition & ExitOutcomes.EXITS
        ends |= self._nested(frozenset({"elif", "else", "fi"}))
        if self._keyword() == "elif":
            return ends | self._if()
        if self._keyword() == "else":
            self.at += 1
            ends |= self._nested(frozenset({"fi"}))
        else:
            # No branch may match; an `if` without `else` then succeeds.
            ends |= ExitOutcomes.OK
        self._take("fi")
        return ends

    def _loop(self) -> ExitOutcomes:
        # A loop that waits for a condition may end by the timeout: that is a failure too.
        ends = ExitOutcomes.OK if self._keyword() == "for" else ExitOutcomes.EITHER
        self._skip_to("do")
        ends |= self._nested(frozenset({"done"}))
        self._take("done")
        return ends

    def _simple(self, *, piped: bool) -> ExitOutcomes:
        words: list[ShellWord] = []
        reads = False
        while self._kind() in ("word", "input"):
            reads = reads or self._kind() == "input"
            if self._kind() == "word":
                words.append(self.tokens[self.at].word)
            self.at += 1
            # Inside [[ … ]], `<`, `&&` and `(` are operators of the test, not of the shell.
            if words and words[0].text == "[[":
                self._skip_to("]]")
                return ExitOutcomes.EITHER
        # A word before "(" defines a function, which a later word would call.
        if self._kind() == "(" or (not words and not reads):
            raise UnknownSyntax
        ends = self.judge(words, self.state, piped) if words else ExitOutcomes.OK
        # The file that is read may be missing.
        return ends | ExitOutcomes.FAIL if reads else ends

    def _skip_to(self, keyword: str) -> None:
        while self._keyword() != keyword:
            if self._kind() == "end":
                raise UnknownSyntax
            self.at += 1
        self.at += 1
