#!/usr/bin/env python3
"""Prints the addresses of an EndpointSet whenever they change: watch.py NAMESPACE/NAME [PORT-NAME] [HOST:PORT ...]."""

import logging
import sys

from endpoint_resolver import Resolver


def main() -> None:
    logging.basicConfig()
    name, *rest = sys.argv[1:] or ["default/web"]
    port, servers = (rest[0] if rest else None), rest[1:] or ["127.0.0.1:9490"]
    with Resolver(servers=servers, directory="/tmp/endpoint-resolver") as resolver:
        handle = resolver.endpoints(name)
        version = 0
        while True:
            answer = handle.wait_for_change(version, timeout=30) or handle.current()
            if answer is None:
                print(f"{name}: no answer yet: {handle.problem}")
                continue
            version = answer.version
            addresses = " ".join(answer.addresses(port)) or "no endpoints"
            print(f"{addresses} ({answer.age:.0f} s old, problem: {answer.problem})", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
