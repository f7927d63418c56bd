"""The checks of a publisher, by where they come from and what they vary.

Start at `publisher_verification`, which puts them together; `probes` are the subscribers that they drive.

`reactive_runtime.tck` exports its names.
"""
