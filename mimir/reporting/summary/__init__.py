"""What a summary is put together from: tasks with their criteria, what proves them, what was decided on the way. Pure."""
