"""Named queries of a file; each begins with a comment line `name: description`."""

import pkgutil
import re
from collections.abc import Mapping
from functools import cache


@cache
def load_queries(package: str, file: str, comment: str) -> Mapping[str, str]:
    """Return the queries of a file by name, without the lines that begin with `comment`."""
    # `importlib.resources` would take longer to import than `mimir runs` to read.
    text = (pkgutil.get_data(package, file) or b"").decode("utf-8")
    mark = re.escape(comment)
    parts = re.split(rf"^{mark} ([a-z-]+): .*$", text, flags=re.MULTILINE)[1:]
    comment_line = re.compile(rf"^{mark}.*$\n?", re.MULTILINE)
    return {
        name: comment_line.sub("", body).strip("\n")
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
