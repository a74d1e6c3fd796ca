"""Processes that serve one run: agent pool, heartbeat, and election of the coordinator.

Each process claims tasks in batches and renews all its leases at once. `mimir.orchestrator` imports it.
"""
