export function takesGzip(acceptEncoding: string | null): boolean {
  return (acceptEncoding ?? "").split(",").some((coding) => /^\s*(gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$)|$)/i.test(coding));
}
