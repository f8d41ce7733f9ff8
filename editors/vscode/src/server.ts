import * as vscode from 'vscode';
import type { ApplyWorkspaceEditResult } from 'vscode-languageclient/node';
import { CloseAction, ErrorAction, LanguageClient, RevealOutputChannelOn, State } from 'vscode-languageclient/node';
import { diagnosticsOf } from './diagnostics';
import { Edits } from './edits';
import {
  diagnosticsRequest,
  eventNotification,
  modelsRequest,
  previewNotification,
  protocolVersion,
  RunEvent,
} from './protocol';
import { serverPath, serverSettings } from './settings';

const keyName = 'thinkflow.key';

const noToken = new vscode.CancellationTokenSource().token;

/** The server: started once, and again after it ended when the next task needs it. */
export class Server implements vscode.Disposable {
  private client?: LanguageClient;
  private starting?: Promise<LanguageClient>;
  private readonly edits = new Edits();
  /** Settings that were switched in this window: a server that is started anew begins with them. */
  private readonly switched: Record<string, unknown> = {};
  private readonly log = vscode.window.createOutputChannel('ThinkFlow Server', { log: true });
  private readonly events = new vscode.EventEmitter<RunEvent>();
  private readonly starts = new vscode.EventEmitter<LanguageClient>();
  private readonly ends = new vscode.EventEmitter<void>();

  /** What the server says about runs, in order. */
  readonly onEvent = this.events.event;
  readonly onStart = this.starts.event;
  /** The server has ended, expected or not. */
  readonly onEnd = this.ends.event;

  constructor(private readonly context: vscode.ExtensionContext) {
    context.subscriptions.push(
      vscode.workspace.onDidChangeConfiguration((e) => {
        if (e.affectsConfiguration('thinkflow.path')) {
          void this.stop();
        } else if (e.affectsConfiguration('thinkflow')) {
          // What is set last counts, also for conversations that were switched.
          const model = serverSettings().model as string | undefined;
          if (e.affectsConfiguration('thinkflow.model') && model) {
            delete this.switched.model;
            void this.client?.sendRequest(modelsRequest, { model }).catch(() => {});
          }
          void this.client?.sendNotification('workspace/didChangeConfiguration', {
            settings: { thinkflow: this.settings() },
          });
        }
      }),
    );
  }

  remember(key: string, value: unknown) {
    this.switched[key] = value;
  }

  private settings(): Record<string, unknown> {
    return { ...serverSettings(), ...this.switched };
  }

  /** The running client, started if need be. Errors say what to do. */
  async get(): Promise<LanguageClient> {
    if (!vscode.workspace.isTrusted) {
      throw new Error('this workspace is not trusted; ThinkFlow changes files, and runs the commands that you allow');
    }
    if (this.client?.state === State.Running) return this.client;
    this.starting ??= this.start().finally(() => (this.starting = undefined));
    return this.starting;
  }

  private async start(): Promise<LanguageClient> {
    const command = serverPath();
    const env: NodeJS.ProcessEnv = { ...process.env };
    const key = await this.context.secrets.get(keyName);
    if (key) env.OPENAI_API_KEY = key;
    const client = new LanguageClient(
      'thinkflow',
      'ThinkFlow',
      { command, args: ['lsp'], options: { env } },
      {
        // Every file: what is typed there and not saved is unknown to the server otherwise.
        documentSelector: [{ scheme: 'file' }],
        initializationOptions: {
          protocol: protocolVersion,
          approvals: true,
          diagnostics: true,
          settings: this.settings(),
        },
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationFailedHandler: () => false,
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          // No loop of restarts: the next task starts it.
          closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
        },
        middleware: {
          workspace: {
            handleApplyEdit: (params, next) =>
              this.edits.apply(params, async (p) => (await next(p, noToken)) as ApplyWorkspaceEditResult),
            configuration: (params) => params.items.map(() => this.settings()),
          },
        },
      },
    );
    // What is going on stands in our own status bar item; the server need not show it too.
    client.registerFeature({
      fillClientCapabilities: (capabilities) => {
        capabilities.window = { ...capabilities.window, workDoneProgress: false };
      },
      initialize: () => {},
      getState: () => ({ kind: 'static' }),
      clear: () => {},
    });
    client.onNotification(previewNotification, () => {}); // shown by nobody yet
    client.onNotification(eventNotification, (event) => this.events.fire(event));
    client.onRequest(diagnosticsRequest, (params) => diagnosticsOf(client, params?.uris));
    client.onDidChangeState((e) => {
      if (e.newState === State.Stopped && this.client === client) {
        this.client = undefined;
        this.ends.fire();
      }
    });
    try {
      await client.start();
    } catch (err) {
      void client.dispose().catch(() => {});
      const text = err instanceof Error ? err.message : String(err);
      throw new Error(
        /ENOENT|EACCES|not found|couldn't create connection/i.test(text)
          ? `"${command}" could not be started: install thinkflow, or set thinkflow.path to it (${text})`
          : `the server could not be started: ${text}`,
      );
    }
    this.client = client;
    this.starts.fire(client);
    return client;
  }

  async stop() {
    const client = this.client;
    this.client = undefined;
    if (client) {
      this.ends.fire();
      await client.dispose().catch(() => {});
    }
  }

  async setKey() {
    const key = await vscode.window.showInputBox({
      title: 'API key for ThinkFlow',
      prompt: 'Kept in the secret storage of VS Code; empty removes it. The server starts anew.',
      password: true,
      ignoreFocusOut: true,
    });
    if (key === undefined) return;
    if (key === '') await this.context.secrets.delete(keyName);
    else await this.context.secrets.store(keyName, key);
    await this.stop();
  }

  showLog() {
    this.log.show(true);
  }

  dispose() {
    void this.stop();
    this.edits.dispose();
    this.log.dispose();
    this.events.dispose();
    this.starts.dispose();
    this.ends.dispose();
  }
}
