import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import { ConnectionError, ErrorCodes, ResponseError } from 'vscode-languageclient/node';
import { Answer, summary } from './answer';
import { cancelRequest, RunEvent, RunParams, runRequest, RunResult, steerRequest } from './protocol';
import type { Server } from './server';
import { sendsCurrentFile } from './settings';

interface Run {
  id: string;
  applied: number;
  failed: number;
  doing: string;
  /** Ends the wait for an answer that can no longer come. */
  lost: (reason: string) => void;
}

/** Tasks: from the command to the end of the answer. One at a time. */
export class Tasks implements vscode.Disposable {
  private run?: Run;
  private session?: string;
  private readonly status = vscode.window.createStatusBarItem('thinkflow.status', vscode.StatusBarAlignment.Left);

  constructor(
    private readonly server: Server,
    private readonly answer: Answer,
  ) {
    this.status.name = 'ThinkFlow';
    this.status.command = 'thinkflow.showAnswer';
    this.showStatus();
    this.status.show();
    server.onEvent((event) => this.event(event));
    server.onEnd(() => {
      this.session = undefined;
      this.run?.lost(ended);
    });
  }

  dispose() {
    this.status.dispose();
  }

  /** Asks for a task, with what is selected, and runs it. */
  async ask() {
    if (this.run) {
      const cancel = 'Cancel It';
      const choice = await vscode.window.showWarningMessage('ThinkFlow: a task is going on.', cancel);
      if (choice === cancel) await this.cancel();
      return;
    }
    const target = editorTarget();
    const task = await vscode.window.showInputBox({
      title: 'ThinkFlow',
      prompt: target.selection ? 'What is to be done with the selection?' : 'What is to be done?',
      ignoreFocusOut: true,
    });
    if (task?.trim()) await this.start(task, target);
  }

  /** Runs a task to its end. Failures are shown, and are no errors. */
  async start(task: string, target = editorTarget()): Promise<RunResult> {
    if (this.run) throw new Error('a task is going on already');
    const id = randomUUID();
    let lost!: (reason: string) => void;
    const gone = new Promise<RunResult>((resolve) => {
      lost = (reason) => resolve({ ...failedResult(id, reason), applied: run.applied, failed: run.failed });
    });
    const run: Run = { id, applied: 0, failed: 0, doing: 'starting', lost };
    this.run = run;
    this.setRunning(true);
    this.answer.task(task);
    this.answer.show();
    let result: RunResult;
    try {
      const client = await this.server.get();
      const params: RunParams = { task, runId: id, session: this.session, ...target };
      result = await Promise.race([client.sendRequest(runRequest, params), gone]);
    } catch (err) {
      const reason = connectionLost(err) ? ended : err instanceof Error ? err.message : String(err);
      result = { ...failedResult(id, reason), applied: run.applied, failed: run.failed };
    }
    this.run = undefined;
    this.session = result.session || this.session;
    this.setRunning(false);
    if (result.reason) this.answer.line(result.reason);
    this.answer.line('— ' + summary(result));
    this.complain(result);
    return result;
  }

  async cancel() {
    const run = this.run;
    if (!run) {
      void vscode.window.showInformationMessage('ThinkFlow: nothing to cancel, no task is going on.');
      return;
    }
    run.doing = 'cancelling';
    this.showStatus();
    try {
      // The end comes as the answer to thinkflow/run.
      const client = await this.server.get();
      const { cancelled } = await client.sendRequest(cancelRequest, { runId: run.id });
      if (!cancelled && this.run === run) run.lost('the server did not know of this task any more');
    } catch (err) {
      void vscode.window.showErrorMessage(`ThinkFlow: not cancelled: ${err instanceof Error ? err.message : err}`);
    }
  }

  async steer() {
    const run = this.run;
    if (!run) return;
    const text = await vscode.window.showInputBox({ title: 'Tell the running task', ignoreFocusOut: true });
    if (!text?.trim()) return;
    const client = await this.server.get();
    await client.sendRequest(steerRequest, { runId: run.id, text });
    this.answer.line('> ' + text);
  }

  newConversation() {
    this.session = undefined;
    void vscode.window.setStatusBarMessage('ThinkFlow: the next task begins a new conversation', 4000);
  }

  /** What is going on, in a few words; empty when nothing is. */
  get doing(): string {
    const run = this.run;
    if (!run) return '';
    const failed = run.failed ? ` ✗${run.failed}` : '';
    return `${run.applied ? `✓${run.applied} ` : ''}${failed}${run.doing}`.trim();
  }

  private event(event: RunEvent) {
    const run = this.run;
    if (!run || event.run !== run.id) return;
    switch (event.type) {
      case 'run.started':
        run.doing = `waiting for ${event.model || 'the model'}`;
        break;
      case 'text.delta':
        run.doing = 'answering';
        this.answer.text(event.text ?? '');
        break;
      case 'reasoning.delta':
      case 'thought':
        run.doing = 'thinking';
        this.answer.reason(event.text ?? '');
        break;
      case 'command.started':
        this.answer.commandStarted();
        if (event.command) run.doing = `${event.command.name.replace(/^tf-/, '')} ${event.command.path ?? ''}`;
        break;
      case 'command.completed':
      case 'command.skipped':
        if (!event.command) break;
        event.command.status ??= event.type === 'command.skipped' ? 'skipped' : undefined;
        if (event.command.status === 'applied') run.applied++;
        if (event.command.status === 'failed') run.failed++;
        run.doing = 'answering';
        this.answer.command(event.command, event.reason);
        break;
      case 'tool.started':
        run.doing = event.tool?.name ?? '';
        break;
      case 'tool.completed':
        if (event.tool) this.answer.tool(event.tool);
        break;
      case 'approval.requested':
        run.doing = 'waiting for your answer';
        if (event.approval) {
          const { action, target, rule } = event.approval;
          this.answer.line(`? asks to ${action} ${target} (${rule})`);
        }
        break;
      case 'turn.restarted':
        this.answer.line(`↻ asking again: ${event.reason ?? ''}`);
        break;
      case 'run.suspended':
        this.answer.line(`suspended: ${event.reason ?? ''}`);
        break;
    }
    this.showStatus();
  }

  private setRunning(running: boolean) {
    void vscode.commands.executeCommand('setContext', 'thinkflow.running', running);
    this.showStatus();
  }

  private showStatus() {
    this.status.text = this.run ? `$(sync~spin) ThinkFlow: ${this.doing}` : '$(sparkle) ThinkFlow';
    this.status.tooltip = this.run ? 'Show the answer' : 'ThinkFlow: show the last answer';
  }

  private complain(result: RunResult) {
    if (result.state === 'done' || result.state === 'cancelled') return;
    const text = `ThinkFlow: the task ${result.state === 'failed' ? 'failed' : 'was ' + result.state}: ${result.reason ?? 'no reason given'}`;
    const log = 'Show Log';
    const shown =
      result.state === 'failed'
        ? vscode.window.showErrorMessage(text, log)
        : vscode.window.showWarningMessage(text, log);
    void shown.then((choice) => choice === log && this.server.showLog());
  }
}

const ended = 'the server ended; what was applied stays and is in its ledger. The next task starts it again';

/** Whether a request failed because the connection went away, not because of an answer. */
function connectionLost(err: unknown): boolean {
  return (
    err instanceof ConnectionError ||
    (err instanceof ResponseError &&
      (err.code === ErrorCodes.PendingResponseRejected || err.code === ErrorCodes.ConnectionInactive))
  );
}

function failedResult(runId: string, reason: string): RunResult {
  return { runId, session: '', state: 'failed', reason, applied: 0, failed: 0, skipped: 0 };
}

/** What the active editor gives along with a task: the selection, else the file. */
function editorTarget(): Pick<RunParams, 'selection' | 'files'> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.uri.scheme !== 'file') return {};
  const uri = editor.document.uri.toString();
  const { start, end } = editor.selection;
  if (!editor.selection.isEmpty) {
    return {
      selection: {
        uri,
        range: {
          start: { line: start.line, character: start.character },
          end: { line: end.line, character: end.character },
        },
      },
    };
  }
  return sendsCurrentFile() ? { files: [uri] } : {};
}
