"""Programs that use the package, each to be read and run by itself."""
