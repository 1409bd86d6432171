"""llama.cpp's own HTTP server, from the package xllamacpp: `python llama-server.py MODEL.gguf PORT`. Ends with its parent."""

import sys

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.model_alias = {"tiny"}
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(sys.argv[2])
parameters.n_ctx = 32768
parameters.n_parallel = 2
parameters.use_jinja = True
parameters.endpoint_metrics = True
parameters.endpoint_slots = True
parameters.cpuparams.n_threads = 1
server = xllamacpp.Server(parameters)
sys.stdin.read()
