"""The command `mimir`, also as `python -m mimir`."""

import gc


def main() -> None:
    """Run the command line of this process, then end the process at once."""
    # Imports make half a million objects and no garbage: collections among them were 5 % of the
    # processor time of the start of `mimir mcp`. A run has thresholds of its own.
    gc.set_threshold(500_000, 20, 20)
    from mimir.cli.main import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
