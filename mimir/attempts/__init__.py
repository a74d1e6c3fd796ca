"""One try at one task: the machine and its nodes. Entered by scheduling."""
