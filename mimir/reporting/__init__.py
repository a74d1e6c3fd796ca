"""Events and rows to a report; computed, never told. Entered by the orchestrator."""
