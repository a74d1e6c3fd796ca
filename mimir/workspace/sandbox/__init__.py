"""The parts that `workspace.sandbox.Sandbox` is made of; entered through it alone."""
