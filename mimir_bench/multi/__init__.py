"""One agent with one growing context against PM, workers and QC: the same project, tools and answers, counted by the same store."""
