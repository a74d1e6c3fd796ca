"""The matcher process: a search by regular expression under limits. Never imported.

It reads one JSON object {"pattern", "texts", "most", "seconds", "bytes"} from standard input and writes {"hits": [[text, line], …],
"more": bool} or {"error": …}. Its limit of processor time holds even after the process that started it has ended.
"""

import contextlib
import json
import re
import resource
import sys
import warnings


def main() -> None:
    """Search once, as the object on standard input asks."""
    question = json.load(sys.stdin)
    _limit(resource.RLIMIT_CPU, question["seconds"])
    _limit(resource.RLIMIT_AS, question["bytes"])
    _limit(resource.RLIMIT_CORE, 0)
    json.dump(_search(question["pattern"], question["texts"], question["most"]), sys.stdout)


def _limit(which: int, wanted: int) -> None:
    hard = resource.getrlimit(which)[1]
    # A process cannot raise its hard limit.
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    # macOS has no limit of the address space; the time limit ends a bad pattern there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(which, (most, most))


def _search(pattern: str, texts: list[str], most: int) -> dict[str, object]:
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
