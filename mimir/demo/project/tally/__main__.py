"""The command `python -m tally LOG`."""

import argparse
import sys
from pathlib import Path

from tally import report, stats
from tally.records import read


def main(arguments: list[str] | None = None) -> int:
    """Print the report of a log."""
    parser = argparse.ArgumentParser(prog="tally")
    parser.add_argument("log", type=Path)
    options = parser.parse_args(arguments)
    log = read(options.log.read_text(encoding="utf-8").splitlines())
    rows = [
        ("requests", str(stats.requests(log))),
        ("errors", str(stats.errors(log))),
        ("mean ms", f"{stats.mean_ms(log):.0f}"),
    ]
    print(report.text(("what", "value"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
