"""Task graph to who works now; every move that is not an attempt's own. Entered by the orchestrator."""
