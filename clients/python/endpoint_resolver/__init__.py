"""Endpoints of fedrs' EndpointSets: cached in the process, refreshed in the background, kept on disk.

    with Resolver(servers=["127.0.0.1:9490"], directory="/var/cache/my-service") as resolver:
        web = resolver.endpoints("default/web")
        web.wait(timeout=5)
        web.addresses("http")  # ("10.1.0.7:8080", "[fd00::7]:8080")

A stale success is preferred to a fresh error: whatever fails, the last good answer stays, with its age.
"""

from .answer import Answer, Endpoint, NoAnswer, Port, Problem, Reason, StaleMember
from .handle import SetHandle
from .resolver import Resolver
from .token_file import TokenFile

__all__ = [
    "Answer",
    "Endpoint",
    "NoAnswer",
    "Port",
    "Problem",
    "Reason",
    "Resolver",
    "SetHandle",
    "StaleMember",
    "TokenFile",
]
