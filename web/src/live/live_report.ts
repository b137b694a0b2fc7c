// What the server says, in the form of the report: the views of the report draw it.
import { LoadedReport, Report } from "../data";
import { change, state } from "../state";
import { FoundRoles, Served } from "./api";

export class LiveReport extends LoadedReport {
  constructor(served: Served) {
    const report: Report = {
      format: "live",
      title: "Filigree",
      story: { line: "", numbers: [] },
      models: served.models.map((model) => ({
        name: model.name,
        layers: model.layers,
        heads: model.heads,
        facts: [
          ["", `${model.layers.length} \u00d7 ${model.heads.length / model.layers.length} heads`],
          ["", `${(model.parameters / 1e6).toPrecision(3)} M parameters`],
          ["", model.gated ? "gated attention" : "softmax attention"],
        ],
        roles: model.heads.map(() => ({ role: "", confidence: 0 })),
        statistics: [],
      })),
      prompts: [],
      statistics: [],
      pairs: [],
      tasks: [],
      roles: [],
      colors: served.colors,
      made: [],
    };
    super(report);
  }

  // The heads of each model's circuit, marked in the grid; none: no marks.
  mark(task: string, heads: string[][]): void {
    this.report.tasks = [{ name: task, description: "", facts: [], columns: [], rows: [], heads, figures: [], stored: null }];
    change({ marks: state().marks + 1 });
  }

  showRoles({ names, models }: FoundRoles): void {
    this.report.roles.splice(0, Infinity, ...names);
    models.forEach(({ roles }, m) => {
      if (roles) this.report.models[m]!.roles = roles;
    });
    change({ marks: state().marks + 1 });
  }
}
