"""How long a run takes beside how long it must take: task graphs of known shapes, durations from printed seeds, the real engine."""
