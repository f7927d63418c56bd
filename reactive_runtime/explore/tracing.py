"""Placeholder"""
class Tracer:
    def __init__(self, *a): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
