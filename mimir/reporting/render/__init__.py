"""How a report is worded: text that nobody vouches for made harmless, and the sections of the markdown. Pure."""
