"""Three things that a back-end does every day, with demand; each file runs by itself."""
