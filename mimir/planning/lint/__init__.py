"""What is wrong with a plan that was read: tasks, graph, paths, commands that cannot fail. Pure; entered by `planning.check`."""
