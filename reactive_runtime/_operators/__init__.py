"""The operators, by theme. Each is a method of the theme's class, with its step below; `Flow` inherits the classes."""
