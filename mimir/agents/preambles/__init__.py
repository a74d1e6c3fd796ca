"""Preambles: shipped templates, the project's own, and those made for a role. Entered by agentinator, planning and reporting."""
