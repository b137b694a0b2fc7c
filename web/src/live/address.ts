// The state of the page behind the # of its address, so that a link shows the same:
//   #prompt=Paris%20is%20in&off=L6H11,L7H0&head=L3H4&token=...
export interface Place {
  prompt: string | null;
  off: string[];
  head: string | null;
  token: string;
}

export function readAddress(): Place {
  const parts = new URLSearchParams(location.hash.slice(1));
  return {
    prompt: parts.get("prompt"),
    off: (parts.get("off") ?? "").split(",").filter((name) => name !== ""),
    head: parts.get("head"),
    token: parts.get("token") ?? "",
  };
}

export function writeAddress(place: Place): void {
  const parts = new URLSearchParams();
  if (place.prompt !== null) parts.set("prompt", place.prompt);
  if (place.off.length > 0) parts.set("off", place.off.join(","));
  if (place.head !== null) parts.set("head", place.head);
  if (place.token) parts.set("token", place.token);
  history.replaceState(null, "", `${location.pathname}#${parts.toString()}`);
}
