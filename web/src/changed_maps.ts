// Maps of changed runs as a report stores them: a byte a cell of the heads behind the change, beside the
// maps of the run as it is. study/comparison/changed_runs.h writes them.
import { AttentionMap, mapsOf } from "./data";

// One change, of one model: the bytes begin at `start`, the heads that they are of at `first`.
export function changedMaps(plain: AttentionMap[], bytes: Uint8Array, start: number, first: number): AttentionMap[] {
  const { size } = plain[0]!;
  const each = (size * (size + 1)) / 2;
  const cells = new Uint16Array(plain.length * each);
  plain.forEach((map, head) => cells.set(map.stored(), head * each));
  // 0: as it was; 1: zero; else the weight in hundredths, one added.
  for (let cell = first * each, at = start; cell < cells.length; ++cell, ++at) {
    const byte = bytes[at]!;
    if (byte > 0) cells[cell] = Math.round(((byte - 1) / 100) * 65535);
  }
  return mapsOf(cells, plain.length, size);
}

// How many bytes there are of one change and one model.
export function changedBytes(heads: number, first: number, size: number): number {
  return (heads - first) * ((size * (size + 1)) / 2);
}
