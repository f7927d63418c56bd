"""A failing schedule for people and for CI servers: text, pictures, JUnit's XML, SARIF.

Start at `step_log`, which writes a run down, then `schedule_diagram`.

Results and the command import it.
"""
