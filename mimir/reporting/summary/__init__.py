"""Summary of a stored run: task lines, proof, decisions, metrics.

`run_loader` reads the store in batches of tasks; every other module but `metric_inputs` is pure. `render` and the orchestrator import it.
"""
