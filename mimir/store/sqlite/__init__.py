"""The parts of the embedded store: its file, its queries, its rows. Entered by `store/sqlite.py` alone."""
