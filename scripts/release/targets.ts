// The platforms of a release, and the format of the executable for each.

export interface Target {
  /** The suffix in the names of this platform's files and packages. */
  name: string;
  /** The value for `bun build --target`. */
  bun: string;
  /** The platform in npm's terms: npm installs only packages for its own platform. */
  os: "linux" | "darwin" | "win32";
  cpu: "x64" | "arm64";
  libc?: "glibc" | "musl";
  format: ExecutableFormat;
}

export type ExecutableFormat = "ELF x86-64" | "ELF AArch64" | "Mach-O x86-64" | "Mach-O arm64" | "PE x86-64";

export const targets: readonly Target[] = [
  { name: "linux-x64", bun: "bun-linux-x64", os: "linux", cpu: "x64", libc: "glibc", format: "ELF x86-64" },
  { name: "linux-arm64", bun: "bun-linux-arm64", os: "linux", cpu: "arm64", libc: "glibc", format: "ELF AArch64" },
  { name: "linux-x64-musl", bun: "bun-linux-x64-musl", os: "linux", cpu: "x64", libc: "musl", format: "ELF x86-64" },
  { name: "darwin-x64", bun: "bun-darwin-x64", os: "darwin", cpu: "x64", format: "Mach-O x86-64" },
  { name: "darwin-arm64", bun: "bun-darwin-arm64", os: "darwin", cpu: "arm64", format: "Mach-O arm64" },
  { name: "windows-x64", bun: "bun-windows-x64", os: "win32", cpu: "x64", format: "PE x86-64" },
];

export function programName({ os }: Pick<Target, "os">): string {
  return os === "win32" ? "sluice.exe" : "sluice";
}

/** The format of an executable, recognized by its first bytes. Null if it is none of the formats of a release. */
export function formatOf(head: Uint8Array): ExecutableFormat | null {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (head.byteLength < 64) return null;
  if (view.getUint32(0) === 0x7f454c46) {
    const machine = view.getUint16(18, true);
    return machine === 0x3e ? "ELF x86-64" : machine === 0xb7 ? "ELF AArch64" : null;
  }
  if (view.getUint32(0, true) === 0xfeedfacf) {
    const cpu = view.getUint32(4, true);
    return cpu === 0x01000007 ? "Mach-O x86-64" : cpu === 0x0100000c ? "Mach-O arm64" : null;
  }
  if (view.getUint16(0) !== 0x4d5a) return null;
  const header = view.getUint32(60, true);
  if (header + 6 > head.byteLength || view.getUint32(header) !== 0x50450000) return null;
  return view.getUint16(header + 4, true) === 0x8664 ? "PE x86-64" : null;
}
