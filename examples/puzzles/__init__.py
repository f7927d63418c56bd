"""The puzzles of the Little Book of Semaphores, and the hazards of The Deadlock Empire."""
