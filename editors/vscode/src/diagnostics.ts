import * as vscode from 'vscode';
import type { Diagnostic, LanguageClient } from 'vscode-languageclient/node';

/**
 * What other extensions say of files, in LSP's form and by the URIs that were asked
 * for; without any, of every file.
 */
export async function diagnosticsOf(
  client: LanguageClient,
  uris?: string[],
): Promise<{ files: { uri: string; diagnostics: Diagnostic[] }[] }> {
  const to = client.code2ProtocolConverter;
  const known: [string, readonly vscode.Diagnostic[]][] = uris
    ? uris.map((uri) => [uri, vscode.languages.getDiagnostics(vscode.Uri.parse(uri, true))])
    : vscode.languages
        .getDiagnostics()
        .filter(([uri]) => uri.scheme === 'file')
        .map(([uri, list]) => [to.asUri(uri), list]);
  return {
    files: await Promise.all(
      known.map(async ([uri, list]) => ({ uri, diagnostics: await to.asDiagnostics([...list]) })),
    ),
  };
}
