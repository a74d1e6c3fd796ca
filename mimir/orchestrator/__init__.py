"""The corridor: request → plan → run → gate → report. Verbs of mimir, one page each; the rooms do the work. Entered by app."""
