"""A publisher for anything that can be iterated, built wrong and mended, step by step.

After `Mastering Reactive Streams (Part 1): Publisher` by Oleh Dokuka. Each step is one short class; `__main__.py` runs
the kit on all of them and prints what each still breaks:

    python -m examples.stream_publisher
"""
