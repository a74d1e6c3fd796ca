"""Failing examples in documents of code: doctests of Python, and examples of Rust. Pure.

The examples are in the files of the work, so only they change there.
"""

import re

from mimir.qc.mutations.mutation import MARK, SUFFIX

SUFFIXES = frozenset(("py", "rs", "md", "rst", "txt"))
_PYTHON = re.compile(r"^([ \t]*)>>> ", re.MULTILINE)
_EXPECTED = re.compile(
    r"^(?P<indent>[ \t]*)>>> (?!.*\+SKIP).*\n(?:(?P=indent)\.\.\.(?: .*)?\n)*"
    r"(?:(?P=indent)Traceback \(.*\n(?:(?P=indent)[ \t.].*\n)*)?(?P=indent)(?!>>>|[ \t.])(?=\S)",
    re.MULTILINE,
)
"""A call up to the text that it must print, or up to the error that it must raise."""
_RUST = re.compile(
    r"^[ \t]*//[/!][ \t]*```(?P<words>[\w,]*)[ \t]*\n(?P<code>(?:[ \t]*//[/!](?![ \t]*```).*\n)+)(?P<mark>[ \t]*//[/!])[ \t]*```",
    re.MULTILINE,
)
_PLAIN = re.compile(r"(?:rust|edition\d+|,)*")
_WHOLE = re.compile(r"\bfn\s+main\b|\(\(\)\)\s*$")
"""A whole program, or one with a result: nothing can follow its text."""


def fail_examples(text: str, suffix: str) -> str | None:
    """Return a text whose examples fail; None: it has none. Any text may hold those of Python."""
    if suffix == "rs":
        found = _RUST.sub(_fail_at_end, text)
    else:
        parts = re.split(r"(\"{3}|\'{3})", text) if suffix == "py" else [text]
        found = "".join(map(_fail_python, parts))
    return found if found != text else None


def _fail_python(text: str) -> str:
    # The work may replace the comparison, so an error in place of a value shows too little.
    found = _EXPECTED.sub(rf"\g<0>{SUFFIX}", text)
    return (
        found
        if found != text
        else _PYTHON.sub(rf'\1>>> raise AssertionError("{MARK}")\n\1>>> ', text)
    )


def _fail_at_end(found: re.Match[str]) -> str:
    if not _PLAIN.fullmatch(found["words"]) or _WHOLE.search(found["code"]):
        return found[0]
    # At the end: the work may end the program of the example early.
    head = found[0][: found.end("code") - found.start()]
    tail = found[0][len(head) :]
    return f"{head}{found['mark']} ; assert!(core::hint::black_box(false));\n{tail}"
