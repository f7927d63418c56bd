"""Classes that look like solutions of the puzzles, by puzzle, each with a part of what the marking says of it."""
