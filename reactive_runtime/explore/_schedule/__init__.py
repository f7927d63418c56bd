"""One schedule: threads run one at a time, and a scheduler says which goes next.

Start at `scheduler`, then `session`, which runs schedule after schedule. `tokens` writes a schedule as text.

The searches and what shows a failure import it.
"""
