"""What is explored and what has to hold: scenarios, models, publishers, histories.

Start at `scenario`.

`explore` and its users import it, by the names that `reactive_runtime.explore` exports.
"""
