"""F. The same in Reactive Streams."""
