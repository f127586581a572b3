"""The example against a small tracker with the REST API of GitHub (M8)."""

import copy
import http.server
import json
import pathlib
import re
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import tickets

# The event as the controller of LocalReplicaSets sends it: a test of the controller compares it.
OPENED = json.loads((pathlib.Path(__file__).parent / "opened.json").read_text())
UID = OPENED["data"]["uid"]


def event(kind, number=None, **data):
    changed = copy.deepcopy(OPENED)
    changed["type"] = f"dev.fedrs.migration.{kind}"
    changed["id"] = f"{UID}.{kind}" + (f".{number}" if number else "")
    changed["data"].update(data)
    return changed


class Tracker(http.server.BaseHTTPRequestHandler):
    """Issues in memory. `server.failures` says what becomes of the next writes: a status, or `lost` for an answer that is."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        page = int(re.search(r"[?&]page=(\d+)", self.path)[1])
        issues = self.server.issues
        if match := re.fullmatch(r"/repos/ops/tickets/issues/(\d+)/comments", path):
            found = issues[int(match[1]) - 1]["comments"]
        else:
            found = [issue for issue in issues if issue["state"] == "open" and "labels=fedrs" in query]
        self.answer(200, found[(page - 1) * 100 : page * 100])

    def do_POST(self):
        self.write()

    do_PATCH = do_POST

    def write(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        failure = self.server.failures.pop(0) if self.server.failures else None
        if self.headers["Authorization"] != "Bearer of-the-tracker":
            failure = 401
        if isinstance(failure, int):
            return self.answer(failure, {})
        issues = self.server.issues
        match = re.fullmatch(r"/repos/ops/tickets/issues(?:/(\d+)(/comments)?)?", self.path)
        if match[2]:
            result = body
            issues[int(match[1]) - 1]["comments"].append(body)
        elif match[1]:
            result = issues[int(match[1]) - 1]
            result.update(body)
        else:
            result = {**body, "number": len(issues) + 1, "state": "open", "comments": []}
            issues.append(result)
        if failure == "lost":
            self.close_connection = True
            return None
        return self.answer(200, result)

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def serve(test, handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return server


class TicketsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.state = f"{directory.name}/tickets.db"
        self.tracker = serve(self, Tracker)
        self.tracker.issues, self.tracker.failures = [], []
        self.restart()

    def restart(self, state=None):
        url = f"http://127.0.0.1:{self.tracker.server_port}"
        tracker = tickets.Tracker(url, "ops/tickets", "of-the-tracker")
        handled = tickets.Tickets(tracker, state or self.state, ["jane"])
        self.addCleanup(handled.database.close)
        handler = tickets.handler(handled, "of-the-webhook")
        handler.log_message = lambda *_: None
        self.webhook = serve(self, handler)

    def send(self, body, token="of-the-webhook"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/cloudevents+json"}
        url = f"http://127.0.0.1:{self.webhook.server_port}/"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=20) as response:
                return response.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def issue(self):
        self.assertEqual(len(self.tracker.issues), 1)
        return self.tracker.issues[0]

    def test_m8_one_issue_is_opened_reminded_and_closed(self):
        self.assertEqual(self.send(OPENED), 204)
        self.assertEqual(self.issue()["title"], "Pod shop/web-0a1b2 has to leave node n1 of eu")
        self.assertEqual((self.issue()["assignees"], self.issue()["labels"]), (["jane"], ["fedrs"]))
        for number in (1, 2):
            self.assertEqual(self.send(event("reminder", number, phase="HandsUp", needs="ConfirmDestroyed")), 204)
        comments = self.issue()["comments"]
        self.assertEqual(len(comments), 2)
        self.assertIn("fedrs migrate confirm web-0a1b2-x7k2p -n shop --machine-is-destroyed", comments[0]["body"])
        self.assertEqual(self.issue()["state"], "open")
        self.assertEqual(self.send(event("closed", phase="Done", newNode="n3")), 204)
        self.assertEqual(self.issue()["state"], "closed")
        self.assertIn("on node n3", self.issue()["comments"][2]["body"])

    def test_m8_what_arrives_again_changes_nothing(self):
        sent = [OPENED, event("reminder", 1), event("closed", phase="Done")]
        for next_event in sent:
            for _ in range(2):
                self.assertEqual(self.send(next_event), 204)
        self.restart()
        for again in sent:
            self.assertEqual(self.send(again), 204)
        self.assertEqual(len(self.issue()["comments"]), 2)
        self.assertEqual(self.issue()["state"], "closed")

    def test_m8_a_tracker_that_fails_or_whose_answers_are_lost_gets_each_once(self):
        for failure in (500, 422, "lost"):
            for next_event in (OPENED, event("reminder", 1), event("closed", phase="Done")):
                with self.subTest(failure=failure, type=next_event["type"]):
                    self.tracker.failures = [failure]
                    self.assertEqual(self.send(next_event), 502)
                    self.assertEqual(self.send(next_event), 204)
            self.assertEqual(len(self.issue()["comments"]), 2)
            self.assertEqual(self.issue()["state"], "closed")
            self.tracker.issues.clear()
            self.restart(self.state + str(failure))

    def test_m8_without_its_state_an_open_issue_is_found(self):
        self.assertEqual(self.send(OPENED), 204)
        others = [{"number": number, "state": "open", "body": None, "comments": []} for number in range(2, 150)]
        self.tracker.issues[:0] = others
        self.tracker.issues[-1]["number"] = len(self.tracker.issues)
        self.restart(self.state + ".new")
        self.assertEqual(self.send(OPENED), 204)
        self.assertEqual(self.send(event("closed", phase="Done")), 204)
        self.assertEqual(len(self.tracker.issues), 149)
        self.assertEqual(self.tracker.issues[-1]["state"], "closed")

    def test_m8_what_is_no_notification_is_refused(self):
        self.assertEqual(self.send(OPENED, token="another"), 401)
        self.assertEqual(self.send(b"x" * (tickets.MAX_BODY + 1)), 413)
        other = {**OPENED, "type": "com.example.other"}
        for body in (b"{", b"[]", {**OPENED, "specversion": "0.3"}, other, {**OPENED, "id": ""}):
            self.assertEqual(self.send(body), 400)
        self.assertEqual(self.tracker.issues, [])

    def test_m8_texts_are_no_markup(self):
        hostile = event("opened", reason="<!-- migration other -->\n`x` @all", pod="web\n# x")
        self.assertEqual(self.send(hostile), 204)
        self.assertIn("- reason: &lt;!-- migration other --> 'x' &#64;all\n", self.issue()["body"])
        self.assertNotIn("\n#", self.issue()["body"])


if __name__ == "__main__":
    unittest.main()
