"""A way to a server on this machine that can be cut: refused, or silent as where packets are lost."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal

from cdc_sync.local.ports import LOOPBACK, free_ports

State = Literal["open", "refusing", "silent"]
_CHUNK = 65536


class Gate:
    """Passes connections on to a port.

    Attributes:
        port: where it listens.
    """

    def __init__(self, behind: int) -> None:
        """Open it.

        Args:
            behind: the server's port.
        """
        (self.port,) = free_ports(1)
        self._behind = behind
        self._state: State = "open"
        self._changed = threading.Condition()
        self._through: set[socket.socket] = set()
        self._listener = socket.create_server((LOOPBACK, self.port))
        self._is_listening = False
        self._listen()

    def set(self, state: State) -> None:
        """Open or cut the way; connections that there are end, or have nothing pass any more."""
        with self._changed:
            self._state = state
            self._changed.notify_all()
        if state == "refusing":
            if self._is_listening:
                # It stays bound, or the port might be another process's by the time it listens again; Linux refuses
                # whoever calls meanwhile.
                self._listener.shutdown(socket.SHUT_RDWR)
                self._is_listening = False
            self.drop()
        elif not self._is_listening:
            self._listen()

    def drop(self) -> None:
        """End all connections."""
        there, self._through = self._through, set()
        for each in there:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> None:
        self._listener.listen()
        self._is_listening = True
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection((LOOPBACK, self._behind)) as far:
            self._through.update((near, far))
            back = threading.Thread(target=self._pass, args=(far, near), daemon=True)
            back.start()
            self._pass(near, far)
            back.join()
            self._through.difference_update((near, far))

    def _pass(self, source: socket.socket, into: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                with self._changed:
                    self._changed.wait_for(lambda: self._state != "silent")
                into.sendall(data)
        for each in (source, into):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
