"""Tables and lines that the commands print. Imported by `cli.commands`."""
