"""A run as it goes: events folded into a board, the board drawn on a terminal or told line by line. Entered by the commands and the demo."""
