import * as vscode from 'vscode';
import type { Answer } from './answer';
import { Approval, approveRequest, Decision } from './protocol';
import type { Server } from './server';

interface Choice {
  decision: Decision;
  title: string;
  detail: string;
  /** What the answer says of it. */
  said: string;
}

const choices: Choice[] = [
  { decision: 'once', title: 'Allow Once', detail: 'This time', said: '✓ allowed once' },
  {
    decision: 'session',
    title: 'Allow for This Session',
    detail: 'And what is like it, as long as the conversation goes on',
    said: '✓ allowed for this session',
  },
  {
    decision: 'once+net',
    title: 'Allow Once, with Network',
    detail: 'The sandbox is opened for this command',
    said: '✓ allowed once, with network',
  },
  {
    decision: 'once+git',
    title: 'Allow Once, with .git',
    detail: 'It may change the repository, for example commit',
    said: '✓ allowed once, with .git',
  },
  { decision: 'once+git+net', title: 'Allow Once, with Network and .git', detail: 'Both', said: '✓ allowed once, with network and .git' },
  { decision: 'no', title: 'Deny', detail: 'It is not done, and the model is told so', said: '✗ denied' },
];

/** A notification has room for so many buttons; there are more behind the last. */
const direct: Decision[] = ['once', 'session', 'no'];
const more = 'More…';

const verbs: Record<string, string> = { bash: 'run', write: 'change', trust: 'use', keep: 'keep what was made by' };

/** What a question is about, in a few words. */
export function wanted(a: Approval): string {
  const target = a.action === 'bash' ? a.target : vscode.workspace.asRelativePath(a.target);
  return `${verbs[a.action] ?? a.action} ${target}`;
}

/** Questions of runs: may it delete, run a command, … */
export class Approvals {
  constructor(
    private readonly server: Server,
    private readonly answer: Answer,
  ) {}

  /** Asks, and hands the answer on. Closing the question is a no. */
  async ask(runId: string, a: Approval): Promise<void> {
    const names = a.choices ?? ['once', 'session', 'no'];
    const offered = choices.filter((c) => names.includes(c.decision));
    this.answer.urgent(`? asks to ${wanted(a)} (${a.rule})`);
    if (a.diff) this.answer.urgent('```diff\n' + a.diff.trimEnd() + '\n```');
    const chosen = await this.choose(a, offered);
    this.answer.urgent(`${chosen.said}: ${wanted(a)}`);
    try {
      const client = await this.server.get();
      await client.sendRequest(approveRequest, { runId, approvalId: a.id, decision: chosen.decision });
    } catch (err) {
      if (chosen.decision === 'no') return; // closed after the task was over
      void vscode.window.showWarningMessage(
        `ThinkFlow: the answer came too late: ${err instanceof Error ? err.message : err}`,
      );
    }
  }

  /** The person's choice; a question that is closed is a no. */
  private async choose(a: Approval, offered: Choice[]): Promise<Choice> {
    const no = choices[choices.length - 1];
    const buttons = offered.filter((c) => direct.includes(c.decision)).map((c) => c.title);
    if (buttons.length < offered.length) buttons.splice(-1, 0, more);
    for (;;) {
      const title = await vscode.window.showWarningMessage(`ThinkFlow wants to ${wanted(a)} (${a.rule})`, ...buttons);
      if (title !== more) return offered.find((c) => c.title === title) ?? no;
      const pick = await vscode.window.showQuickPick(
        offered.map((choice) => ({ label: choice.title, detail: choice.detail, choice })),
        { title: `ThinkFlow wants to ${wanted(a)}`, placeHolder: a.rule, ignoreFocusOut: true },
      );
      if (pick) return pick.choice;
    }
  }
}
