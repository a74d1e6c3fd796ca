"""Neo4j store: one server, many machines. `bootstrap` alone imports it."""
