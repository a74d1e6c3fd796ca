"""Events and rows to a report, a status and an audit; computed, never told.

Promises: the same journal gives the same bytes; what models wrote stands in marked places and decides nothing; what was changed in
the store after it was sealed is named by its record. Doors: `gather` and `summary` compute, `render` writes, `prose` asks the
reporters, `status` answers where a run stands, `verifying` recomputes every seal. Entered by the orchestrator; it changes nothing.
"""
