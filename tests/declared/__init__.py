"""What the tests, the explorer, the type checkers and the site know of each source, operator and sink of `Flow`.

A module has the operators of a theme, each with its parts. `kinds` says what a part is for, `table` collects them.
A new operator is one entry in one of these modules.
"""
