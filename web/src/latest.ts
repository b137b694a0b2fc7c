// One question at a time: a newer one aborts the one before, of which neither the answer nor the failure
// is heard any more.
export class Latest {
  private current = new AbortController();

  drop(): void {
    this.current.abort();
    this.current = new AbortController();
  }

  ask<T>(question: (signal: AbortSignal) => Promise<T>, answered: (answer: T) => void, failed: (error: unknown) => void): void {
    this.drop();
    const { signal } = this.current;
    question(signal)
      .then((answer) => {
        if (!signal.aborted) answered(answer);
      })
      .catch((error: unknown) => {
        if (!signal.aborted) failed(error);
      });
  }
}
