"""Descriptions of the file tools for the model.

They are short and exact, because every prompt of a worker contains them. A change breaks existing recordings.
"""

from mimir.tools.calls.local_tools import describe_tool, string, whole_number

MAX_LINE = 100_000_000

_PATH = string("Relative to the workspace, such as src/main.py.")
_GLOB = string("Such as src/**/*.py; * does not cross /, ** does. Default: all files.")

READ = describe_tool(
    "read_file",
    "Read a text file by lines. Long files come in parts; the end of each says how to read on.",
    {
        "path": _PATH,
        "offset": whole_number(1, MAX_LINE, "First line, from 1. Default 1."),
        "limit": whole_number(1, MAX_LINE, "Most lines. Default: as many as fit."),
    },
    required=("path",),
)

LIST = describe_tool("list_files", "List the files of the workspace by name.", {"glob": _GLOB})

GREP = describe_tool(
    "grep",
    "Find lines that match a regular expression (Python's syntax), as path:line: text.",
    {"pattern": string("Compared with one line at a time."), "glob": _GLOB},
    required=("pattern",),
)

WRITE = describe_tool(
    "write_file",
    "Write a whole text file; missing folders are made. To change a part of one, use edit_file.",
    {"path": _PATH, "content": string("The whole new text.")},
    required=("path", "content"),
    read_only=False,
)

EDIT = describe_tool(
    "edit_file",
    "Replace text that occurs exactly once in a file.",
    {
        "path": _PATH,
        "old": string("Copied exactly, white space included, with enough lines to be found once."),
        "new": string("The text in its place; may be empty."),
    },
    required=("path", "old", "new"),
    read_only=False,
)

DELETE = describe_tool(
    "delete_file",
    "Delete one file.",
    {"path": _PATH},
    required=("path",),
    read_only=False,
)
