"""A class that solves each puzzle; there are others. Take this folder out of the clone that students get."""
