"""Starts llama.cpp's own HTTP server, from the package xllamacpp: `python llama-server.py MODEL.gguf NAME PORT
[embedding|ranking]`.

Without the last argument, it serves a language model. The variable `LLAMA` may contain additional parameters, by
llama.cpp's names, as JSON. The server ends when its parent process ends.
"""

import json
import os
import sys

import xllamacpp

path, name, port, *kind = sys.argv[1:]
pooling = xllamacpp.llama_pooling_type
parameters = xllamacpp.CommonParams()
parameters.model.path = path
parameters.model_alias = {name}
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(port)
parameters.n_ctx = 1024 if kind else 32768
parameters.n_parallel = 2
parameters.use_jinja = True
parameters.endpoint_metrics = True
parameters.endpoint_slots = True
parameters.cpuparams.n_threads = 1
if kind:
    parameters.embedding = True
if kind == ["ranking"]:
    parameters.pooling_type = pooling.LLAMA_POOLING_TYPE_RANK
for parameter, value in json.loads(os.environ.get("LLAMA", "{}")).items():
    setattr(parameters, parameter, value)
server = xllamacpp.Server(parameters)
sys.stdin.read()
