"""What the site is made with: what is public, the pages of the reference, a picture of each operator, the lessons."""
