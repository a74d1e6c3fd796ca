"""Pages for questions of agents. Commands may import it."""
