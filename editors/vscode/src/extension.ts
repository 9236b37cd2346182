// Starts `memgate lsp` for YAML and JSON files. Everything else is the work of the language server and of
// vscode-languageclient.
import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { promisify } from 'node:util';
import { commands, env, type ExtensionContext, Uri, ViewColumn, window, workspace } from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

// Windows looks a program up in the working directory first, and a repository may have one of this name.
const OUTSIDE = { cwd: homedir() };

// The address of the repository that it was built from (tools/build-vscode.sh), or nothing.
declare const MEMGATE_SOURCE: string;

let client: LanguageClient | undefined;
// Starts and stops one after the other, also when the command comes twice at once.
let turn: Promise<void> = Promise.resolve();

export async function activate(context: ExtensionContext): Promise<void> {
    context.subscriptions.push(
        commands.registerCommand('memgate.restart', restart),
        commands.registerCommand('memgate.map', showMap),
        workspace.onDidChangeConfiguration((change) => change.affectsConfiguration('memgate') && restart()),
    );
    await restart();
}

export function deactivate(): Promise<void> {
    return inTurn(stop);
}

function restart(): Promise<void> {
    return inTurn(async () => {
        await stop();
        await start();
    });
}

function inTurn(work: () => Promise<void>): Promise<void> {
    turn = turn.then(work, work);
    return turn;
}

async function stop(): Promise<void> {
    const running = client;
    client = undefined;
    // One that did not start, or does not answer, cannot be stopped, and must not keep the next one from starting.
    await running?.dispose().catch(() => undefined);
}

async function start(): Promise<void> {
    const settings = workspace.getConfiguration('memgate');
    const command = settings.get('path', 'memgate');
    const args = ['lsp', ...settings.get<string[]>('arguments', [])];
    const problem = await problemWith(command, args);
    if (problem !== undefined) {
        // Not awaited: the message stays until the user answers.
        void report(problem);
        return;
    }
    // A Docker Compose file has the language `dockercompose`, so it is not among these.
    const documentSelector = ['yaml', 'json'].map((language) => ({ scheme: 'file', language }));
    client = new LanguageClient('memgate', 'memgate', { command, args, options: OUTSIDE }, { documentSelector });
    // The client shows why it does not start.
    await client.start().catch(() => undefined);
}

// Shows the map of the folder of the active file, else of the first one, as it is in the editor.
async function showMap(): Promise<void> {
    const file = window.activeTextEditor?.document.uri;
    const folder = (file && workspace.getWorkspaceFolder(file)) ?? workspace.workspaceFolders?.[0];
    if (client === undefined || folder === undefined) {
        const missing = folder === undefined ? 'Open a folder to see its map.' : 'The language server does not run.';
        void window.showErrorMessage(`memgate: ${missing}`);
        return;
    }
    try {
        const ask = { command: 'memgate.page', arguments: [folder.uri.toString()] };
        const page = await client.sendRequest<string>('workspace/executeCommand', ask);
        const panel = window.createWebviewPanel('memgate.map', `Map of ${folder.name}`, ViewColumn.Beside, {});
        panel.webview.html = mapOf(page);
    } catch (error) {
        void window.showErrorMessage(`memgate: ${error instanceof Error ? error.message : String(error)}`);
    }
}

// The section of the page with the map, in the style of the page; all of it where nothing can be mapped.
function mapOf(page: string): string {
    const [map] = /<section id="map"[^]*?<\/section>/.exec(page) ?? [page];
    const [style] = /<style>[^]*?<\/style>/.exec(page) ?? [''];
    const policy = "default-src 'none'; style-src 'unsafe-inline'";
    return `<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">${style}<main>${map}</main>`;
}

// Asks the program for the help of its language server. This finds a missing program, a memgate without one,
// and arguments that it does not take.
async function problemWith(command: string, args: string[]): Promise<string | undefined> {
    try {
        await promisify(execFile)(command, [...args, '--help'], { timeout: 10_000, ...OUTSIDE });
        return undefined;
    } catch (error) {
        const { code } = error as { code?: unknown };
        if (code === 'ENOENT') {
            return `There is no program "${command}". Install memgate, or set memgate.path to where it is.`;
        }
        const started = [command, ...args].join(' ');
        return `"${started}" does not start. Install a newer memgate, or correct memgate.path and memgate.arguments.`;
    }
}

async function report(problem: string): Promise<void> {
    const [install, settings, again] = ['How to install it', 'Open the settings', 'Try again'];
    const choices = MEMGATE_SOURCE === '' ? [settings, again] : [install, settings, again];
    const answer = await window.showErrorMessage(`memgate: ${problem}`, ...choices);
    if (answer === install) {
        await env.openExternal(Uri.parse(`${MEMGATE_SOURCE}#get-it`));
    } else if (answer === settings) {
        await commands.executeCommand('workbench.action.openSettings', 'memgate');
    } else if (answer === again) {
        await restart();
    }
}
