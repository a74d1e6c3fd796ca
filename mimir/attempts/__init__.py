"""One try at one task: the machine and its nodes. Promises that a resumed attempt goes on where it was. Entered by scheduling."""
