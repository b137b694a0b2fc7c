// Long work of the server: started, followed, cancelled.
import { Job, cancelJob, followJob, startJob } from "./api";

export class Following<Result> {
  private running: string | null = null;

  constructor(
    private readonly told: (job: Job<Result>) => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  get busy(): boolean {
    return this.running !== null;
  }

  async start(request: object): Promise<void> {
    try {
      const started = await startJob<Result>(request);
      this.running = started.job;
      this.told(started);
      while (this.running === started.job)
        await followJob<Result>(started.job, (job) => {
          if (job.state !== "running") this.running = null;
          this.told(job);
        });
    } catch (error) {
      this.running = null;
      this.failed(error);
    }
  }

  async cancel(): Promise<void> {
    if (this.running !== null) await cancelJob(this.running).catch(this.failed);
  }
}

export function progressOf(job: Job<unknown>): string {
  const { label, done, total } = job.progress;
  if (job.state === "running") return `${label || "starting"} ${total > 0 ? `${done} of ${total}` : "\u2026"}`;
  if (job.state === "failed") return job.error ?? "failed";
  return job.state;
}

// A drawing of the server, in the colours of the page.
export interface ServedFigure {
  title: string;
  svg: string;
  dark_svg: string;
}
