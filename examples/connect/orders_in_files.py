"""Prices the orders of a CSV file, wherever it is, into a Parquet file; orders that can't be priced into another.

python -m examples.connect.orders_in_files orders.csv priced.parquet unpriced.jsonl
"""

from __future__ import annotations

import sys
from typing import Any

from reactive_runtime import DeadLetter, Flow
from reactive_runtime.connect.files import csv, write_json_lines, write_parquet

PRICES = {"tea": 3, "milk": 1}


def priced(order: dict[str, str]) -> dict[str, Any]:
    """The order with its price."""
    return {"name": order["name"], "price": PRICES[order["name"]] * int(order["count"])}


def price_all(source: str, target: str, others: str) -> int:
    """Price the orders; how many have a price."""
    dead: list[DeadLetter] = []
    orders = csv(source).on_error_continue(lambda order: order.map(priced), dead.append)
    count = write_parquet(orders, target).block() or 0
    letters = Flow.from_iterable(dead).map(lambda dead: {"order": dead.element, "error": type(dead.error).__name__})
    write_json_lines(letters, others).run()
    return count


if __name__ == "__main__":
    print(price_all(*sys.argv[1:]), "orders have a price")
