"""Prints what goes over the wire between a bare NFP client and the real broker.

    VENV/bin/python wire_probe.py [--base-dir DIR] [--no-auth] [SCENARIO ...]

docs/nfp.md was written from this. Run it again after an upgrade of NorFab.
"""

import argparse
import collections
import json
import tempfile
import time
import uuid as uuids

import zmq

from peer_process import PeerProcess

POST, GET, DELETE, PUT, MMI = b"0x04", b"0x06", b"0x07", b"0x10", b"0x11"
KEEPALIVE = b"0x02"


def shorten(frame, limit):
    text = frame.decode(errors="backslashreplace")
    return text if len(text) <= limit else f"{text[:limit]}...({len(frame)} bytes)"


class Wire:
    def __init__(self, peer, identity="probe"):
        self.peer = peer
        self.service = peer.about["service"].encode()
        self.context = zmq.Context()
        self.sock = self.context.socket(zmq.DEALER)
        self.sock.linger = 0
        self.identity = identity
        self.sock.identity = identity.encode()
        if peer.about["auth"]:
            self.sock.curve_publickey, self.sock.curve_secretkey = zmq.curve_keypair()
            self.sock.curve_serverkey = peer.about["public_key"].encode()
        self.sock.connect(peer.about["endpoint"])
        self.began = time.monotonic()

    def close(self):
        self.context.destroy(linger=0)

    def show(self, mark, frames, limit=260):
        stamp = time.monotonic() - self.began
        print(f"{stamp:7.3f} {mark} " + " | ".join(shorten(f, limit) for f in frames))

    def raw(self, *frames):
        """Sends any frames at all; the first one is the empty delimiter."""
        self.show(">", frames)
        self.sock.send_multipart(frames)

    def send(self, command, target="all", uuid=None, payload=None, service=None, quiet=False):
        uuid = uuid or uuids.uuid4().hex
        target = target if isinstance(target, str) else json.dumps(target)
        service = service.encode() if service else self.service
        body = payload if isinstance(payload, bytes) else json.dumps(payload or {}).encode()
        frames = (b"", b"NFPC01", command, service, target.encode(), uuid.encode(), body)
        self.sock.send_multipart(frames) if quiet else self.raw(*frames)
        return uuid

    def post(self, task, target="all", uuid=None, timeout=60, service=None, quiet=False, **kwargs):
        payload = {"task": task, "kwargs": kwargs, "args": [], "timeout": timeout}
        return self.send(POST, target, uuid, payload, service, quiet)

    def get(self, uuid, target="all", service=None):
        return self.send(GET, target, uuid, {"task": "t", "kwargs": {}, "args": []}, service)

    def listen(self, seconds=0.5, limit=260, quiet=False):
        got = []
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.sock.poll(left * 1000):
                got.append(self.sock.recv_multipart())
                if not quiet:
                    self.show("<", got[-1], limit)
        return got

    def executed(self, uuid):
        runs = [(e["worker"], e["task"]) for e in self.peer.executions(uuid)]
        print(f"        = executions of {uuid[:8]}: {len(runs)} {runs}")


def post_and_get(w):
    for target in ("all", "any", "dummy-worker-1", ["dummy-worker-1", "dummy-worker-2"]):
        print(f"-- target {target!r}")
        job = w.post("count", target)
        w.listen()
    print("-- GET of the last job, when done; then again")
    w.get(job, ["dummy-worker-1", "dummy-worker-2"])
    w.listen(limit=700)
    w.get(job, "any")
    w.listen()


def get_states(w):
    print("-- GET of a running job, then when done")
    job = w.post("sleep", "dummy-worker-1", seconds=1)
    w.listen(0.4)
    w.get(job, "dummy-worker-1")
    w.listen(1.2)
    w.get(job, "dummy-worker-1")
    w.listen()
    print("-- GET of an unknown uuid; of a known one at a worker that never had it")
    w.get(uuids.uuid4().hex, "all")
    w.listen()
    w.get(job, "dummy-worker-2")
    w.listen()


def bad_targets(w):
    print("-- unknown service, POST then GET")
    job = w.post("echo", service="nosuch")
    w.listen()
    w.get(job, service="nosuch")
    w.listen()
    print("-- unknown worker by name; known and unknown in a list; only unknown; empty list")
    for target in ("ghost", ["dummy-worker-1", "ghost"], ["ghost"], [], '"dummy-worker-1"'):
        w.post("count", target)
        w.listen()
    print("-- a worker of the service named twice in the list")
    w.post("count", ["dummy-worker-1", "dummy-worker-1"])
    w.listen()
    print("-- service 'all'")
    w.post("count", "all", service="all")
    w.listen()


def failures(w):
    for task, kwargs in (
        ("nosuchtask", {}),
        ("fail", {"message": "boom"}),
        ("fail", {"message": "boom", "soft": True}),
        ("sleep", {"seconds": "not a number"}),
    ):
        print(f"-- task {task} {kwargs}")
        job = w.post(task, "dummy-worker-1", **kwargs)
        w.listen()
        w.get(job, "dummy-worker-1")
        w.listen(limit=2200)


def duplicates(w):
    print("-- the same POST three times to one worker")
    job = w.post("count", "dummy-worker-1")
    w.listen()
    for _ in range(2):
        w.post("count", "dummy-worker-1", uuid=job)
        w.listen()
    w.executed(job)
    print("-- the same uuid again, other task: what a GET gives")
    w.post("emit", "dummy-worker-1", uuid=job, n=1)
    w.listen()
    w.get(job, "dummy-worker-1")
    w.listen()
    w.executed(job)
    print("-- the same uuid to the other worker")
    w.post("count", "dummy-worker-2", uuid=job)
    w.listen()
    w.executed(job)
    print("-- target any, one uuid eight times")
    job = uuids.uuid4().hex
    for _ in range(8):
        w.post("count", "any", uuid=job)
    w.listen()
    w.executed(job)


def events(w):
    w.post("emit", "dummy-worker-1", n=3)
    w.listen(limit=700)


def inputs(w):
    job = w.post("ask", "dummy-worker-1", question="Go on?", timeout=20)
    asked = [m for m in w.listen() if m[2] == b"0x08" and b"input_request" in m[6]]
    w.get(job, "dummy-worker-1")
    w.listen(limit=700)
    request = json.loads(asked[-1][6])["extras"]["input_request"]
    answer = {"input_id": request["id"], "value": "yes", "cancel": False, "metadata": {}}
    print("-- a PUT with another id, then the right one, then one too many")
    w.send(PUT, "dummy-worker-1", job, {**answer, "input_id": "other"})
    w.listen()
    w.send(PUT, "dummy-worker-1", job, answer)
    w.listen(limit=700)
    w.send(PUT, "dummy-worker-1", job, answer)
    w.listen()
    w.get(job, "dummy-worker-1")
    w.listen()
    print("-- PUT to an unknown worker")
    w.send(PUT, "ghost", job, answer)
    w.listen()


def mmi(w):
    for task, kwargs in (
        ("show_workers", {}),
        ("show_workers", {"service": "nosuch"}),
        ("show_broker_version", {}),
        ("nosuch", {}),
    ):
        body = {"task": task, "kwargs": kwargs, "args": []}
        w.send(MMI, "any", payload=body, service="mmi.service.broker")
        w.listen(limit=400)
    print("-- inventory of an unknown worker from sid.service.broker")
    body = {"task": "get_inventory", "kwargs": {"name": "dummy-worker-1"}, "args": []}
    w.send(MMI, "any", payload=body, service="sid.service.broker")
    w.listen()
    print("-- the broker's own service asked with POST")
    body = {"task": "nosuch", "kwargs": {}, "args": []}
    w.send(POST, "any", payload=body, service="mmi.service.broker")
    w.listen()
    print("-- MMI to a worker service")
    w.send(MMI, "all", payload={"task": "echo", "kwargs": {}, "args": []})
    w.listen(1)


def other_service(w):
    print("-- a worker of another service, reached by its name")
    name = w.peer.do("start_worker", service="other")["name"]
    w.post("count", name)
    w.listen()
    print("-- all of dummy: is it among them?")
    w.post("count", "all")
    w.listen(limit=120)
    w.peer.do("kill_worker", name=name)


def ordering(w):
    print("-- 300 jobs: is the worker's 201 always there before its events?")
    jobs = {w.post("count", "dummy-worker-1", quiet=True): [] for _ in range(300)}
    for message in w.listen(3, quiet=True):
        code = message[5].decode()
        if message[2] == b"0x08":
            code = json.loads(message[6])["event_type"]
        jobs[message[4].decode()].append(code)
    counted = collections.Counter(" ".join(codes) for codes in jobs.values())
    for order, times in counted.most_common():
        print(f"        = {times:4} x {order}")


def timeouts(w):
    print("-- job timeout 1, task takes 2.5 and does not look; then one that looks")
    for heed in (False, True):
        job = w.post("sleep", "dummy-worker-1", timeout=1, seconds=2.5, heed_timeout=heed)
        w.listen(3)
        w.get(job, "dummy-worker-1")
        w.listen(limit=700)
    print("-- no timeout in the payload; null; text")
    for payload in (
        {"task": "echo"},
        {"task": "echo", "timeout": None, "args": [], "kwargs": {}},
        {"task": "echo", "timeout": "soon", "args": [], "kwargs": {}},
    ):
        job = w.send(POST, "dummy-worker-1", payload=payload)
        w.listen()
        w.get(job, "dummy-worker-1")
        w.listen(limit=700)


def queueing(w):
    print("-- seven jobs of 1 s to a worker that runs five at once; states after 0.5 s")
    jobs = [w.post("sleep", "dummy-worker-1", seconds=1) for _ in range(7)]
    w.listen(0.5, limit=130)
    for job in jobs[-2:]:
        w.get(job, "dummy-worker-1")
    w.listen(2.2)


def stalled_worker(w):
    print("-- a paused worker: POST, GET, then resumed")
    w.peer.do("pause_worker", name="dummy-worker-1")
    job = w.post("count", "dummy-worker-1")
    w.listen(1)
    w.get(job, "dummy-worker-1")
    w.listen(0.5)
    w.peer.do("resume_worker", name="dummy-worker-1")
    w.listen(1)
    w.executed(job)


def worker_restart(w):
    print("-- worker killed in the middle of a job")
    job = w.post("sleep", "dummy-worker-1", seconds=3)
    late = w.post("count", "dummy-worker-1")
    w.listen()
    w.peer.do("kill_worker", name="dummy-worker-1")
    print("-- killed; a POST right after")
    lost = w.post("count", "dummy-worker-1")
    w.listen(0.7)
    print("-- after the keepalives have run out")
    time.sleep(2)
    w.get(job, "dummy-worker-1")
    w.get(job, "all")
    w.listen()
    print("-- worker started again, same name")
    w.peer.do("start_worker", name="dummy-worker-1")
    w.listen(3.5)
    for uuid in (job, late, lost):
        w.get(uuid, "dummy-worker-1")
        w.listen()
        w.executed(uuid)
    print("-- the interrupted job posted again")
    w.post("sleep", "dummy-worker-1", uuid=job, seconds=0)
    w.listen()
    w.executed(job)
    print("-- worker stopped, not killed: is it still targeted?")
    w.peer.do("stop_worker", name="dummy-worker-1")
    w.post("count", "dummy-worker-1")
    w.listen()
    w.peer.do("start_worker", name="dummy-worker-1")


def broker_restart(w):
    print("-- broker restarted in the middle of a 1.5 s job")
    job = w.post("sleep", "dummy-worker-1", seconds=1.5)
    w.listen()
    w.peer.do("stop_broker")
    queued = w.post("count", "dummy-worker-1")
    print("-- broker down, the POST above was queued by ZeroMQ; it starts")
    w.peer.do("start_broker")
    w.listen(1)
    w.get(job, "dummy-worker-1")
    w.listen()
    print("-- after the workers registered again")
    deadline = time.monotonic() + 20
    while len(w.peer.do("stats")["registered"]) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    w.listen(1)
    w.get(job, "dummy-worker-1")
    w.get(queued, "dummy-worker-1")
    w.listen()
    w.executed(job)
    w.executed(queued)


def keepalive(w):
    print("-- does the broker send anything to a silent client? 4 s (8 intervals)")
    w.listen(4)
    print("-- KEEPALIVE from a client")
    w.raw(b"", b"NFPC01", KEEPALIVE, w.service)
    w.listen()
    w.raw(b"", b"NFPC01", KEEPALIVE, w.service, b"all", b"u", b"{}")
    w.listen()


def odd_messages(w):
    print("-- DELETE; OPEN; unknown command; wrong header; payload that is not JSON to mmi")
    w.send(DELETE, "all", payload={})
    w.listen()
    w.send(b"0x00", "all", payload={})
    w.listen()
    w.send(b"0x99", "all", payload={})
    w.listen()
    w.raw(b"", b"NOPE01", POST, w.service, b"all", b"u", b"{}")
    w.listen()
    w.send(MMI, "any", payload=b"{", service="mmi.service.broker")
    w.listen()
    print("-- a POST whose payload has no task, then a good one")
    w.send(POST, "dummy-worker-1", payload={"args": []})
    w.listen()
    w.post("count", "dummy-worker-1")
    w.listen()


def identities(w):
    print("-- a second client of the same name: who gets the reply?")
    job = w.post("sleep", "dummy-worker-1", seconds=0.6)
    w.listen(0.3)
    other = Wire(w.peer, w.identity)
    other.get(uuids.uuid4().hex, "dummy-worker-1")
    print("   first:")
    w.listen(1)
    print("   second:")
    other.listen(0.5)
    other.close()
    print("   first, with the second gone:")
    w.get(job, "dummy-worker-1")
    w.listen(2)


def absent_client(w):
    print("-- a client that is away while its job sends events, then comes back")
    away = Wire(w.peer, "away")
    job = away.post("emit", "dummy-worker-1", n=4, interval=0.2)
    away.listen(0.3, limit=120)
    away.close()
    time.sleep(1)
    back = Wire(w.peer, "away")
    back.listen(0.5)
    back.get(job, "dummy-worker-1")
    back.listen()
    print("-- the same job asked for by a client of another name")
    w.get(job, "dummy-worker-1")
    w.listen()
    print("-- with this client connected, nothing of it reaches the owner")
    back.listen()
    back.close()


def wrong_security(w):
    if not w.peer.about["auth"]:
        return
    print("-- no CURVE, then CURVE with the wrong server key")
    for about in ({"auth": False}, {"public_key": zmq.curve_keypair()[0].decode()}):
        before = dict(w.peer.about)
        w.peer.about.update(about)
        stranger = Wire(w.peer, "stranger")
        stranger.get("0" * 32, "all")
        stranger.listen(1.5)
        stranger.close()
        w.peer.about = before


def big(w):
    print("-- a result of 10 MB")
    job = w.post("big", "dummy-worker-1", size_bytes=10_000_000)
    w.listen(1)
    w.get(job, "dummy-worker-1")
    w.listen(2, limit=120)


def poison(w):
    print("-- a POST whose payload is not JSON, then a good one to the same worker")
    w.send(POST, "dummy-worker-2", payload=b"{oops")
    w.listen()
    job = w.post("count", "dummy-worker-2")
    w.listen(1.5)
    w.get(job, "dummy-worker-2")
    w.listen()
    w.executed(job)
    w.peer.do("kill_worker", name="dummy-worker-2")
    w.peer.do("start_worker", name="dummy-worker-2")


SCENARIOS = [
    post_and_get, get_states, bad_targets, failures, duplicates, events, inputs, mmi,
    other_service, ordering, timeouts, queueing, stalled_worker, keepalive, odd_messages,
    identities, absent_client, wrong_security, big, poison, worker_restart, broker_restart,
]


def main():
    names = [s.__name__ for s in SCENARIOS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-dir")
    parser.add_argument("--no-auth", action="store_true")
    parser.add_argument("scenario", nargs="*", choices=[[], *names])
    args = parser.parse_args()
    base_dir = args.base_dir or tempfile.mkdtemp(prefix="nfp-wire-")
    options = ["--base-dir", base_dir, "--workers", "2"]
    options += ["--keepalive", "500", "--multiplier", "4"]
    options += ["--no-auth"] if args.no_auth else []
    with PeerProcess(*options) as peer:
        for scenario in SCENARIOS:
            if not args.scenario or scenario.__name__ in args.scenario:
                print(f"\n## {scenario.__name__}")
                wire = Wire(peer, f"probe-{scenario.__name__}")
                scenario(wire)
                wire.close()


if __name__ == "__main__":
    main()
