"""A made-up year of nights, with regressions planted in it; the year of a verdict as a notebook, and as a picture."""
