"""The component: puts `handle` of handler.py behind the interface. Its bindings are there when it is built."""

import wit_world.exports
from wit_world.imports import types

import handler
import pumphouse


class IncomingHandler(wit_world.exports.IncomingHandler):
    def handle(self, message: types.Message) -> types.Outcome:
        fields = pumphouse.Message(
            body=message.body,
            id=message.id,
            source=message.source,
            delivery_count=message.delivery_count,
            headers=message.headers,
            content_type=message.content_type,
            ordering_key=message.ordering_key,
            published_at=message.published_at,
        )
        return wit(pumphouse.answer(handler.handle, fields))


def wit(outcome: pumphouse.Outcome) -> types.Outcome:
    match outcome:
        case pumphouse.Ack():
            return types.Outcome_Ack()
        case pumphouse.Defer(milliseconds):
            return types.Outcome_Defer(milliseconds)
        case pumphouse.Reject(description, reason):
            known = types.RejectionReason[reason.upper().replace("-", "_")]
            return types.Outcome_Reject(types.Rejection(known, description))
