"""The operators, by theme. Each is a function on a flow, with its step right below; `Flow` binds it by one line."""
