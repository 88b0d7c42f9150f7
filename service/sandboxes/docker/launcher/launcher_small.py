"""The C modules behind ``collections``, ``hashlib``, ``signal`` and ``socket``.

Every Python has them; those around them bring others in, ``hashlib`` all of OpenSSL, and take as long to load as
Python itself takes to start: for a small program in a new sandbox that is most of the wait.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from collections import deque
    from hashlib import sha256
else:
    import _signal as signal
    import _socket as socket
    from _collections import deque

    try:
        from _sha256 import sha256  # up to Python 3.11
    except ImportError:
        try:
            from _sha2 import sha256
        except ImportError:
            from hashlib import sha256

__all__ = ["deque", "sha256", "signal", "socket"]
