"""Ten workers on a hundred tasks: how claims of several processes get on with each other, in each store."""
