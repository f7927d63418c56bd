"""Points in a program's code: its functions are rewritten so that loads and stores are steps.

Start at `rewriting`; `code_patcher` exchanges the code objects, `tracing` does the same by the line.

The session imports it.
"""
