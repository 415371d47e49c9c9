"""A slow link as a ``ProxyCommand`` of ssh, also where the kernel has no ``netem``.

With ``slow_pipe.py HOST PORT SECONDS BYTES``, each direction takes so many seconds, and at most so many bytes a second.
"""

import os
import queue
import socket
import sys
import threading
import time

BLOCK = 1 << 12

LATE_SECONDS = 0.5
"""How late a busy machine may wake this process without a lower rate than was asked for."""


def carry(source: int, sink: int, delay: float, rate: float) -> None:
    """Pass on what comes, late and slowly; a full queue makes the source wait, as a router's does."""
    waiting: queue.Queue[tuple[float, bytes]] = queue.Queue(maxsize=16)

    def deliver() -> None:
        while True:
            due, data = waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            sent = 0
            while data and sent < len(data):
                sent += os.write(sink, data[sent:])
            if not data:
                os._exit(0)

    threading.Thread(target=deliver, daemon=True).start()
    free = time.monotonic()
    while True:
        data = os.read(source, BLOCK)
        free = max(free, time.monotonic() - LATE_SECONDS) + len(data) / rate
        time.sleep(max(0.0, free - time.monotonic()))
        waiting.put((time.monotonic() + delay, data))
        if not data:
            return


def main(host: str, port: str, delay: str, rate: str) -> None:
    """Connect standard input and output with a port."""
    connection = socket.create_connection((host, int(port)))
    arguments = (float(delay), float(rate))
    threading.Thread(target=carry, args=(0, connection.fileno(), *arguments), daemon=True).start()
    carry(connection.fileno(), 1, *arguments)
    time.sleep(float(delay) + 1)


if __name__ == "__main__":
    main(*sys.argv[1:5])
