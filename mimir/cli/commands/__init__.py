"""One module a command family: read the arguments, call the API, print. Imported by `cli.main`."""
