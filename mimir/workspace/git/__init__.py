"""The parts that `workspace.git.History` is made of; entered through it alone."""
