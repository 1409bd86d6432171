"""Counts how often Python's urllib and requests read the refusal."""

import json
import os
import urllib.error
import urllib.request

import requests

with open(os.environ["REFUSALS"]) as file:
    given = json.load(file)


def by_urllib(one, body):
    request = urllib.request.Request(one["url"], data=body, headers=one["headers"], method=one["method"])
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


session = requests.Session()
session.trust_env = False


def by_requests(one, body):
    response = session.request(one["method"], one["url"], data=body, headers=one["headers"])
    return response.status_code, response.text


for client, ask in (("python urllib", by_urllib), ("python requests", by_requests)):
    for one in given["cases"]:
        with open(one["body"], "rb") as file:
            body = file.read()
        read, failure = 0, None
        for _ in range(given["times"]):
            try:
                status, text = ask(one, body)
                if status == one["status"] and f'"{one["code"]}"' in text:
                    read += 1
                else:
                    failure = f"{status} {text[:200]}"
            except Exception as error:
                failure = repr(error)[:200]
        print(
            json.dumps(
                {
                    "client": client,
                    "reason": one["reason"],
                    "size_mib": one["size_mib"],
                    "read": read,
                    "failure": failure,
                }
            ),
            flush=True,
        )
