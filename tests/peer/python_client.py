"""Opens a job database with the real Python client, and prints what it sees there.

    VENV/bin/python python_client.py --base-dir DIR --client NAME
        [--run SERVICE TASK [--kwargs JSON] [--workers JSON] [--timeout SECONDS]]

DIR is the folder of inventory.yaml. Prints one JSON object a line: {"job": {...}}
for each job, oldest first, as the client's own listing gives it, and with --run at
last {"result": {...}}, what the workers answered. Ends with an error when the
client does not start, or when no result came in time.
"""

import argparse
import json
import os

from norfab.core.client import NFPClient
from norfab.core.inventory import NorFabInventory

ALL_JOBS = -1  # no limit, for SQLite


def say(**fields):
    print(json.dumps(fields, default=str), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-dir", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--run", nargs=2, metavar=("SERVICE", "TASK"))
    parser.add_argument("--kwargs", type=json.loads, default={}, metavar="JSON")
    parser.add_argument("--workers", type=json.loads, default='"all"', metavar="JSON")
    parser.add_argument("--timeout", type=int, default=60)
    args = parser.parse_args()

    inventory = NorFabInventory(path=os.path.join(args.base_dir, "inventory.yaml"))
    client = NFPClient(inventory, inventory.broker["endpoint"], args.client)
    try:
        for job in client.job_db.fetch_jobs(limit=ALL_JOBS):
            say(job=job)
        if args.run:
            service, task = args.run
            result = client.run_job(
                service, task, kwargs=args.kwargs, workers=args.workers, timeout=args.timeout
            )
            if not result:
                raise SystemExit(f"no result of {service} {task} within {args.timeout} s")
            say(result=result)
    finally:
        client.destroy()


if __name__ == "__main__":
    main()
