"""The Technology Compatibility Kit: is a publisher, a subscriber, a processor conformant?

    from reactive_runtime.tck import PublisherVerification

    class TestMyPublisher(PublisherVerification):
        def create_publisher(self, elements): ...

pytest finds the checks by themselves, under the names of the original kit for the JVM. The kit imports the interfaces,
the rules and the standard library, so that it judges any implementation.
"""

from reactive_runtime.tck.blackbox import SubscriberBlackboxVerification
from reactive_runtime.tck.environment import ConformanceError, NotVerified
from reactive_runtime.tck.helper import HelperPublisher
from reactive_runtime.tck.manual_publishers import SubscriberPuppet, WhiteboxSubscriberProbe
from reactive_runtime.tck.processor import IdentityProcessorVerification
from reactive_runtime.tck.publisher_verification import PublisherVerification
from reactive_runtime.tck.settings import Settings
from reactive_runtime.tck.verification import Check, Outcome, Verification
from reactive_runtime.tck.whitebox import SubscriberWhiteboxVerification

__all__ = [
    "Check",
    "ConformanceError",
    "HelperPublisher",
    "IdentityProcessorVerification",
    "NotVerified",
    "Outcome",
    "PublisherVerification",
    "Settings",
    "SubscriberBlackboxVerification",
    "SubscriberPuppet",
    "SubscriberWhiteboxVerification",
    "Verification",
    "WhiteboxSubscriberProbe",
]
