"""D. Progress: deadlock, livelock, starvation."""
