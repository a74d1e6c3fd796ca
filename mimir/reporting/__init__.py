"""Summary, report, status and audit of a run, computed from the store alone.

The same stored run gives the same bytes. Texts of models are marked and decide nothing. The orchestrator imports it; it changes nothing.
"""
