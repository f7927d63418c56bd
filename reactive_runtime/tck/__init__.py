"""The Technology Compatibility Kit: is a publisher, a subscriber, a processor conformant?

    from reactive_runtime.tck import PublisherVerification

    class TestMyPublisher(PublisherVerification):
        def create_publisher(self, elements): ...

pytest finds the checks by themselves, under the names of the original kit for the JVM. The kit imports the interfaces,
the rules and the standard library, so that it judges anybody's implementation.
"""

from reactive_runtime.tck.publisher import PublisherVerification

__all__ = ["PublisherVerification"]
