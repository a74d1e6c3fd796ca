"""Lexer of bash command lines: quotes, expansions, redirections, here-documents. Pure."""

import re
from dataclasses import dataclass, field, replace


class UnknownSyntax(Exception):  # noqa: N818  not an error of the line
    """The line has syntax that the lexer does not know."""


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word of a command."""

    text: str
    literal: bool = True
    """False: it has an expansion, so its value is unknown."""


_OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "(", ")", "\n")
_REDIRECTION = re.compile(r"\d*(?:&>>?|>>|>\||>&|<&|<>|>|<(?![<(]))")
_HEREDOC = re.compile(r"\d*<<(-?)\s*(['\"]?)([\w.-]+)\2")
_BREAKS = " \t\n;|&()<>"


@dataclass(frozen=True, slots=True)
class ShellToken:
    """A word or an operator."""

    kind: str
    """`word`, `input` (a redirection of it), or the operator."""
    word: ShellWord = field(default_factory=lambda: ShellWord(""))
    start: int = 0
    """Offset of its first character in the text."""
    end: int = 0


class ShellLexer:
    """Reads a line from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.waiting: list[tuple[str, bool]] = []
        """End marks of here-documents that begin after the next line break."""

    def tokens(self) -> list[ShellToken]:
        """Return the tokens; raise UnknownSyntax if one is not known."""
        found: list[ShellToken] = []
        while self._skip_blanks():
            start = self.at
            token = self._next()
            if token is not None:
                found.append(replace(token, start=start, end=self.at))
        if self.waiting:
            raise UnknownSyntax
        return found

    def _skip_blanks(self) -> bool:
        while self.at < len(self.text):
            sign = self.text[self.at]
            if self.text.startswith("\\\n", self.at):
                self.at += 2
            elif sign in " \t\r":
                self.at += 1
            elif sign == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def _next(self) -> ShellToken | None:
        heredoc = _HEREDOC.match(self.text, self.at)
        if heredoc:
            self.at = heredoc.end()
            self.waiting.append((heredoc[3], bool(heredoc[1])))
            return ShellToken("input")
        redirection = _REDIRECTION.match(self.text, self.at)
        if redirection:
            self.at = redirection.end()
            self._skip_blanks()
            self._word()
            return ShellToken("input") if redirection[0].lstrip("0123456789") == "<" else None
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                # Arithmetic: `((` is not two subshells.
                if self.text.startswith("((", self.at):
                    raise UnknownSyntax
                self.at += len(operator)
                if operator == "\n":
                    self._skip_heredocs()
                return ShellToken(";" if operator == "\n" else operator)
        return ShellToken("word", self._word())

    def _skip_heredocs(self) -> None:
        for end, tabs in self.waiting:
            while True:
                if self.at >= len(self.text):
                    raise UnknownSyntax
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                if (line.lstrip("\t") if tabs else line) == end:
                    break
        self.waiting = []

    def _word(self) -> ShellWord:
        start, pieces, literal = self.at, list[str](), True
        while self.at < len(self.text) and self.text[self.at] not in _BREAKS:
            piece, known = self._piece()
            pieces.append(piece)
            literal = literal and known
        if self.at == start:
            raise UnknownSyntax
        text = "".join(pieces)
        return ShellWord(text, literal or text in ("{", "}"))

    def _piece(self) -> tuple[str, bool]:
        sign = self.text[self.at]
        if sign == "\\":
            self.at += 2
            return self.text[self.at - 1 : self.at].replace("\n", ""), True
        if sign == "'":
            return self._until("'"), True
        if sign == '"':
            return self._double_quoted()
        if sign == "$" or sign == "`":
            return self._expansion(), False
        self.at += 1
        return sign, sign not in "*?[{~" or sign == "["

    def _until(self, end: str) -> str:
        stop = self.text.find(end, self.at + 1)
        if stop < 0:
            raise UnknownSyntax
        inner = self.text[self.at + 1 : stop]
        self.at = stop + 1
        return inner

    def _double_quoted(self) -> tuple[str, bool]:
        self.at += 1
        pieces: list[str] = []
        literal = True
        while self.at < len(self.text) and self.text[self.at] != '"':
            sign = self.text[self.at]
            if sign == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                pieces.append(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif sign in "$`":
                pieces.append(self._expansion())
                literal = literal and pieces[-1] == "$"
            else:
                pieces.append(sign)
                self.at += 1
        if self.at >= len(self.text):
            raise UnknownSyntax
        self.at += 1
        return "".join(pieces), literal

    def _expansion(self) -> str:
        """Return `$name`, `${…}`, `$(…)` or backticks as written."""
        start = self.at
        if self.text[self.at] == "`":
            self._until("`")
        elif self.text.startswith("$(", self.at):
            self.at += 1
            self._balanced("(", ")")
        elif self.text.startswith("${", self.at):
            self.at += 1
            self._balanced("{", "}")
        else:
            match = re.compile(r"\$(?:\w+|[?$!#@*-]|(?=['\"]))?").match(self.text, self.at)
            self.at = match.end() if match else self.at + 1
        return self.text[start : self.at]

    def _balanced(self, opening: str, closing: str) -> None:
        depth = 0
        while self.at < len(self.text):
            sign = self.text[self.at]
            depth += (sign == opening) - (sign == closing)
            if sign == "'" and opening == "(":
                self._until("'")
                continue
            self.at += 2 if sign == "\\" else 1
            if depth == 0:
                return
        raise UnknownSyntax
