"""Store: nodes and edges that survive a kill at any point, in SQLite or Neo4j.

Every package above may use `operations`, `records`, `transcripts` and `transfer`. Rows and stored names stay inside this package;
`bootstrap` alone names an adapter.
"""
