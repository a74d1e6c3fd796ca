"""What the commands do, when their arguments are read: plans checked, runs driven, results told. Entered by `cli.commands`."""
