"""Takes orders that arrive as JSON: the rules of guests/vectors/README.md, in Python."""

from pumphouse import Ack, Defer, DeliveryError, Message, Reject, Unacceptable

MOST = 0xFFFF_FFFF


def is_whole(value) -> bool:
    return type(value) is int and value >= 0


def read(message: Message) -> dict:
    order = message.json()
    if not (
        isinstance(order, dict)
        and isinstance(order.get("id"), str)
        and is_whole(order.get("quantity"))
        and order["quantity"] <= MOST
        and (order.get("available_in") is None or is_whole(order["available_in"]))
    ):
        raise Unacceptable("the body is no order")
    return order


def is_given_up(message: Message) -> bool:
    """Whether the message came as often as its sender allows."""
    most = message.header("give-up-after")
    return most is not None and most.isdigit() and message.delivery_count >= int(most)


def handle(message: Message):
    if message.header("hold") == "yes":
        return Defer()
    order = read(message)
    if order["quantity"] == 0:
        raise Unacceptable(f"order {order['id']} is for nothing")
    if order.get("cancelled"):
        return Reject(f"order {order['id']} was cancelled")
    if is_given_up(message):
        raise DeliveryError(f"order {order['id']} was tried {message.delivery_count} times")
    if order.get("available_in") is not None:
        return Defer(order["available_in"] * 1000)
    return Ack()
