"""How a call is read and how its result is worded: arguments, their schema, pages of long text. Pure; for the tools' own room."""
