import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import * as vscode from 'vscode';
import type { Tasks } from './tasks';

interface Request {
  id: number;
  op: string;
  path?: string;
  text?: string;
  line?: number;
  character?: number;
  args?: unknown[];
}

/**
 * A socket through which tests drive the extension: a JSON object a line in,
 * {id, result} or {id, error} a line out. Not part of the product's build.
 */
export function openTestSocket(path: string, tasks: Tasks, answer: () => string): vscode.Disposable {
  const ops: Record<string, (r: Request) => Promise<unknown>> = {
    open: async (r) => {
      const document = await vscode.workspace.openTextDocument(r.path!);
      await vscode.window.showTextDocument(document);
      return null;
    },
    /** Types where the cursor is, as the keyboard does. */
    type: async (r) => vscode.commands.executeCommand('type', { text: r.text }),
    cursor: async (r) => {
      const at = new vscode.Position(r.line ?? 0, r.character ?? 0);
      vscode.window.activeTextEditor!.selection = new vscode.Selection(at, at);
      return null;
    },
    command: async (r) => (await vscode.commands.executeCommand(r.text!, ...(r.args ?? []))) ?? null,
    /**
     * Another extension that finds fault with words: each word that the expression
     * matches in an open document is an error, soon after every change.
     */
    faults: async (r) => {
      const found = vscode.languages.createDiagnosticCollection('faults');
      const look = (d: vscode.TextDocument) => {
        const faults = [...d.getText().matchAll(new RegExp(r.text!, 'g'))].map((m) => {
          const at = new vscode.Range(d.positionAt(m.index), d.positionAt(m.index + m[0].length));
          return new vscode.Diagnostic(at, `${m[0]} is no word`, vscode.DiagnosticSeverity.Error);
        });
        found.set(d.uri, faults);
      };
      vscode.workspace.onDidChangeTextDocument((e) => void setTimeout(() => look(e.document), 150));
      vscode.workspace.textDocuments.forEach(look);
      return null;
    },
    diagnostics: async (r) => vscode.languages.getDiagnostics(vscode.Uri.file(r.path!)).map((d) => d.message),
    run: async (r) => tasks.start(r.text!),
    status: async () => tasks.doing,
    answer: async () => answer(),
    documents: async () =>
      vscode.workspace.textDocuments
        .filter((d) => d.uri.scheme === 'file')
        .map((d) => ({ path: d.uri.fsPath, text: d.getText(), dirty: d.isDirty, version: d.version })),
  };
  const server = createServer((connection) => {
    connection.on('error', () => {});
    createInterface({ input: connection }).on('line', (line) => {
      const request = JSON.parse(line) as Request;
      const reply = (body: object) => connection.write(JSON.stringify({ id: request.id, ...body }) + '\n');
      const op = ops[request.op];
      if (!op) return reply({ error: `unknown op ${request.op}` });
      op(request).then(
        (result) => reply({ result: result ?? null }),
        (err: unknown) => reply({ error: err instanceof Error ? (err.stack ?? err.message) : String(err) }),
      );
      return undefined;
    });
  });
  server.listen(path);
  return { dispose: () => server.close() };
}
