"""Values and rules that every room may use: no I/O, no clock, no SDK. Entered by all, imports none."""
