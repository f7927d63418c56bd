"""All lessons, one after the other."""

from examples.hazards import COURSE, lesson

for number, name in enumerate(COURSE, start=1):
    lesson(name).teach(number)
