"""Neo4j store: one server, processes on any number of machines. `bootstrap` alone imports it."""
