"""Search lines with a regular expression, in a process of its own that has limits. Started by `lines`, never imported.

Reads one JSON object {"pattern", "texts", "most", "seconds", "bytes"} from standard input and writes {"hits": [[text, line], …],
"more": bool} or {"error": …}. A pattern can be made to run for years; here it runs out of processor time instead, also when the
process that started it is gone.
"""

import contextlib
import json
import re
import resource
import sys
import warnings


def main() -> None:
    """Answer the one question on standard input."""
    asked = json.load(sys.stdin)
    _limit(resource.RLIMIT_CPU, asked["seconds"])
    _limit(resource.RLIMIT_AS, asked["bytes"])
    _limit(resource.RLIMIT_CORE, 0)
    json.dump(_answer(asked["pattern"], asked["texts"], asked["most"]), sys.stdout)


def _limit(which: int, wanted: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    # macOS knows no limit of the address space; the limit of time is what ends a bad pattern.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(which, (most, most))


def _answer(pattern: str, texts: list[str], most: int) -> dict[str, object]:
    warnings.simplefilter("ignore")
    try:
        search = re.compile(pattern).search
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        return {"error": str(error) or type(error).__name__}
    hits: list[tuple[int, int]] = []
    for number, text in enumerate(texts):
        for line_number, line in enumerate(text.split("\n"), start=1):
            if search(line.removesuffix("\r")):
                if len(hits) == most:
                    return {"hits": hits, "more": True}
                hits.append((number, line_number))
    return {"hits": hits, "more": False}


if __name__ == "__main__":
    main()
