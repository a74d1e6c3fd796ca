"""The sandbox for commands; other packages use `sandbox.Sandbox` and its values."""
