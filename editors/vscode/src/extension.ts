// Starts `memgate lsp` for YAML and JSON files. Everything else is the work of the language server and of
// vscode-languageclient.
import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { promisify } from 'node:util';
import { commands, env, type ExtensionContext, Uri, window, workspace } from 'vscode';
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
