"""The failing schedule as text."""
def text_of(failure):
    return "\n".join(f"{s.thread} {s.name:10} {s.what:30} {s.source:50} {s.value}" for s in failure.steps)
