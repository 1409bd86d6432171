/**
 * A deadline that ends this process even when its event loop never turns again: PGlite runs on the main thread, and where
 * it cannot start it may spin for ever. A worker thread watches; it says why on stderr and exits with code 1.
 *
 * The worker's source is text, because a file of its own would have to be named as an entry point to every build. It ends
 * the process by the C library's `_exit`, since `process.exit` in a worker ends only the worker; where that cannot be
 * reached, by SIGKILL.
 */
const source = `
const { writeSync } = require("node:fs");
function end() {
  const library = process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6";
  try {
    require("bun:ffi").dlopen(library, { _exit: { args: ["i32"], returns: "void" } }).symbols._exit(1);
  } catch {}
  process.kill(process.pid, "SIGKILL");
}
self.onmessage = ({ data: { wait_ms, message } }) => {
  setTimeout(() => {
    try { writeSync(2, message + "\\n"); } catch {}
    end();
  }, wait_ms);
};
`;

/** Answers how to call it off. */
export function exitAfter(wait_ms: number, message: string): () => void {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.unref();
  worker.postMessage({ wait_ms, message });
  return () => {
    worker.terminate();
    URL.revokeObjectURL(url);
  };
}
