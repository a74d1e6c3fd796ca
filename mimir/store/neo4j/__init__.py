"""The parts of the Neo4j store: its queries, its rows, its server and address. Entered by `store/neo4j.py` alone."""
