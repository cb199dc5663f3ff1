"""Prints the version of the package tzdata, then of each zone named on standard input its offset at the start of a time
and at each instant up to its end from which another one holds: NAME SECONDS OFFSET. Zones that tzdata lacks are left out.
"""

import sys
import zoneinfo
from datetime import datetime, timezone

import tzdata

SIX_HOURS = 6 * 3600


def offset(zone, at):
    return int(datetime.fromtimestamp(at, timezone.utc).astimezone(zone).utcoffset().total_seconds())


def changes(zone, start, end):
    before = offset(zone, start)
    yield start, before
    at = start
    while at < end:
        after = offset(zone, at + SIX_HOURS)
        if after != before:
            low, high = at, at + SIX_HOURS
            while high - low > 1:
                middle = (low + high) // 2
                if offset(zone, middle) == before:
                    low = middle
                else:
                    high = middle
            yield high, after
        at, before = at + SIX_HOURS, after


def main():
    zoneinfo.reset_tzpath(to=[])  # the package, not what the system has
    start, end = int(sys.argv[1]), int(sys.argv[2])
    print(tzdata.IANA_VERSION)
    for name in sys.stdin.read().split():
        try:
            zone = zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            continue
        for at, seconds in changes(zone, start, end):
            print(name, at, seconds)


main()
