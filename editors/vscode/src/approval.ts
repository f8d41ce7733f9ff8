import * as vscode from 'vscode';
import type { Answer } from './answer';
import { Approval, approveRequest, Decision } from './protocol';
import type { Server } from './server';

/** The buttons, in their order, and what the answer says of each. */
const choices: { decision: Decision; title: string; said: string }[] = [
  { decision: 'once', title: 'Allow Once', said: '✓ allowed once' },
  { decision: 'session', title: 'Allow for This Session', said: '✓ allowed for this session' },
  { decision: 'once+net', title: 'Allow Once, with Network', said: '✓ allowed once, with network' },
  { decision: 'once+git', title: 'Allow Once, with .git', said: '✓ allowed once, with .git' },
  { decision: 'once+git+net', title: 'Allow Once, with Network and .git', said: '✓ allowed once, with network and .git' },
  { decision: 'no', title: 'Deny', said: '✗ denied' },
];

const verbs: Record<string, string> = { bash: 'run', write: 'change', trust: 'use', keep: 'keep what was made by' };

/** What a question is about, in a few words. */
export function wanted(a: Approval): string {
  return `${verbs[a.action] ?? a.action} ${a.target}`;
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
    const title = await vscode.window.showWarningMessage(
      `ThinkFlow wants to ${wanted(a)} (${a.rule})`,
      ...offered.map((c) => c.title),
    );
    const chosen = offered.find((c) => c.title === title) ?? choices[choices.length - 1];
    this.answer.urgent(`${chosen.said}: ${wanted(a)}`);
    try {
      const client = await this.server.get();
      await client.sendRequest(approveRequest, { runId, approvalId: a.id, decision: chosen.decision });
    } catch (err) {
      if (!title) return; // closed after the task was over
      void vscode.window.showWarningMessage(
        `ThinkFlow: the answer came too late: ${err instanceof Error ? err.message : err}`,
      );
    }
  }
}
