"""What each role sees of a task, as text: values in, the same bytes out. Pure. Entered through `agents.context`."""
