"""A whole back-end: jobs in over HTTP, enriched by a slow service, out to a table and to live clients.

    POST /jobs ──▶ queue in PostgreSQL ──▶ workers ──▶ table in PostgreSQL
                                            │    └───▶ stream of Redis ──▶ web ──▶ live clients (SSE)
                                            └──▶ the slow service `places`: limits, a breaker, retries

`python -m examples.service` starts all of it on this machine, and prints the address of its page. Start reading at
`worker`, which has the flow; then `web`, which accepts jobs and streams results; `load` kills parts of it at random.
"""
