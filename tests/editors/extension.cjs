// Runs the packed extension without an editor: a stand-in for the module `vscode` has one open file, and records the
// messages and the marks.
//
//   node extension.cjs EXTENSION.js FILE SETTINGS...
//
// Starts the extension with the first settings, a JSON object, and restarts it with each of the others. For each prints a
// line of JSON: the messages, the commands that are registered, and the marks of the file, where the settings have `marks`.
// The last line has what the command for the map shows.
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');

const [extension, file, ...choices] = process.argv.slice(2);

// Has every property, is called and constructed, and is a base class: enough for what is not looked at here.
const anything = () => new Proxy(function () {}, {
    get: (target, name) => (['prototype', 'then'].includes(name) || typeof name === 'symbol' ? target[name] : anything()),
    apply: () => anything(),
});

class Disposable {
    dispose() {}
}
class EventEmitter extends Disposable {
    listeners = new Set();
    event = (listener) => (this.listeners.add(listener), new Disposable());
    fire = (value) => this.listeners.forEach((listener) => listener(value));
}
class Position {
    constructor(line, character) {
        Object.assign(this, { line, character });
    }
}
class Range {
    constructor(...ends) {
        const [start, end] = ends.length === 4 ? [new Position(ends[0], ends[1]), new Position(ends[2], ends[3])] : ends;
        Object.assign(this, { start, end });
    }
}
class Diagnostic {
    constructor(range, message, severity) {
        Object.assign(this, { range, message, severity });
    }
}
class Uri {
    constructor(text) {
        this.text = text;
        this.scheme = text.split(':')[0];
    }
    static parse = (text) => new Uri(text);
    static file = (path) => new Uri(pathToFileURL(path).href);
    get fsPath() {
        return fileURLToPath(this.text);
    }
    toString = () => this.text;
}

const noEvent = () => new Disposable();
const uri = Uri.file(file);
const document = {
    uri,
    fileName: file,
    languageId: 'yaml',
    version: 1,
    isClosed: false,
    getText: () => readFileSync(file, 'utf8'),
};
const folder = { uri: Uri.file(path.dirname(file)), name: 'manifests', index: 0 };
const registered = {};
let settings, messages, marked;
const channel = new Proxy({}, { get: (_, name) => (name === 'name' ? 'memgate' : name === 'onDidChangeLogLevel' ? noEvent : () => undefined) });
const withEvents = (own) => new Proxy(own, {
    get: (target, name) => target[name] ?? (/^(on(Did|Will)|register)/.test(String(name)) ? noEvent : anything()),
});

const vscode = {
    Diagnostic, Disposable, EventEmitter, Position, Range, Uri,
    CancellationError: Error,
    CancellationTokenSource: class extends Disposable {
        token = { isCancellationRequested: false, onCancellationRequested: noEvent };
        cancel() {}
    },
    DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
    FileType: { File: 1 },
    version: '1.91.0',
    commands: { registerCommand: (name, run) => ((registered[name] = run), new Disposable()) },
    env: { appName: 'a stand-in', language: 'en' },
    languages: withEvents({
        createDiagnosticCollection: () => ({
            // A code has an address where the build was given one.
            set: (_, marks) => marked?.(marks.map(({ code, range, severity, source }) => ({ code: code.value ?? code, line: range.start.line, severity, source }))),
            clear: () => undefined,
            delete: () => undefined,
            dispose: () => undefined,
        }),
        match: (selector, { languageId }) => (selector.some(({ language }) => language === languageId) ? 10 : 0),
    }),
    window: withEvents({
        createOutputChannel: () => channel,
        showErrorMessage: async (...words) => void messages.push(words),
        activeTextEditor: { document },
        visibleTextEditors: [{ document }],
        tabGroups: withEvents({ all: [] }),
    }),
    workspace: withEvents({
        getConfiguration: () => ({ get: (name, otherwise) => settings[name] ?? otherwise }),
        textDocuments: [document],
        notebookDocuments: [],
        createFileSystemWatcher: () => withEvents(new Disposable()),
        workspaceFolders: [folder],
        getWorkspaceFolder: () => folder,
    }),
};
const standIn = new Proxy(vscode, { get: (target, name) => target[name] ?? anything() });
const load = Module._load;
Module._load = (name, ...rest) => (name === 'vscode' ? standIn : load(name, ...rest));

const { activate, deactivate } = require(extension);
(async () => {
    for (const [index, choice] of choices.entries()) {
        [settings, messages] = [JSON.parse(choice), []];
        const marks = new Promise((resolve, reject) => {
            marked = resolve;
            setTimeout(() => reject(new Error(`no marks with ${choice}`)), 60_000);
        });
        marks.catch(() => undefined);
        await (index === 0 ? activate({ subscriptions: [] }) : registered['memgate.restart']());
        console.log(JSON.stringify({ messages, registered: Object.keys(registered), marks: settings.marks ? await marks : [] }));
    }
    await deactivate();
    process.exit(0);
})();
