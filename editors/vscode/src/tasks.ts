import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import { ConnectionError, ErrorCodes, ResponseError } from 'vscode-languageclient/node';
import { Answer, planLine, summary } from './answer';
import { Approvals, wanted } from './approval';
import { Approval, cancelRequest, RunEvent, RunParams, runRequest, RunResult, steerRequest } from './protocol';
import type { Server } from './server';
import { sendsCurrentFile } from './settings';

type Target = Pick<RunParams, 'selection' | 'files'>;

interface Run {
  id: string;
  applied: number;
  failed: number;
  /** How many questions wait for the person. */
  asking: number;
  doing: string;
  /** Something else than this extension's command started it: its end comes as an event. */
  foreign: boolean;
  /** Ends the wait for an answer that can no longer come. */
  lost: (reason: string) => void;
}

/** A task that waits for the one before it. */
interface Queued {
  task: string;
  target: Target;
  over: (result: RunResult) => void;
}

/**
 * Tasks: from the command to the end of the answer. One at a time: a run is over when
 * the server has answered thinkflow/run, not when the model has said its last word;
 * tasks given before that wait in a queue.
 */
export class Tasks implements vscode.Disposable {
  private run?: Run;
  private queue: Queued[] = [];
  private session?: string;
  private mode = 'edit';
  private readonly approvals: Approvals;
  private readonly status = vscode.window.createStatusBarItem('thinkflow.status', vscode.StatusBarAlignment.Left);

  constructor(
    private readonly server: Server,
    private readonly answer: Answer,
  ) {
    this.approvals = new Approvals(server, answer);
    this.status.name = 'ThinkFlow';
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

  /** Shows the mode, where it is not the usual one. */
  setMode(mode: string) {
    this.mode = mode;
    this.showStatus();
  }

  /** Asks for a task, with what is selected, and runs it. */
  async ask() {
    const target = editorTarget();
    const task = await vscode.window.showInputBox({
      title: this.run ? `ThinkFlow: ${this.doing}` : 'ThinkFlow',
      prompt: this.run
        ? 'A task is going on. What is to be done besides, or what is to be said to it?'
        : target.selection
          ? 'What is to be done with the selection?'
          : 'What is to be done?',
      ignoreFocusOut: true,
    });
    if (!task?.trim()) return;
    if (this.run) await this.besides(task, target);
    else await this.start(task, target);
  }

  /** What becomes of a text that was written while a task is going on. */
  private async besides(task: string, target: Target) {
    const next = { label: '$(list-ordered) Do It Next', detail: 'A task of its own, when the present one is over' };
    const tell = { label: '$(comment) Tell the Running Task', detail: 'The model sees it with its next step' };
    const instead = { label: '$(debug-stop) Cancel and Do This', detail: 'What has been applied stays' };
    const choice = await vscode.window.showQuickPick([next, tell, instead], {
      title: 'ThinkFlow: a task is going on',
      placeHolder: task,
      ignoreFocusOut: true,
    });
    if (choice === tell) {
      if (await this.tell(task)) return;
      void vscode.window.showInformationMessage('ThinkFlow: the task was over already; yours is a task of its own.');
    } else if (choice === instead && this.run) {
      this.queue.unshift({ task, target, over: () => {} });
      return this.cancel();
    } else if (choice !== next) {
      return;
    }
    await this.start(task, target);
  }

  /**
   * Runs a task to its end, after the one that is going on. Failures are shown, and are
   * no errors.
   */
  start(task: string, target = editorTarget()): Promise<RunResult> {
    if (!this.run) return this.begin(task, target);
    const over = new Promise<RunResult>((resolve) => this.queue.push({ task, target, over: resolve }));
    this.showStatus();
    return over;
  }

  private async begin(task: string, target: Target): Promise<RunResult> {
    const id = randomUUID();
    let lost!: (reason: string) => void;
    const gone = new Promise<RunResult>((resolve) => {
      lost = (reason) => resolve({ ...failedResult(id, reason), applied: run.applied, failed: run.failed });
    });
    const run: Run = { id, applied: 0, failed: 0, asking: 0, doing: 'starting', foreign: false, lost };
    this.opened(run, task);
    let result: RunResult;
    try {
      const client = await this.server.get();
      const params: RunParams = { task, runId: id, session: this.session, ...target };
      result = await Promise.race([client.sendRequest(runRequest, params), gone]);
    } catch (err) {
      const reason = connectionLost(err) ? ended : err instanceof Error ? err.message : String(err);
      result = { ...failedResult(id, reason), applied: run.applied, failed: run.failed };
    }
    this.closed(run, result);
    return result;
  }

  private opened(run: Run, task: string) {
    this.run = run;
    this.answer.task(task);
    this.answer.show();
    this.setRunning(true);
  }

  /** The one place where a run is over: answer, status bar and queue see it together. */
  private closed(run: Run, result: RunResult) {
    if (this.run !== run) return;
    this.run = undefined;
    this.session = result.session || this.session;
    this.answer.settle();
    if (result.reason) this.answer.line(result.reason);
    this.answer.line('— ' + summary(result));
    this.setRunning(false);
    this.complain(result);
    const next = this.queue.shift();
    if (next) void this.begin(next.task, next.target).then(next.over);
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
    if (!this.run) return;
    const text = await vscode.window.showInputBox({ title: 'Tell the running task', ignoreFocusOut: true });
    if (!text?.trim() || (await this.tell(text))) return;
    const run = 'Run It as a Task';
    const choice = await vscode.window.showWarningMessage('ThinkFlow: the task was over before it could be told.', run);
    if (choice === run) await this.start(text);
  }

  /** Says something to the running task; false when it is over already. */
  private async tell(text: string): Promise<boolean> {
    const run = this.run;
    if (!run) return false;
    try {
      const client = await this.server.get();
      await client.sendRequest(steerRequest, { runId: run.id, text });
    } catch {
      return false;
    }
    this.answer.line('> ' + text);
    return true;
  }

  newConversation() {
    this.session = undefined;
    void vscode.window.setStatusBarMessage('ThinkFlow: the next task begins a new conversation', 4000);
  }

  /** What is going on, in a few words; empty when nothing is. */
  get doing(): string {
    const run = this.run;
    if (!run) return '';
    const parts: string[] = [];
    if (run.applied) parts.push(`✓${run.applied}`);
    if (run.failed) parts.push(`✗${run.failed}`);
    parts.push(run.doing);
    if (this.queue.length) parts.push(`(${this.queue.length} more waiting)`);
    return parts.join(' ');
  }

  private event(event: RunEvent) {
    if (!this.run && event.type === 'run.started') this.adoptRun(event);
    const run = this.run;
    if (!run || event.run !== run.id) return;
    const key = event.command && `${event.turn}/${event.command.channel}/${event.command.id}`;
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
        if (!event.command || !key) break;
        this.answer.commandStarted(key);
        run.doing = `${event.command.name.replace(/^tf-/, '')} ${event.command.path ?? ''}`.trim();
        break;
      case 'command.completed':
      case 'command.skipped':
        if (!event.command || !key) break;
        event.command.status ??= event.type === 'command.skipped' ? 'skipped' : undefined;
        if (event.command.status === 'applied') run.applied++;
        if (event.command.status === 'failed') run.failed++;
        run.doing = 'answering';
        this.answer.command(key, event.command, event.reason);
        break;
      case 'tool.started':
        run.doing = event.tool?.name === 'verify' ? 'checking the changes' : (event.tool?.name ?? '');
        break;
      case 'tool.completed':
        if (event.tool) this.answer.tool(event.tool);
        break;
      case 'plan':
        for (const item of event.plan ?? []) this.answer.line(planLine(item));
        break;
      case 'approval.requested':
        if (event.approval) this.approve(run, event.approval);
        break;
      case 'turn.started':
        this.answer.turn();
        run.doing = 'waiting for the model';
        break;
      case 'turn.restarted':
        this.answer.settle();
        this.answer.line(`↻ asking again: ${event.reason ?? ''}`);
        break;
      case 'compaction':
        this.answer.line(`history shortened: ${event.reason ?? ''}`);
        break;
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
      case 'run.suspended':
        // The end of a run of ours is the answer to its request: only then is the
        // server ready for the next task of the conversation.
        if (run.foreign && event.result) this.closed(run, event.result);
        break;
    }
    this.showStatus();
  }

  /** A run that something else started: a code action, or an answer to a suspended run. */
  private adoptRun(event: RunEvent) {
    const run: Run = {
      id: event.run,
      applied: 0,
      failed: 0,
      asking: 0,
      doing: '',
      foreign: true,
      lost: (reason) => this.closed(run, failedResult(event.run, reason)),
    };
    this.opened(run, (event.task ?? '') + (event.reason ? ` (${event.reason})` : ''));
  }

  private approve(run: Run, approval: Approval) {
    run.asking++;
    run.doing = `asks to ${wanted(approval)}`;
    void this.approvals.ask(run.id, approval).finally(() => {
      run.asking--;
      if (!run.asking && run.doing.startsWith('asks to ')) run.doing = 'going on';
      this.showStatus();
    });
  }

  private setRunning(running: boolean) {
    void vscode.commands.executeCommand('setContext', 'thinkflow.running', running);
    this.showStatus();
  }

  private showStatus() {
    const run = this.run;
    const asks = run !== undefined && run.asking > 0;
    const icon = asks ? '$(question)' : run ? '$(sync~spin)' : '$(sparkle)';
    const mode = this.mode === 'edit' ? '' : ` (${this.mode})`;
    this.status.text = `${icon} ThinkFlow${mode}${run ? ': ' + this.doing : ''}`;
    this.status.backgroundColor = asks ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    // A question that was not answered hides among the notifications.
    this.status.command = asks ? 'notifications.showList' : 'thinkflow.showAnswer';
    this.status.tooltip = asks
      ? 'ThinkFlow waits for your answer: show the question'
      : run
        ? 'Show the answer'
        : 'ThinkFlow: show the last answer';
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
function editorTarget(): Target {
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
