// What we use of the thinkflow/* methods: see the server's documentation.
import { NotificationType, RequestType } from 'vscode-languageclient/node';
import type { Diagnostic, Range } from 'vscode-languageclient/node';

/** The version of the methods that this extension speaks. */
export const protocolVersion = 1;

export interface RunParams {
  task: string;
  /** Chosen here, so that the run can be cancelled before anything of it has come. */
  runId: string;
  session?: string;
  selection?: { uri: string; range: Range };
  files?: string[];
}

export type RunState = 'done' | 'failed' | 'stopped' | 'refused' | 'cancelled' | 'suspended';

export interface RunResult {
  runId: string;
  session: string;
  state: RunState;
  reason?: string;
  text?: string;
  applied: number;
  failed: number;
  skipped: number;
  files?: string[];
  /** What the check of the changes said. */
  verify?: string;
  usage?: { requests: number; input_tokens: number; output_tokens: number; estimated?: boolean };
}

export interface CommandEvent {
  id: number;
  channel: string;
  name: string;
  path?: string;
  dest?: string;
  cmd?: string;
  status?: string;
  error?: string;
  notes?: string[];
  added?: number;
  removed?: number;
  exit_code?: number;
}

export interface ToolEvent {
  call_id: string;
  name: string;
  arguments?: string;
  status?: string;
  error?: string;
  summary?: string;
}

export type Decision = 'once' | 'session' | 'no' | 'once+net' | 'once+git' | 'once+git+net';

export interface Approval {
  id: string;
  action: string;
  target: string;
  rule: string;
  diff?: string;
  /** The answers that mean something. */
  choices?: Decision[];
}

export interface RunEvent {
  seq: number;
  run: string;
  turn?: number;
  type: string;
  session?: string;
  task?: string;
  model?: string;
  text?: string;
  reason?: string;
  command?: CommandEvent;
  tool?: ToolEvent;
  plan?: { title: string; status: string }[];
  approval?: Approval;
  result?: RunResult;
}

export const runRequest = new RequestType<RunParams, RunResult, void>('thinkflow/run');
export const cancelRequest = new RequestType<{ runId: string }, { cancelled: boolean }, void>('thinkflow/cancel');
export const steerRequest = new RequestType<{ runId: string; text: string }, object, void>('thinkflow/steer');
export interface ModelChoice {
  id: string;
  current?: boolean;
  /** Tokens. */
  context?: number;
  protocol?: string;
}

/** A file of the workspace that counts only once a person has agreed to its content. */
export interface TrustFile {
  uri: string;
  path: string;
  kind: string;
  state: string;
  hash?: string;
}

// Without session and runId these are for all conversations of this window.
export const modeRequest = new RequestType<{ mode?: string }, { mode: string; modes: string[] }, void>(
  'thinkflow/mode',
);
export const modelsRequest = new RequestType<
  { model?: string; reasoningEffort?: string },
  { model: string; reasoningEffort?: string; models?: ModelChoice[]; problem?: string },
  void
>('thinkflow/models');
export const trustRequest = new RequestType<
  { do?: string; path?: string; hash?: string },
  { files: TrustFile[]; forgotten?: number },
  void
>('thinkflow/trust');
export const approveRequest = new RequestType<
  { runId: string; approvalId: string; decision: Decision },
  object,
  void
>('thinkflow/approve');
export const eventNotification = new NotificationType<RunEvent>('thinkflow/event');
export const previewNotification = new NotificationType<unknown>('thinkflow/preview');

/** Asked by the server: what other extensions say of files; without uris, of all. */
export const diagnosticsRequest = new RequestType<
  { uris?: string[] } | null,
  { files: { uri: string; diagnostics: Diagnostic[] }[] },
  void
>('thinkflow/diagnostics');
