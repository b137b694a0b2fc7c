// A file for whoever looks at the page.
import { element } from "../dom";

export function save(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
