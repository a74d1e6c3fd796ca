"""Several processes, one run: each claims in batches and beats for all that it holds; one of them, by a lease, has the chair. Entered by `scheduling.serve`."""
