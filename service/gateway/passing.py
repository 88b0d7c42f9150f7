"""What the bytes of an answer go through on their way to the client: decoded, redacted, metered, kept."""

from dataclasses import dataclass, field

from service.gateway.dialects.contract import Meter
from service.gateway.dialects.decoding import Decoder
from service.gateway.recording import Recording
from service.gateway.redaction import RedactingStream, Redactor

_PLAIN = frozenset({"", "identity"})


class EncodingUnknown(Exception):
    """The answer comes in an encoding that nobody asked for and that cannot be read."""


@dataclass(slots=True)
class Passing:
    """Providers are asked for plain bytes; what comes encoded all the same is decoded, since nothing could be taken out
    of it otherwise."""

    meter: Meter
    redactor: Redactor
    encoding: str
    recording: Recording
    """Of what the client was given."""
    _decoder: Decoder | None = None
    _stream: RedactingStream = field(init=False)

    def __post_init__(self) -> None:
        self._decoder = None if self.encoding.strip().lower() in _PLAIN else Decoder(self.encoding)
        self._stream = self.redactor.stream()

    def feed(self, data: bytes) -> bytes:
        """Return what may go on to the client. Raises EncodingUnknown."""
        if self._decoder is not None:
            data = b"".join(self._decoder.feed(data))
            if not self._decoder.readable:
                raise EncodingUnknown(self.encoding)
        return self._took(self._stream.feed(data))

    def end(self) -> bytes:
        """Return the rest; there is nothing more to come."""
        return self._took(self._stream.end())

    def _took(self, data: bytes) -> bytes:
        self.meter.feed(data)
        if data:
            self.recording.take(data)
        return data
