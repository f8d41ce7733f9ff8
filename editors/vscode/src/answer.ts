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
  // What follows the first clause is advice for the model.
  if (why && c.status !== 'applied') parts.push(' ' + firstLine(why).split('; ', 1)[0]);
  for (const note of c.notes ?? []) parts.push(` (${note})`);
  return parts.join(' ');
}

function toolLine(t: ToolEvent): string {
  const what = t.summary ?? t.arguments ?? '';
  return [t.status === 'ok' ? '✓' : '✗', t.name, what.slice(0, 100), t.error ?? ''].join(' ').trimEnd();
}

/** One entry of the plan. */
export function planLine(item: { title: string; status: string }): string {
  const mark = item.status === 'done' ? 'x' : item.status === 'in_progress' ? '~' : ' ';
  return `- [${mark}] ${item.title}`;
}

/** A place in the answer that is kept for a command until it is known what became of it. */
interface Slot {
  key: string;
  write?: () => void;
}

/**
 * The answer: an output channel that grows while the model writes. A command runs
 * while the text behind it already comes; that text waits for the command's line,
 * so that all stands in the order in which the model wrote it.
 */
export class Answer implements vscode.Disposable {
  private readonly channel = vscode.window.createOutputChannel('ThinkFlow', 'markdown');
  /** What waits: slots, and what came behind the first of them. */
  private readonly waiting: (Slot | (() => void))[] = [];
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
    this.settle();
    this.ensureBreaks(2);
    this.writeLine(`# ${task.replace(/\s*\n\s*/g, ' ')}`);
  }

  text(text: string) {
    this.put(() => {
      if (this.reasoning || this.interrupted) {
        text = text.replace(/^(\s*\n)+/, '');
        if (text === '') return;
        this.ensureBreaks(2);
        this.reasoning = this.interrupted = false;
      }
      this.write(text);
    });
  }

  /** Reasoning is quoted, so that it can be told from the answer. */
  reason(text: string) {
    this.put(() => {
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
    });
  }

  /** A command stands here in the answer; its line comes when it has ended. */
  commandStarted(key: string) {
    this.waiting.push({ key });
  }

  command(key: string, c: CommandEvent, reason?: string) {
    const write = () => this.writeLine(commandLine(c, reason));
    const slot = this.waiting.find((w) => typeof w === 'object' && w.key === key && !w.write) as Slot | undefined;
    if (!slot) return this.put(write);
    slot.write = write;
    this.flush();
  }

  tool(t: ToolEvent) {
    this.line(toolLine(t));
  }

  line(text: string) {
    this.put(() => this.writeLine(text));
  }

  /** A line about what everything behind it waits for: it comes at once. */
  urgent(text: string) {
    this.writeLine(text);
  }

  /** The model begins anew: its text is a paragraph of its own. */
  turn() {
    this.settle();
    if (this.breaks < 2) this.interrupted = true;
  }

  /** Gives up the places of commands of which nothing more will be heard. */
  settle() {
    for (const w of this.waiting) if (typeof w === 'object') w.write ??= () => {};
    this.flush();
  }

  private put(write: () => void) {
    if (this.waiting.length === 0) write();
    else this.waiting.push(write);
  }

  private flush() {
    for (let head = this.waiting[0]; head; head = this.waiting[0]) {
      const write = typeof head === 'function' ? head : head.write;
      if (!write) return;
      this.waiting.shift();
      write();
    }
  }

  private writeLine(text: string) {
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
