"""What the engine costs: processor time, bytes, memory and waiting, beside floors and a peer that do the same work in the same run."""
