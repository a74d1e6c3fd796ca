"""File tools: read, list, search, write, edit and delete in one directory and scope.

`DirectoryTree` refuses every path that leads out; `PathScope` decides which paths the agent may see and write.
"""

import asyncio
from collections.abc import Callable, Sequence

from mimir.domain.message import ToolResult
from mimir.domain.quoted_text import count_noun, list_path, quote_text
from mimir.errors import ToolError
from mimir.tools.builtin import file_specs as specs
from mimir.tools.builtin.text_edit import replace_unique
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools
from mimir.tools.calls.text_pages import MAX_CHARS, lines_of, page
from mimir.tools.scope import EVERY_PATH, PathScope, normalise_path, relative_path
from mimir.tools.search.line_search import matching_lines
from mimir.tools.secrets import MARK
from mimir.workspace.paths import DirectoryTree

MAX_SEARCHED_BYTES = 50_000_000
MAX_HITS = 200
MAX_HIT_CHARS = 300
MAX_LISTED = 1_000


class FileTools(LocalTools):
    """The six file tools over one directory."""

    def __init__(
        self,
        tree: DirectoryTree,
        scope: PathScope = EVERY_PATH,
        *,
        redact: Callable[[str], str] = str,
        max_chars: int = MAX_CHARS,
    ) -> None:
        """Bind the tools to a directory and a scope.

        Args:
            tree: The directory.
            scope: The paths that this agent may see and write.
            redact: Replaces secrets in texts; keeps the number of lines.
            max_chars: Most characters of a result.
        """
        self._tree = tree
        self._scope = scope
        self._redact = redact
        # A search needs much memory and a process, and one message may contain fifty of them.
        self._one_search = asyncio.Semaphore(1)
        self._max_chars = max_chars
        super().__init__(
            (specs.READ, specs.LIST, specs.GREP, specs.WRITE, specs.EDIT, specs.DELETE)
        )

    def _handlers(self) -> Sequence[Handler]:
        return self._read, self._list, self._grep, self._write, self._edit, self._delete

    async def _read(self, given: ToolArguments) -> ToolResult:
        path = normalise_path(given.text("path"))
        self._scope.require_visible(path)
        # The whole file is redacted before lines are selected, so that no part of a secret is left.
        text = self._redact(self._text(path))
        offset = given.number("offset", 1)
        limit = given.number("limit", 0) or None
        got = page(text, offset, limit, self._max_chars)
        if not got.total:
            return ToolResult(text=f"{list_path(path)} is empty.")
        if not got.first:
            raise ToolError(
                f"{quote_text(path)} has {count_noun(got.total, 'line')}; offset {offset:,} is past its end.",
                next_step="Give a smaller offset.",
            )
        header = f"{list_path(path)}, lines {got.first:,} to {got.last:,} of {got.total:,}\n"
        end = "" if got.text.endswith("\n") else "\n"
        if got.cut:
            end += f"[line {got.last:,} continues for {got.cut:,} more characters that cannot be shown; use grep]\n"
        if got.last < got.total:
            end += f"[not the end: read on with offset={got.last + 1}]\n"
        return ToolResult(text=(header + got.text + end).removesuffix("\n"))

    async def _list(self, given: ToolArguments) -> ToolResult:
        glob = given.text("glob", "**")
        paths = await asyncio.to_thread(self._find_visible, glob)
        if not paths:
            return ToolResult(text=_describe_no_match(glob))
        listed: list[str] = []
        room = self._max_chars
        for path in paths[:MAX_LISTED]:
            room -= len(list_path(path)) + 1
            if room < 0:
                break
            listed.append(list_path(path))
        left = len(paths) - len(listed)
        more = [f"[{count_noun(left, 'file')} not shown: give a narrower glob]"] if left else []
        return ToolResult(text="\n".join([count_noun(len(paths), "file"), *listed, *more]))

    async def _grep(self, given: ToolArguments) -> ToolResult:
        pattern, glob = given.text("pattern"), given.text("glob", "**")
        paths = await asyncio.to_thread(self._find_visible, glob)
        if not paths:
            return ToolResult(text=_describe_no_match(glob))
        async with self._one_search:
            sources, left_out = await asyncio.to_thread(self._sources, paths)
            hits = await matching_lines(pattern, [text for _, text in sources], most=MAX_HITS)
        lines: list[str] = []
        room = self._max_chars
        for index, number in hits.places:
            path, text = sources[index]
            line = text.split("\n")[number - 1].removesuffix("\r")
            cut = "…" if len(line) > MAX_HIT_CHARS else ""
            # A line of minified code would fill the whole result.
            lines.append(f"{list_path(path)}:{number}: {line[:MAX_HIT_CHARS]}{cut}")
            room -= len(lines[-1]) + 1
            if room < 0:
                lines.pop()
                break
        output = [_count_hits(len(lines), more=hits.more or room < 0), *lines]
        if left_out:
            output.append(
                f"[not searched: {count_noun(left_out, 'file')} (no UTF-8 text, or too large)]"
            )
        return ToolResult(text="\n".join(output))

    async def _write(self, given: ToolArguments) -> ToolResult:
        path, content = normalise_path(given.text("path")), given.text("content")
        self._scope.require_writable(path)
        is_new = not self._tree.exists(path)
        # The model sees marks instead of secrets and may write them back.
        if MARK in content and not is_new:
            self._require_no_secret(path, self._tree.read(path).decode(errors="replace"))
        data = content.encode()
        self._tree.write(path, data)
        how = "new file" if is_new else "replaced the file"
        lines = count_noun(len(lines_of(content)), "line")
        return ToolResult(
            text=f"Wrote {list_path(path)}: {lines}, {count_noun(len(data), 'byte')} ({how})."
        )

    async def _edit(self, given: ToolArguments) -> ToolResult:
        path, old, new = normalise_path(given.text("path")), given.text("old"), given.text("new")
        self._scope.require_writable(path)
        text = self._text(path)
        if MARK in new or MARK in old:
            self._require_no_secret(path, text)
        # A failed search is explained with the text as the model saw it.
        edit = replace_unique(text, old, new, path, seen=self._redact(text))
        self._tree.write(path, edit.text.encode())
        was, now = count_noun(len(lines_of(old)), "line"), count_noun(len(lines_of(new)), "line")
        return ToolResult(
            text=f"Edited {list_path(path)} at line {edit.line:,}: {was} became {now}."
        )

    async def _delete(self, given: ToolArguments) -> ToolResult:
        path = normalise_path(given.text("path"))
        self._scope.require_writable(path)
        self._tree.delete(path)
        return ToolResult(text=f"Deleted {list_path(path)}.")

    def _text(self, path: str) -> str:
        """Return a file as text; a `ToolError` if it is missing, too large or not UTF-8."""
        data = self._tree.read(path)
        # Git too takes a text with a NUL for binary.
        if b"\0" in data:
            raise ToolError(
                f"{quote_text(path)} is a binary file of {count_noun(len(data), 'byte')}; it cannot be shown as text.",
                next_step="Use a command to look into it.",
            )
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ToolError(
                f"{quote_text(path)} is not UTF-8 text: byte {data[error.start]:#04x} at offset {error.start:,}.",
                next_step="Use a command that knows its encoding.",
            ) from None

    def _require_no_secret(self, path: str, text: str) -> None:
        """Refuse to overwrite a secret with its mark."""
        if self._redact(text) != text:
            raise ToolError(
                f"{quote_text(path)} holds a secret that you see as '{MARK}…]'; writing that mark would destroy it. "
                "Nothing was changed.",
                next_step="Use edit_file on other lines and leave that one alone.",
            )

    def _find_visible(self, glob: str) -> Sequence[str]:
        return [path for path in self._tree.walk(relative_path(glob)) if self._scope.sees(path)]

    def _sources(self, paths: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
        """Return (path, redacted text) of the searchable files, and the number of others."""
        sources: list[tuple[str, str]] = []
        room = MAX_SEARCHED_BYTES
        for path in paths:
            try:
                data = self._tree.read(path)
                text = data.decode()
            except (ToolError, UnicodeDecodeError):
                continue
            if b"\0" not in data and len(data) <= room:
                # A pattern that could match inside a secret would reveal it letter by letter.
                sources.append((path, self._redact(text)))
                room -= len(data)
        return sources, len(paths) - len(sources)


def _describe_no_match(glob: str) -> str:
    hint = " '*' does not cross '/': use '**/' for any depth." if "**" not in glob else ""
    return f"No file matches {quote_text(glob)}.{hint}"


def _count_hits(number: int, *, more: bool) -> str:
    if more:
        return f"the first {count_noun(number, 'matching line')}; there are more: narrow the pattern or the glob"
    return count_noun(number, "matching line")
