"""One declaration of each source, operator and sink of `Flow`, for tests, explorer, type checkers and site.

A module has the operators of a theme, each with its parts. `kinds` says what a part is for, `table` collects them.
A new operator is one entry in one of these modules.
"""
