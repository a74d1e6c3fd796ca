"""Request to plan: read, render, check; Ecko and the PM. Entered by the orchestrator."""
