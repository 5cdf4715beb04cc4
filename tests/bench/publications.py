#!/usr/bin/env python3
"""How often a rank publishes where it is: publications.py PID SECONDS.

Reads the versions of the three records in the page of a running dstraind (progress_page.h), from
outside and twice, so many seconds apart: a record's version grows by two with each publication.
Prints publications and steps in between, and publications a step. Needs the rights of a debugger.
"""
import struct
import sys
import time


def page_address(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            if "memfd:" in line and "progress" in line:
                return int(line.split("-")[0], 16)
    sys.exit(f"process {pid} has no page")


def read_page(pid, address):
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(address)
        words = struct.unpack("<25Q", memory.read(200))
    versions = words[0] + words[8] + words[24]  # of what is computed, communicated and saved
    return versions // 2, words[2]


def main():
    pid, seconds = int(sys.argv[1]), float(sys.argv[2])
    address = page_address(pid)
    before, first_step = read_page(pid, address)
    time.sleep(seconds)
    after, last_step = read_page(pid, address)
    steps = max(1, last_step - first_step)
    print(f"{after - before} publications in {steps} steps: {(after - before) / steps:.1f} a step")


main()
