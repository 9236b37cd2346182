// An editor without a screen: a folder of files, `memgate lsp`, and between them the client library of Visual Studio
// Code. What it has open, changes and saves are texts of its own, as in an editor.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, extname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.NODE_MODULES, 'here.js'));
export const lsp = require('vscode-languageserver-protocol/node');
const { TextDocument } = require('vscode-languageserver-textdocument');

const MEMGATE = process.env.MEMGATE;
// How long the server may take for anything: far more than it ever takes.
const PATIENCE = 60_000;
// Longer than the server waits for the author to pause.
const CALM = 400;

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// A promise that fails when nothing comes of it.
export function patiently(promise, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`nothing came: ${what()}`)), PATIENCE);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// A folder that looks like the root of a repository.
export function repository(folder) {
    for (const part of ['objects', 'refs']) {
        mkdirSync(join(folder, '.git', part), { recursive: true });
    }
    writeFileSync(join(folder, '.git/HEAD'), 'ref: refs/heads/main\n');
}

// Runs a scenario with an editor that has opened a folder with these files, and ends the session as an editor does.
export async function session(files, scenario, options = {}) {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'memgate lsp ä-')));
    try {
        if (options.repository !== false) {
            repository(folder);
        }
        for (const [name, text] of Object.entries(files)) {
            mkdirSync(dirname(join(folder, name)), { recursive: true });
            writeFileSync(join(folder, name), text);
        }
        const editor = new Editor(folder, options);
        try {
            await editor.initialize();
            await scenario(editor);
            await editor.end();
        } finally {
            editor.server.kill('SIGKILL');
        }
        editor.expectNoPanic();
    } finally {
        rmSync(folder, { recursive: true, force: true });
    }
}

// What an editor of today says of itself; scenarios add to it or take from it.
export const CAPABILITIES = {
    general: { positionEncodings: ['utf-16'] },
    workspace: {
        workspaceFolders: true,
        configuration: true,
    },
    textDocument: {
        synchronization: { didSave: true },
        publishDiagnostics: { versionSupport: true, codeDescriptionSupport: true, relatedInformation: true },
        hover: { contentFormat: ['markdown'] },
        definition: { linkSupport: true },
        references: {},
        codeAction: {
            codeActionLiteralSupport: { codeActionKind: { valueSet: ['quickfix', 'refactor', 'source'] } },
            isPreferredSupport: true,
        },
    },
};

export class Editor {
    constructor(folder, options) {
        this.folder = folder;
        this.options = options;
        this.documents = new Map();
        this.published = new Map();
        this.logged = [];
        this.errors = '';
        this.written = '';
        this.wakeups = new Set();
        this.server = spawn(MEMGATE, ['lsp', ...(options.arguments ?? [])], {
            cwd: options.directory ?? tmpdir(),
            env: { ...process.env, ...options.environment?.(folder) },
        });
        this.exited = once(this.server, 'exit').then(([code, signal]) => {
            this.wake();
            return code ?? signal;
        });
        this.server.stderr.setEncoding('utf8').on('data', (text) => (this.errors += text));
        this.server.stdout.on('data', (bytes) => (this.written += options.keepsOutput ? bytes : ''));
        // A server that has ended reads no more.
        this.server.stdin.on('error', () => undefined);
        this.connection = lsp.createProtocolConnection(
            new lsp.StreamMessageReader(this.server.stdout),
            new lsp.StreamMessageWriter(this.server.stdin),
        );
        this.connection.onError(() => undefined);
        this.connection.onNotification(lsp.PublishDiagnosticsNotification.type, (params) => {
            this.published.set(params.uri, params);
            this.wake();
        });
        this.connection.onNotification(lsp.LogMessageNotification.type, (params) => this.logged.push(params));
        this.connection.onNotification(lsp.ShowMessageNotification.type, (params) => this.logged.push(params));
        this.connection.onRequest(lsp.ConfigurationRequest.type, (params) => params.items.map(() => null));
        this.connection.listen();
    }

    wake() {
        for (const wakeup of this.wakeups) {
            wakeup();
        }
    }

    // Waits until this is so; it is asked after each message that could change it.
    until(isSo, what) {
        if (isSo()) {
            return Promise.resolve();
        }
        let wakeup;
        const change = new Promise((resolve) => {
            wakeup = () => isSo() && resolve();
            this.wakeups.add(wakeup);
        });
        return patiently(change, what).finally(() => this.wakeups.delete(wakeup));
    }

    async initialize() {
        const { capabilities = CAPABILITIES, folders = ['.'], initialize = () => ({}) } = this.options;
        const workspaceFolders = folders && folders.map((name) => ({ uri: this.uri(name), name }));
        const answer = await this.request(lsp.InitializeRequest.type, {
            processId: process.pid,
            clientInfo: { name: 'tests/lsp' },
            rootUri: workspaceFolders?.[0]?.uri ?? null,
            workspaceFolders,
            capabilities,
            ...initialize(this),
        });
        this.abilities = answer.capabilities;
        await this.notify(lsp.InitializedNotification.type, {});
    }

    request(type, params, token) {
        const answer = this.connection.sendRequest(type, params, ...(token ? [token] : []));
        return patiently(answer, () => `the answer to ${type.method ?? type}; ${this.errors}`);
    }

    notify(type, params) {
        return this.connection.sendNotification(type, params);
    }

    // Bytes as they are, beside what the library writes.
    raw(body, header = `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`) {
        this.server.stdin.write(Buffer.concat([Buffer.from(header), Buffer.from(body)]));
    }

    async end() {
        await this.request(lsp.ShutdownRequest.type, undefined);
        await this.notify(lsp.ExitNotification.type);
        assert.equal(await patiently(this.exited, () => 'the end of the server'), 0, this.errors);
    }

    expectNoPanic() {
        assert.doesNotMatch(this.errors, /panicked|overflow/);
        assert.deepEqual(this.logged.filter(({ message }) => /memgate failed/.test(message)), []);
    }

    path(name) {
        return join(this.folder, name);
    }

    uri(name) {
        return pathToFileURL(this.path(name)).href;
    }

    document(name) {
        const document = this.documents.get(name);
        assert.ok(document, `${name} is not open`);
        return document;
    }

    text(name) {
        return this.document(name).getText();
    }

    async open(name, text = readFileSync(this.path(name), 'utf8')) {
        const languageId = extname(name) === '.json' ? 'json' : 'yaml';
        this.documents.set(name, TextDocument.create(this.uri(name), languageId, 1, text));
        const textDocument = { uri: this.uri(name), languageId, version: 1, text };
        await this.notify(lsp.DidOpenTextDocumentNotification.type, { textDocument });
    }

    async close(name) {
        this.documents.delete(name);
        await this.notify(lsp.DidCloseTextDocumentNotification.type, { textDocument: { uri: this.uri(name) } });
    }

    async save(name) {
        writeFileSync(this.path(name), this.text(name));
        await this.notify(lsp.DidSaveTextDocumentNotification.type, { textDocument: { uri: this.uri(name) } });
    }

    // A change by another program, which the client reports.
    async write(name, text) {
        const type = existsSync(this.path(name)) ? lsp.FileChangeType.Changed : lsp.FileChangeType.Created;
        mkdirSync(dirname(this.path(name)), { recursive: true });
        writeFileSync(this.path(name), text);
        await this.changedOnDisk(name, type);
    }

    async remove(name) {
        rmSync(this.path(name), { recursive: true });
        await this.changedOnDisk(name, lsp.FileChangeType.Deleted);
    }

    async changedOnDisk(name, type) {
        const changes = [{ uri: this.uri(name), type }];
        await this.notify(lsp.DidChangeWatchedFilesNotification.type, { changes });
    }

    // The place of a piece of text in a document.
    range(name, piece, from = 0) {
        const document = this.document(name);
        const start = document.getText().indexOf(piece, from);
        assert.ok(start >= 0, `${name} does not have ${JSON.stringify(piece)}`);
        return this.rangeAt(document, start, start + piece.length);
    }

    rangeAt(document, start, end) {
        return { start: document.positionAt(start), end: document.positionAt(end) };
    }

    // The text of a range that the server has sent.
    textAt(name, range) {
        return this.document(name).getText(range);
    }

    // Replaces a piece of text, as typing or pasting does.
    async replace(name, piece, text) {
        const start = this.text(name).indexOf(piece);
        assert.ok(start >= 0, `${name} does not have ${JSON.stringify(piece)}`);
        await this.edit(name, start, start + piece.length, text);
    }

    async edit(name, start, end, text) {
        const document = this.document(name);
        await this.change(name, [{ range: this.rangeAt(document, start, end), text }]);
    }

    // Makes changes, and sends the whole text.
    async change(name, changes) {
        const document = this.document(name);
        TextDocument.update(document, changes, document.version + 1);
        const { uri, version } = document;
        const contentChanges = [{ text: document.getText() }];
        await this.notify(lsp.DidChangeTextDocumentNotification.type, { textDocument: { uri, version }, contentChanges });
    }

    // Applies an edit of the server to the open documents.
    async apply({ changes = {}, documentChanges = [] }) {
        const edits = Object.entries(changes).map(([uri, edits]) => ({ textDocument: { uri }, edits }));
        for (const { textDocument, edits: list } of [...edits, ...documentChanges]) {
            const name = relative(this.folder, fileURLToPath(textDocument.uri));
            const document = this.document(name);
            assert.ok([undefined, null, document.version].includes(textDocument.version), 'the edit is for this version');
            const text = TextDocument.applyEdits(document, list);
            await this.change(name, [{ text }]);
        }
    }

    marks(name) {
        return this.published.get(this.uri(name))?.diagnostics ?? [];
    }

    codes(name) {
        return this.marks(name).map((mark) => mark.code);
    }

    // Waits until a file has marks with these codes, in the order of the file.
    async untilMarked(name, ...codes) {
        await this.until(
            () => JSON.stringify(this.codes(name)) === JSON.stringify(codes),
            () => `${name} with [${codes}], but it has ${JSON.stringify(this.marks(name))}; ${this.errors}`,
        );
    }

    // Waits until the marks of all open files are what `memgate check` reports for their texts, and stay so.
    async untilAsChecked(folder = this.folder) {
        const expected = JSON.stringify(this.checked(folder));
        const isSo = () => JSON.stringify(this.shown()) === expected;
        const what = () => `what check reports:\n${expected}\nbut there is\n${JSON.stringify(this.shown())}\n${this.errors}`;
        await this.until(isSo, what);
        await sleep(CALM);
        assert.ok(isSo(), what());
    }

    // The marks of the open files, in a form that can be compared.
    shown() {
        const ofFile = (name) =>
            this.marks(name).map(({ code, severity, range }) => [name, code, severity, range.start.line]);
        return [...this.documents.keys()].flatMap(ofFile).sort(byText);
    }

    // The same from `memgate check` in a copy of the folder with the texts of the editor.
    checked(folder) {
        const copy = mkdtempSync(join(tmpdir(), 'memgate-lsp-check-'));
        try {
            cpSync(this.folder, copy, { recursive: true, verbatimSymlinks: true });
            for (const [name, document] of this.documents) {
                mkdirSync(dirname(join(copy, name)), { recursive: true });
                writeFileSync(join(copy, name), document.getText());
            }
            const below = relative(this.folder, folder);
            const run = spawnSync(MEMGATE, ['check', '-o', 'json'], { cwd: join(copy, below), maxBuffer: 1 << 30 });
            const { findings, errors, inputErrors } = JSON.parse(run.stdout);
            const severities = { deny: 1, warn: 2, note: 3 };
            // What only follows from another denial an editor leaves out, as texts do.
            const own = findings.filter(({ follows }) => !follows);
            const all = [...own, ...errors, ...inputErrors].map(({ file, code, severity, line }) => [
                join(below, file ?? ''),
                code ?? 'syntax',
                severities[severity] ?? 1,
                (line ?? 1) - 1,
            ]);
            return all.filter(([file]) => this.documents.has(file)).sort(byText);
        } finally {
            rmSync(copy, { recursive: true });
        }
    }

    hover(name, piece, from) {
        const position = this.range(name, piece, from).start;
        return this.request(lsp.HoverRequest.type, { textDocument: { uri: this.uri(name) }, position });
    }

    definition(name, piece, from) {
        const position = this.range(name, piece, from).start;
        return this.request(lsp.DefinitionRequest.type, { textDocument: { uri: this.uri(name) }, position });
    }

    references(name, piece, includeDeclaration = false) {
        const position = this.range(name, piece).start;
        const context = { includeDeclaration };
        return this.request(lsp.ReferencesRequest.type, { textDocument: { uri: this.uri(name) }, position, context });
    }

    actions(name, range, only) {
        const diagnostics = this.marks(name).filter((mark) => touches(mark.range, range));
        const params = { textDocument: { uri: this.uri(name) }, range, context: { diagnostics, ...(only && { only }) } };
        return this.request(lsp.CodeActionRequest.type, params);
    }

    // Memory that the server has in use, in KiB; Linux only.
    memory() {
        const status = readFileSync(`/proc/${this.server.pid}/status`, 'utf8');
        return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]);
    }
}

function touches(one, two) {
    const before = (a, b) => a.line < b.line || (a.line === b.line && a.character < b.character);
    return !before(one.end, two.start) && !before(two.end, one.start);
}

function byText(one, two) {
    const [a, b] = [JSON.stringify(one), JSON.stringify(two)];
    return a < b ? -1 : a > b ? 1 : 0;
}
