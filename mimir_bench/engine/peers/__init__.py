"""Others that do the same work: two bare loops as floors, and LangGraph's functional API with its ready-made agent. None of them is durable."""
