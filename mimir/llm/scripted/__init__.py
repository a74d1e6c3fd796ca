"""Plays: what a scripted model says, written down in YAML. Entered by `llm.scripted` and by test servers."""
