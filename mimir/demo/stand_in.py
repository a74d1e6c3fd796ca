#!/usr/bin/env python3
"""Program of the demo of agents: a scripted coding agent that errs at first.

It runs alone in the sandbox and speaks the JSON of Claude Code.
"""

import json
import sys
from pathlib import Path

TASK = "Attempt 2"


def main() -> None:
    """Write the file of the task; the first attempt has the wrong number."""
    task = sys.stdin.read()
    count = 5 if TASK in task else 4
    Path("FIELDS.md").write_text(f"A line has {count} fields.\n", encoding="utf-8")
    answer = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "FIELDS.md is written, and everything is right.",
        "usage": {"input_tokens": 900, "output_tokens": 60},
    }
    # The answer is the same whether the work is right or not.
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
