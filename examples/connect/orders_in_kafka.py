"""Bills orders: one topic of Kafka in, one out, and one for the orders that can't be billed.

python -m examples.connect.orders_in_kafka localhost:9092
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import KafkaException

from reactive_runtime import Flow
from reactive_runtime.connect.kafka import Record, Writer, read

PRICES = {b"tea": 3, b"milk": 1}


class Bill(NamedTuple):
    """The bill of an order.

    Args:
        customer: The key of the order.
        sum: The price of all.
    """

    customer: bytes | None
    sum: int


def bill(order: Record) -> Bill:
    """The bill of an order, as "tea 2"."""
    name, count = (order.value or b"").split()
    return Bill(order.key, PRICES[name] * int(count))


def billing(
    servers: str, pool: ThreadPoolExecutor, workers: ThreadPoolExecutor, bills: Writer, unbilled: Writer
) -> Flow[int]:
    """Bill the orders that come, those of a customer in order; the flow gives how many were billed."""
    orders = read(servers, "orders", "billing", executor=pool)
    billed = orders.map_by_key(lambda order: order, lambda order: order.key, workers).on_error_continue(
        lambda order: order.map(bill),
        to=lambda letter: unbilled.append([letter.element]),
    )
    written = billed.buffer_timeout(256, 0.05).map(bills.append)
    return written.acknowledge().retry_backoff(20, when=KafkaException)


@contextmanager
def writers(servers: str) -> Iterator[tuple[Writer, Writer]]:
    """The writer of bills, and that of orders that can't be billed."""
    with (
        Writer(servers, "bills", key=lambda bill: bill.customer, value=lambda bill: str(bill.sum)) as bills,
        Writer(servers, "unbilled", key=lambda order: order.key, value=lambda order: order.value) as unbilled,
    ):
        yield bills, unbilled


def main(servers: str) -> None:
    """Bill orders until Ctrl-C."""
    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(8) as workers, writers(servers) as (bills, unbilled):
        billing(servers, pool, workers, bills, unbilled).for_each(lambda count: print(f"{count} billed"))


if __name__ == "__main__":
    main(*sys.argv[1:])
