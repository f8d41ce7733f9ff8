import * as vscode from 'vscode';
import { ModelChoice, modeRequest, modelsRequest, TrustFile, trustRequest } from './protocol';
import type { Server } from './server';

const modes: Record<string, string> = {
  ask: 'Answers, changes nothing',
  plan: 'Makes a plan, changes nothing',
  edit: 'Changes files, asks before what cannot be taken back',
  auto: 'Does not ask for deleting and shell commands',
};

const states: Record<string, string> = {
  trusted: '$(check) trusted',
  refused: '$(circle-slash) refused',
  changed: '$(warning) changed since you trusted it',
  unknown: '$(question) not answered',
};

const efforts = ['minimal', 'low', 'medium', 'high'];

/** What can be switched while a conversation goes on, and what is trusted. */
export class Switch {
  constructor(
    private readonly server: Server,
    private readonly onMode: (mode: string) => void,
  ) {
    server.onStart((client) => {
      client.sendRequest(modeRequest, {}).then(
        (now) => onMode(now.mode),
        () => {}, // the next task says what is wrong
      );
    });
  }

  async mode(name?: string) {
    const client = await this.server.get();
    if (!name) {
      const now = await client.sendRequest(modeRequest, {});
      const items = now.modes.map((mode) => ({
        label: mode,
        description: mode === now.mode ? '$(check)' : '',
        detail: modes[mode],
      }));
      const choice = await vscode.window.showQuickPick(items, {
        title: 'ThinkFlow: mode',
        placeHolder: 'Counts at once, also for what a running answer still does',
      });
      if (!choice) return;
      name = choice.label;
    }
    const now = await client.sendRequest(modeRequest, { mode: name });
    this.server.remember('mode', now.mode);
    this.onMode(now.mode);
  }

  async model() {
    const client = await this.server.get();
    const now = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: 'ThinkFlow: asking for models' },
      () => client.sendRequest(modelsRequest, {}),
    );
    if (now.problem) {
      void vscode.window.showWarningMessage(`ThinkFlow: the endpoint does not list its models: ${now.problem}`);
    }
    const effort = { label: '$(lightbulb) Reasoning effort…', id: '', description: now.reasoningEffort ?? '' };
    const choice = await vscode.window.showQuickPick(
      [...(now.models ?? []).map(modelItem), { label: '', id: '', kind: vscode.QuickPickItemKind.Separator }, effort],
      { title: 'ThinkFlow: model', placeHolder: 'Counts from the next request on', matchOnDescription: true },
    );
    if (!choice) return;
    if (choice !== effort) {
      const after = await client.sendRequest(modelsRequest, { model: choice.id });
      this.server.remember('model', after.model);
      void vscode.window.setStatusBarMessage(`ThinkFlow: the model is ${after.model}`, 4000);
      return;
    }
    const level = await vscode.window.showQuickPick(
      efforts.map((label) => ({ label, description: label === now.reasoningEffort ? '$(check)' : '' })),
      { title: `ThinkFlow: reasoning effort of ${now.model}` },
    );
    if (!level) return;
    const after = await client.sendRequest(modelsRequest, { reasoningEffort: level.label });
    this.server.remember('reasoning_effort', level.label);
    void vscode.window.setStatusBarMessage(`ThinkFlow: the reasoning effort is ${after.reasoningEffort}`, 4000);
  }

  async trust() {
    const client = await this.server.get();
    const { files } = await client.sendRequest(trustRequest, {});
    if (files.length === 0) {
      void vscode.window.showInformationMessage(
        'ThinkFlow: nothing here needs trust: there is no AGENTS.md and no .thinkflow/verify.',
      );
      return;
    }
    const choice = await vscode.window.showQuickPick(
      files.map((file) => ({ label: file.path, description: states[file.state], detail: use(file), file })),
      { title: 'ThinkFlow: what counts only once you trust it' },
    );
    if (!choice) return;
    const shown = (await client.sendRequest(trustRequest, { do: 'show', path: choice.file.path })).files[0];
    await vscode.window.showTextDocument(vscode.Uri.parse(shown.uri, true), { preview: true });
    const answer = await vscode.window.showQuickPick(
      [
        { label: '$(check) Trust Exactly This Text', detail: 'Until it changes', do: 'grant' },
        { label: '$(circle-slash) Do Not Use It', detail: 'And do not ask about this text again', do: 'refuse' },
        { label: '$(discard) Forget the Answer', detail: 'It is asked about again', do: 'revoke' },
      ],
      { title: `ThinkFlow: ${shown.path}`, placeHolder: use(shown), ignoreFocusOut: true },
    );
    if (!answer) return;
    const after = await client.sendRequest(trustRequest, { do: answer.do, path: shown.path, hash: shown.hash });
    const state = after.files[0]?.state ?? 'asked about again';
    void vscode.window.setStatusBarMessage(`ThinkFlow: ${shown.path} is ${state}`, 4000);
  }
}

function use(file: TrustFile): string {
  return file.kind === 'verify' ? 'A command that is run after changes' : 'Rules for the model';
}

function modelItem(m: ModelChoice) {
  const parts: string[] = [];
  if (m.current) parts.push('$(check)');
  if (m.context) parts.push(`${Math.floor(m.context / 1000)}k tokens`);
  if (m.protocol === 'native') parts.push('native calls');
  return { label: m.id, id: m.id, description: parts.join(' · ') };
}
