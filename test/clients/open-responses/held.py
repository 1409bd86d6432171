"""Validates values against the published schema of Open Responses: reads one question per line, and writes one line of
objections for each.

A question has `kind` (response, compaction, event, socket event, request) and `value`; the answer is a list of
sentences.
"""

import enum
import json
import sys

import openresponses_types as published
from pydantic import BaseModel, ValidationError


def type_of(model):
    """Returns the constant that the model's field `type` must have."""
    field = model.model_fields.get("type")
    kind = field and field.annotation
    return next(iter(kind)).value if isinstance(kind, enum.EnumMeta) and len(kind) == 1 else None


models = [one for one in vars(published).values() if isinstance(one, type) and issubclass(one, BaseModel)]
events = {type_of(one): one for one in models if one.__name__.endswith("StreamingEvent")}
socket_events = {**events, "error": published.WebSocketErrorEvent}
named = {
    "response": published.ResponseResource,
    "compaction": published.CompactResource,
    "request": published.CreateResponseBody,
    "socket request": published.WebSocketResponseCreateEvent,
}


def model_for(kind, value):
    if kind in named:
        return named[kind]
    return (socket_events if kind == "socket event" else events).get(value.get("type"))


def objections(kind, value):
    model = model_for(kind, value)
    if model is None:
        return [f"there is no {kind} of type {value.get('type')}"]
    try:
        model.model_validate(value)
        return []
    except ValidationError as error:
        return [f"{kind} {value.get('type', '')} {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]


for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps(objections(question["kind"], question["value"])), flush=True)
