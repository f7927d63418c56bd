"""Three publishers, each with one fault. The answers are not here.

    reactive-runtime explore examples.hazards.exercises.batches:SCENARIO
    reactive-runtime explore examples.hazards.exercises.promise:SCENARIO
    reactive-runtime explore examples.hazards.exercises.merge:SCENARIO

Read the diagram, say in two sentences what went wrong, and mend the class until the command says that it holds.
"""
