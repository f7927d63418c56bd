"""All lessons, one after the other, or those that are named."""

import sys

from examples.hazards import COURSE, GROUPS, lesson
from examples.hazards.lesson import paragraph

wanted = sys.argv[1:] or COURSE
for unknown in [name for name in wanted if name not in COURSE]:
    sys.exit(f"no lesson is called {unknown!r}; there are {', '.join(COURSE)}")
for group in GROUPS:
    if set(group.lessons) & set(wanted):
        print(f"{group.letter}. {group.title}\n\n{paragraph(group.about)}")
    for name in group.lessons:
        if name in wanted:
            lesson(name).teach(COURSE.index(name) + 1)
