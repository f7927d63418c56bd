"""Programs with the systems that a back-end runs; each file is a program."""
