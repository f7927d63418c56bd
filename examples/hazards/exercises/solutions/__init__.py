"""The solutions of the exercises, one file each. There are others: what the explorer accepts is one."""
