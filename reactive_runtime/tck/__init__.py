"""The Technology Compatibility Kit: is a publisher, a subscriber, a processor conformant?

    from reactive_runtime.tck import PublisherVerification

    class TestMyPublisher(PublisherVerification):
        def create_publisher(self, elements): ...

pytest collects the checks, under the names of the original kit for the JVM. The kit imports the interfaces,
the rules and the standard library, so that it judges any implementation.
"""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.tck._processor import IdentityProcessorVerification
from reactive_runtime.tck._publisher.publisher_verification import PublisherVerification
from reactive_runtime.tck._running.failures import ConformanceError, NotVerified
from reactive_runtime.tck._running.settings import Settings
from reactive_runtime.tck._subscriber.blackbox import SubscriberBlackboxVerification
from reactive_runtime.tck._subscriber.helper import HelperPublisher
from reactive_runtime.tck._subscriber.manual_publishers import SubscriberPuppet, WhiteboxSubscriberProbe
from reactive_runtime.tck._subscriber.whitebox import SubscriberWhiteboxVerification
from reactive_runtime.tck._verification import Check, Outcome, Verification

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

_all_at_home(globals())
