"""Orders in PostgreSQL: prices from a cursor into a table by COPY, and mails from a queue in a table.

    python -m examples.connect.orders_in_postgres "host=localhost dbname=shop user=ann"

It makes the tables `orders`, `priced` and `mails`, and the queue's trigger.
"""

from __future__ import annotations

import sys
from concurrent.futures import Executor, ThreadPoolExecutor

import psycopg

from reactive_runtime import DeadLetter, Flow
from reactive_runtime.connect.postgres import copy_in, rows
from reactive_runtime.connect.postgres_queue import Job, enqueue, jobs, queue_sql

ORDERS = 1_000
TABLES = """
CREATE TABLE orders AS SELECT n AS id, n % 7 AS pieces FROM generate_series(1, {orders}) n;
CREATE TABLE priced (id bigint, price bigint);
"""


def with_price(order: tuple[int, int]) -> tuple[int, int]:
    """The price of an order, in cents."""
    number, pieces = order
    return number, pieces * 250


def price_all(conninfo: str) -> int:
    """Price all orders, in one transaction; the number of them."""
    orders = rows(conninfo, "SELECT id, pieces FROM orders ORDER BY id", fetch=500)
    return copy_in(orders.map(with_price), conninfo, "priced", ["id", "price"]).block() or 0


def send(job: Job) -> str:
    """Send a mail. One address is wrong."""
    address: str = job.body["to"]
    if "@" not in address:
        raise ValueError(f"{address!r} is no address")
    return address


def send_all(conninfo: str, pool: Executor, mails: int) -> tuple[list[str], list[DeadLetter]]:
    """Send so many mails, 4 at a time; the addresses, and the mails that can't be sent."""
    dead: list[DeadLetter] = []
    sent = jobs(conninfo, "mails", pool).on_error_continue(lambda job: job.map(send), dead.append, concurrency=4)
    return list(sent.acknowledge().take(mails)), dead


def main(conninfo: str) -> tuple[int, list[str], list[DeadLetter]]:
    """Make the tables, price the orders, and send the mails."""
    with psycopg.connect(conninfo) as connection:
        connection.execute(TABLES.format(orders=ORDERS).encode())
        connection.execute(queue_sql("mails").encode())
    priced = price_all(conninfo)
    mails = Flow.just({"to": "ann@shop.example"}, {"to": "bob"}, {"to": "cy@shop.example"})
    enqueue(mails, conninfo, "mails").run()
    with ThreadPoolExecutor(8) as pool:
        sent, dead = send_all(conninfo, pool, 2)
    return priced, sent, dead


if __name__ == "__main__":
    priced, sent, dead = main(sys.argv[1])
    print(f"{priced} orders have a price, {len(sent)} mails were sent, and these were not:")
    for letter in dead:
        print(f"- {letter.element.body}: {letter.error}")
