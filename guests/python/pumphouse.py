"""What a message handler for Pumphouse is given and gives.

Plain Python: it runs as it is, for tests, and in a component, where app.py puts it behind the interface.
"""

import json
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union


class Unacceptable(Exception):
    """Rejects the message: it can never be handled."""


class DeliveryError(Exception):
    """Rejects the message: it is fine, and handling it failed for good."""


@dataclass(frozen=True)
class Ack:
    """Done: the message is removed."""


@dataclass(frozen=True)
class Defer:
    """Not now: it comes back after so many milliseconds, or after the subscription's backoff."""

    milliseconds: Optional[int] = None


@dataclass(frozen=True)
class Reject:
    """Never, without a reason or with one: `unacceptable`, `delivery-error`. The text is for people."""

    description: str
    reason: str = "none"


Outcome = Union[Ack, Defer, Reject]


@dataclass(frozen=True)
class Message:
    """One delivery of one message."""

    body: bytes = b""
    id: str = "test-1"
    source: str = "test"
    #: The deliveries before this one: 0 the first time.
    delivery_count: int = 0
    #: Pairs of name and value, in the broker's order.
    headers: list[tuple[str, str]] = field(default_factory=list)
    content_type: Optional[str] = None
    ordering_key: Optional[str] = None
    #: Milliseconds since 1970.
    published_at: Optional[int] = None

    def header(self, name: str) -> Optional[str]:
        """The value of the first header of that name."""
        return next((value for found, value in self.headers if found == name), None)

    def text(self) -> str:
        """The body as text. What is no UTF-8 is unacceptable."""
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            raise Unacceptable(f"the body is not UTF-8: {error.reason}") from error

    def json(self) -> Any:
        """The body as JSON. What is none is unacceptable."""
        try:
            return json.loads(self.text())
        except ValueError as error:
            raise Unacceptable(f"the body is no JSON: {error}") from error


def answer(handle: Callable[[Message], Outcome], message: Message) -> Outcome:
    """The outcome of a handler: what it returns, or what an exception says.

    An exception that is no rejection is a passing trouble: it goes to standard error, the message is deferred.
    """
    try:
        outcome = handle(message)
        if isinstance(outcome, (Ack, Defer, Reject)):
            return outcome
        raise TypeError("the handler returned no outcome")
    except Unacceptable as error:
        return Reject(str(error), "unacceptable")
    except DeliveryError as error:
        return Reject(str(error), "delivery-error")
    except Exception:  # whatever it is, it is not an answer
        traceback.print_exc()
        return Defer()
