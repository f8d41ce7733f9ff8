import * as vscode from 'vscode';
import type { CommandEvent, RunResult, ToolEvent } from './protocol';

const marks: Record<string, string> = {
  applied: '✓',
  staged: '✓',
  failed: '✗',
  rejected: '✗',
  not_applied: '✗',
  uncertain: '?',
  rolled_back: '↶',
  undone: '↶',
  skipped: '–',
  cancelled: '–',
};

function firstLine(text: string): string {
  return text.split('\n', 1)[0];
}

/** How a run went, in one line. */
export function summary(r: RunResult): string {
  const parts: string[] = [r.state];
  const count = (n: number, word: string) => `${n} ${word}${n === 1 ? '' : 's'}`;
  if (r.applied) parts.push(count(r.applied, 'command'));
  if (r.files?.length) parts.push(count(r.files.length, 'file'));
  if (r.failed) parts.push(`${r.failed} failed`);
  if (r.skipped) parts.push(`${r.skipped} skipped`);
  if (r.usage?.requests) {
    parts.push(count(r.usage.requests, 'request'));
    parts.push(`${r.usage.estimated ? '≈' : ''}${r.usage.input_tokens} → ${r.usage.output_tokens} tokens`);
  }
  return parts.join(' · ');
}

/** One line that says what became of a command. */
export function commandLine(c: CommandEvent, reason?: string): string {
  const parts = [marks[c.status ?? ''] ?? '…', c.name.replace(/^tf-/, ''), c.path ?? firstLine(c.cmd ?? '')];
  if (c.dest) parts.push('→', c.dest);
  if (c.added || c.removed) parts.push(` +${c.added ?? 0} −${c.removed ?? 0}`);
  if (c.exit_code !== undefined) parts.push(` exit ${c.exit_code}`);
  const why = reason ?? c.error;
  if (why && c.status !== 'applied') parts.push(' ' + firstLine(why));
  for (const note of c.notes ?? []) parts.push(` (${note})`);
  return parts.join(' ');
}

function toolLine(t: ToolEvent): string {
  const what = t.summary ?? t.arguments ?? '';
  return [t.status === 'ok' ? '✓' : '✗', t.name, what.slice(0, 100), t.error ?? ''].join(' ').trimEnd();
}

/** The answer: an output channel that grows while the model writes. */
export class Answer implements vscode.Disposable {
  private readonly channel = vscode.window.createOutputChannel('ThinkFlow', 'markdown');
  /** Line breaks at the end of what was written; two are a blank line. */
  private breaks = 2;
  /** Something of our own came in between: the model's line breaks around it are dropped. */
  private interrupted = false;
  private reasoning = false;

  /** onText sees all that is written; for tests. */
  constructor(private readonly onText?: (text: string) => void) {}

  dispose() {
    this.channel.dispose();
  }

  show() {
    this.channel.show(true);
  }

  task(task: string) {
    this.ensureBreaks(2);
    this.line(`# ${task.replace(/\s*\n\s*/g, ' ')}`);
  }

  text(text: string) {
    if (this.reasoning || this.interrupted) {
      text = text.replace(/^(\s*\n)+/, '');
      if (text === '') return;
      this.ensureBreaks(2);
      this.reasoning = this.interrupted = false;
    }
    this.write(text);
  }

  /** Reasoning is quoted, so that it can be told from the answer. */
  reason(text: string) {
    if (!this.reasoning) {
      text = text.trimStart();
      if (text === '') return;
      this.ensureBreaks(2);
      this.reasoning = true;
    }
    for (const [i, line] of text.split('\n').entries()) {
      if (i > 0) this.write('\n');
      // The mark comes with the text of its line, not before.
      if (line !== '') this.write(this.breaks > 0 ? '> ' + line : line);
    }
  }

  /** A command stood here in the answer; its line comes when it has ended. */
  commandStarted() {
    this.interrupted = true;
  }

  command(c: CommandEvent, reason?: string) {
    this.line(commandLine(c, reason));
  }

  tool(t: ToolEvent) {
    this.line(toolLine(t));
  }

  line(text: string) {
    this.reasoning = false;
    this.ensureBreaks(1);
    this.write(text + '\n');
    this.interrupted = true;
  }

  private ensureBreaks(n: number) {
    if (this.breaks < n) this.write('\n'.repeat(n - this.breaks));
  }

  private write(text: string) {
    if (text === '') return;
    this.channel.append(text);
    const end = /\n*$/.exec(text)![0].length;
    this.breaks = end === text.length ? this.breaks + end : end;
    this.onText?.(text);
  }
}
