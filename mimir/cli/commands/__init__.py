"""The commands, one function each: arguments in, exit code out. Entered by `cli.main`."""
