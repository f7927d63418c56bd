"""B. Order: what has to come first does not always."""
