"""Small things that any module may import: texts of values, names from the shell, homes of public names.

Each module has one function or two.

It imports the exceptions, and no other module of the package.
"""
