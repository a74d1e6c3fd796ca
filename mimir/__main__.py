"""`python -m mimir`: the same as the command `mimir`."""

from mimir.cli.main import main

main()
