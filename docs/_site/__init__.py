"""The parts of the site: the public names, the pages of the reference, a picture of each operator, the lessons."""
