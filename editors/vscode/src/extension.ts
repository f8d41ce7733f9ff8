import * as vscode from 'vscode';
import { Answer } from './answer';
import { Server } from './server';
import { Switch } from './switch';
import { Tasks } from './tasks';
import { openTestSocket } from './testsocket';

/** Set by the build: only the build for tests can open the socket. */
declare const TEST_SOCKET: boolean;

export async function activate(context: vscode.ExtensionContext) {
  const written: string[] = [];
  const answer = new Answer(TEST_SOCKET ? (text) => written.push(text) : undefined);
  const server = new Server(context);
  const tasks = new Tasks(server, answer);
  const change = new Switch(server, (mode) => tasks.setMode(mode));
  const command = (name: string, run: (...args: never[]) => unknown) =>
    vscode.commands.registerCommand(`thinkflow.${name}`, async (...args: never[]) => {
      try {
        return await run(...args);
      } catch (err) {
        void vscode.window.showErrorMessage(`ThinkFlow: ${err instanceof Error ? err.message : err}`);
        return undefined;
      }
    });
  context.subscriptions.push(
    tasks,
    server,
    answer,
    command('run', () => tasks.ask()),
    command('cancel', () => tasks.cancel()),
    command('steer', () => tasks.steer()),
    command('newConversation', () => tasks.newConversation()),
    command('showAnswer', () => answer.show()),
    command('mode', (name?: string) => change.mode(name)),
    command('model', () => change.model()),
    command('trust', () => change.trust()),
    command('setKey', () => server.setKey()),
    command('restart', async () => {
      await server.stop();
      await server.get();
    }),
  );
  if (TEST_SOCKET && process.env.THINKFLOW_TEST_SOCKET) {
    context.subscriptions.push(openTestSocket(process.env.THINKFLOW_TEST_SOCKET, tasks, () => written.join('')));
  }
  // Ready before the first task, so that it starts at once; a missing program is
  // no matter until then.
  const start = () => server.get().catch(() => {});
  context.subscriptions.push(vscode.workspace.onDidGrantWorkspaceTrust(start));
  if (vscode.workspace.isTrusted) void start();
}
