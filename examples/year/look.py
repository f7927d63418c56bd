"""A year of nights as DataFrames, in cells; `look.ipynb` is made of them (`python -m examples.year.notebook`)."""

# %% [markdown]
# # A year of nights
#
# The questions of `reactive-runtime report --year`, asked of the table `nights` as a pandas DataFrame: a row for each
# scenario of each run. The year here is made up, with three regressions planted in it. For yours, put the folder of
# your verdict in the place of `tables`.

# %%
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "../..")  # the clone

import numpy as np
import pandas as pd

from examples.year.made_year import Planted, made_year, write_year

planted = [
    Planted("merge", 20, (2,), "1.3"),
    Planted("replay", 40, tuple(range(12)), "2.7", nights=9),
    Planted("group_by", 60, (1, 5), "conservation", every=2),
]
tables = write_year(Path(tempfile.mkdtemp()), made_year(planted, machines=12, nights=90))

# %%
nights = pd.read_parquet(tables / "nights")
nights["night"] = nights["started"].str[:10]
nights["fails"] = nights["state"].isin(["broken", "stuck"])
nights.groupby("state").size().to_frame("rows")

# %% [markdown]
# **Which scenario began to fail, on which night, on which machine, with which commit?** A night fails where a run of it
# breaks a rule or is stuck; it begins on a night after seven on which the scenario did not fail, or on the first.

# %%
looked_at = nights.query("fails or state == 'clean'").sort_values("started")
by_place = looked_at.groupby(["scenario", "machine", "python"])
recently = by_place["fails"].transform(lambda fails: fails.shift(fill_value=False).rolling(7, min_periods=1).max())
begins = looked_at[looked_at["fails"] & (recently == 0)]
began = begins.groupby(["night", "commit", "scenario", "rules"])["machine"].agg(
    **{"machines": "size", "one of them": "first"}
)
began.sort_index(ascending=False)

# %% [markdown]
# **How long is it from a cancel to silence?** Percentiles of each night, over all machines and scenarios, in µs.

# %%
silence = nights.groupby("night")["silence_p99"].quantile(np.array([0.5, 0.9, 0.99])).unstack() / 1_000
silence.tail().round(1)

# %% [markdown]
# **What is the throughput?** Signals and calls a second of each scenario: p1, p10 and median over the nights.

# %%
nights["throughput"] = nights["load_signals"] / nights["load_seconds"]
nights.groupby("scenario")["throughput"].quantile(np.array([0.01, 0.1, 0.5])).unstack().round()

# %% [markdown]
# The same table in Spark: `spark.read.parquet(str(tables / "nights"))`; in DuckDB:
# `SELECT * FROM read_parquet('…/nights/*/*.parquet')`.
