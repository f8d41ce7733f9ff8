import * as vscode from 'vscode';

const section = 'thinkflow';

/** The server's program. */
export function serverPath(): string {
  return vscode.workspace.getConfiguration(section).get<string>('path')?.trim() || 'thinkflow';
}

export function sendsCurrentFile(): boolean {
  return vscode.workspace.getConfiguration(section).get<boolean>('sendCurrentFile', true);
}

/**
 * The settings for the server, with the keys of its configuration file. What is
 * empty is left out, so that its environment and its own file count.
 */
export function serverSettings(): Record<string, unknown> {
  const config = vscode.workspace.getConfiguration(section);
  const settings: Record<string, unknown> = { ...config.get<Record<string, unknown>>('settings') };
  const named: [string, string][] = [
    ['model', 'model'],
    ['baseUrl', 'base_url'],
    ['keyFile', 'key_file'],
  ];
  for (const [ours, theirs] of named) {
    const value = config.get<string>(ours)?.trim();
    if (value) {
      settings[theirs] = value;
    }
  }
  return settings;
}
