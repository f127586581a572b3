#!/usr/bin/env python3
"""Turns notifications of migrations into issues of a tracker with the REST API of GitHub: an example, without dependencies.

    TRACKER_TOKEN=... WEBHOOK_TOKEN=... ./tickets.py --tracker https://api.github.com --repository ops/tickets --state tickets.db

One issue for each migration: opened, commented while a person has to confirm something, closed. A notification that arrives again,
as fedrs sends it until it is acknowledged, changes nothing: its id is kept in the file --state, and in a comment of HTML in the issue,
which is looked for if this process ended between the two.
"""

import argparse
import hmac
import http.client
import http.server
import json
import os
import sqlite3
import threading
import urllib.request

MAX_BODY = 64 * 1024
TIMEOUT_SECONDS = 8  # fedrs waits for 10 s.
LABEL = "fedrs"
TYPES = ("opened", "reminder", "closed")
PREFIX = "dev.fedrs.migration."


class Refused(Exception):
    """What was sent is no notification of a migration."""


class Tracker:
    """The issues of a repository."""

    def __init__(self, url, repository, token):
        self.url = f"{url.rstrip('/')}/repos/{repository}/issues"
        self.token = token

    def call(self, method, path="", body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/vnd.github+json", "Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            return json.load(response)

    def pages(self, path):
        page = 1
        while found := self.call("GET", f"{path}{'&' if '?' in path else '?'}per_page=100&page={page}"):
            yield from found
            page += 1

    def find(self, marker):
        """The open issue with this marker."""
        issues = self.pages(f"?state=open&labels={LABEL}")
        return next((issue["number"] for issue in issues if marker in (issue.get("body") or "")), None)

    def create(self, title, body, assignees):
        issue = {"title": title, "body": body, "labels": [LABEL], "assignees": assignees}
        return self.call("POST", body=issue)["number"]

    def comment(self, number, marker, text):
        comments = self.pages(f"/{number}/comments")
        if not any(marker in (comment.get("body") or "") for comment in comments):
            self.call("POST", f"/{number}/comments", {"body": f"{text}\n\n{marker}"})

    def close(self, number):
        self.call("PATCH", f"/{number}", {"state": "closed"})


class Tickets:
    """Which issue each migration has, and which notifications are handled."""

    def __init__(self, tracker, state, assignees=()):
        self.tracker = tracker
        self.assignees = list(assignees)
        self.lock = threading.Lock()
        self.database = sqlite3.connect(state, check_same_thread=False)
        with self.database as database:
            database.execute("CREATE TABLE IF NOT EXISTS handled (id TEXT PRIMARY KEY)")
            database.execute("CREATE TABLE IF NOT EXISTS issues (uid TEXT PRIMARY KEY, number INTEGER NOT NULL)")

    def handle(self, kind, event_id, data):
        """Handles a notification once. An exception says that it has to be sent again."""
        # One at a time: a notification that is sent again may arrive while the first one is handled.
        with self.lock:
            if self.database.execute("SELECT 1 FROM handled WHERE id = ?", (event_id,)).fetchone():
                return
            number = self.issue(data, may_create=kind != "closed")
            if number is not None and kind != "opened":
                self.tracker.comment(number, f"<!-- {event_id} -->", comment(kind, data))
            if number is not None and kind == "closed":
                self.tracker.close(number)
            with self.database as database:
                database.execute("INSERT INTO handled VALUES (?)", (event_id,))

    def issue(self, data, may_create):
        uid = data["uid"]
        known = self.database.execute("SELECT number FROM issues WHERE uid = ?", (uid,)).fetchone()
        if known:
            return known[0]
        marker = f"<!-- migration {uid} -->"
        number = self.tracker.find(marker)
        if number is None:
            if not may_create:
                return None
            number = self.tracker.create(title(data), f"{body(data)}\n\n{marker}", self.assignees)
        with self.database as database:
            database.execute("INSERT INTO issues VALUES (?, ?)", (uid, number))
        return number


def parse(event):
    """The kind, the id and the data of a notification."""
    data = event.get("data") if isinstance(event, dict) else None
    if not isinstance(data, dict) or event.get("specversion") != "1.0":
        raise Refused("no CloudEvent 1.0")
    kind = str(event.get("type", "")).removeprefix(PREFIX)
    if kind not in TYPES:
        raise Refused("another type")
    event_id, uid = event.get("id"), data.get("uid")
    if not isinstance(event_id, str) or not event_id or not isinstance(uid, str) or not uid:
        raise Refused("no id")
    return kind, event_id, data


def of(data, field):
    """A field in one line, without what would be markup or notify others."""
    text = " ".join(str(data.get(field) or "-").split())
    return text.replace("<", "&lt;").replace("`", "'").replace("@", "&#64;")


def title(data):
    cluster = f" of {of(data, 'cluster')}" if data.get("cluster") else ""
    return f"Pod {of(data, 'namespace')}/{of(data, 'pod')} has to leave node {of(data, 'node')}{cluster}"


def body(data):
    fields = ("cluster", "namespace", "replicaSet", "pod", "node", "cause", "reason", "phase", "message", "deadline")
    return "\n".join(f"- {field}: {of(data, field)}" for field in fields)


def comment(kind, data):
    if kind == "closed":
        return f"{of(data, 'phase')}: {of(data, 'message')} (pod {of(data, 'newPod')} on node {of(data, 'newNode')})"
    command = f"fedrs migrate confirm {of(data, 'name')} -n {of(data, 'namespace')} --machine-is-destroyed"
    return f"A person has to look after node {of(data, 'node')}: {of(data, 'message')}\n\nIf it is destroyed: `{command}`"


def handler(tickets, token):
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = TIMEOUT_SECONDS

        def do_POST(self):
            expected = f"Bearer {token}"
            if token and not hmac.compare_digest(self.headers.get("Authorization", ""), expected):
                return self.answer(401)
            length = self.headers.get("Content-Length", "")
            if not length.isdigit():
                return self.answer(411)
            if int(length) > MAX_BODY:
                return self.answer(413)
            try:
                notification = parse(json.loads(self.rfile.read(int(length))))
            except (Refused, ValueError):
                return self.answer(400)
            try:
                tickets.handle(*notification)
            except (OSError, http.client.HTTPException, ValueError) as error:  # The tracker is away, or does not take it.
                self.log_error("tracker: %s", error)
                return self.answer(502)
            return self.answer(204)

        def answer(self, status):
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    return Handler


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", default="127.0.0.1:8080", metavar="ADDRESS:PORT")
    parser.add_argument("--tracker", default="https://api.github.com", metavar="URL")
    parser.add_argument("--repository", required=True, metavar="OWNER/NAME")
    parser.add_argument("--assignee", action="append", default=[], metavar="USER", help="who is on duty")
    parser.add_argument("--state", required=True, metavar="FILE", help="which notifications are handled")
    arguments = parser.parse_args()
    tracker = Tracker(arguments.tracker, arguments.repository, os.environ.get("TRACKER_TOKEN"))
    tickets = Tickets(tracker, arguments.state, arguments.assignee)
    address, port = arguments.listen.rsplit(":", 1)
    server = http.server.ThreadingHTTPServer((address, int(port)), handler(tickets, os.environ.get("WEBHOOK_TOKEN")))
    server.serve_forever()


if __name__ == "__main__":
    main()
