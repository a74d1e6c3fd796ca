"""SQLite store: one file, several processes of one machine. `bootstrap` alone imports it."""
