import * as vscode from 'vscode';
import type { ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, Range, TextEdit } from 'vscode-languageclient/node';
import { TextDocumentEdit } from 'vscode-languageclient/node';

interface Change {
  range: Range;
  text: string;
}

interface Step {
  version: number;
  changes: readonly Change[];
}

/** How many events are kept of each document. */
const kept = 200;

/** Bounds the attempts for one edit, and the wait for a change that made it fail. */
const maxAttempts = 50;
const changeWait = 100;

/**
 * Moves a range along one change; undefined when both are in the same lines. A
 * change that ends with a line break is in none of the line where it ends.
 */
export function move(range: Range, change: Change): Range | undefined {
  const { start: from, end: to } = change.range;
  const whole =
    to.character === 0 && (change.text.endsWith('\n') || (change.text === '' && from.character === 0));
  if (to.line < range.start.line || (whole && to.line === range.start.line)) {
    const by = change.text.split('\n').length - 1 - (to.line - from.line);
    return {
      start: { line: range.start.line + by, character: range.start.character },
      end: { line: range.end.line + by, character: range.end.character },
    };
  }
  if (from.line > range.end.line || (range.end.character === 0 && from.line === range.end.line)) {
    return range;
  }
  return undefined;
}

/**
 * Applies the server's edits. VS Code refuses an edit whenever the user has typed
 * since the server made it, which somebody who types all the time always has: here
 * it is moved along what was typed in other lines, and tried again.
 */
export class Edits implements vscode.Disposable {
  private readonly history = new Map<string, Step[]>();
  private readonly subscriptions: vscode.Disposable[] = [
    vscode.workspace.onDidChangeTextDocument((e) => {
      if (e.document.uri.scheme !== 'file' || e.contentChanges.length === 0) return;
      const key = e.document.uri.toString();
      const steps = this.history.get(key) ?? [];
      steps.push({ version: e.document.version, changes: e.contentChanges });
      if (steps.length > kept) steps.shift();
      this.history.set(key, steps);
    }),
    vscode.workspace.onDidCloseTextDocument((d) => this.history.delete(d.uri.toString())),
  ];

  dispose() {
    for (const s of this.subscriptions) s.dispose();
  }

  /** Middleware for workspace/applyEdit. What is no edit of one open document goes on to next. */
  async apply(
    params: ApplyWorkspaceEditParams,
    next: (params: ApplyWorkspaceEditParams) => Promise<ApplyWorkspaceEditResult>,
  ): Promise<ApplyWorkspaceEditResult> {
    const changes = params.edit.documentChanges;
    const change = changes?.length === 1 && TextDocumentEdit.is(changes[0]) ? changes[0] : undefined;
    const version = change?.textDocument.version;
    if (!change || typeof version !== 'number' || !change.edits.every(isPlain)) return next(params);
    const uri = vscode.Uri.parse(change.textDocument.uri, true);
    const key = uri.toString();
    let unexplained = 0;
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const document = vscode.workspace.textDocuments.find((d) => d.uri.toString() === key);
      if (!document || document.isClosed) return refused('the document is not open');
      const edits = this.current(key, version, document.version, change.edits as TextEdit[]);
      if (!edits) return refused(`stale: the document is at version ${document.version}, the edit is for ${version}`);
      const edit = new vscode.WorkspaceEdit();
      edit.set(
        uri,
        edits.map((e) => new vscode.TextEdit(toRange(e.range), e.newText)),
      );
      const before = document.version;
      if (await vscode.workspace.applyEdit(edit)) return { applied: true };
      // The change that was in the way may not have been reported yet.
      if (document.version === before && !(await this.changed(key)) && ++unexplained === 2) {
        return refused('VS Code refuses to change the document; it may be read-only');
      }
    }
    return refused(`stale: the document keeps changing, ${maxAttempts} attempts`);
  }

  /** The edits for the current version, or undefined when that cannot be told. */
  private current(key: string, version: number, now: number, edits: TextEdit[]): TextEdit[] | undefined {
    if (version === now) return edits;
    const steps = (this.history.get(key) ?? []).filter((s) => s.version > version);
    if (version > now || steps.length !== now - version) return undefined;
    const moved: TextEdit[] = [];
    for (const edit of edits) {
      let range: Range | undefined = edit.range;
      for (const step of steps) {
        for (const change of step.changes) range = range && move(range, change);
      }
      if (!range) return undefined;
      moved.push({ range, newText: edit.newText });
    }
    return moved;
  }

  private changed(key: string): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => end(false), changeWait);
      const subscription = vscode.workspace.onDidChangeTextDocument((e) => {
        if (e.document.uri.toString() === key) end(true);
      });
      const end = (value: boolean) => {
        clearTimeout(timer);
        subscription.dispose();
        resolve(value);
      };
    });
  }
}

function isPlain(edit: object): edit is TextEdit {
  return 'newText' in edit && !('annotationId' in edit);
}

function refused(failureReason: string): ApplyWorkspaceEditResult {
  return { applied: false, failureReason };
}

function toRange(r: Range): vscode.Range {
  return new vscode.Range(r.start.line, r.start.character, r.end.line, r.end.character);
}
