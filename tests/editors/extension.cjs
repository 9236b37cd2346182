// Runs the packed extension without an editor: a stand-in for the module `vscode` records its messages.
//
//   node extension.cjs EXTENSION.js PROGRAM...
//
// For each program prints a line of JSON: the messages of an extension whose setting memgate.path is that program, and
// the commands that it has registered.
const Module = require('node:module');

// Has every property, is called and constructed, and is a base class, which is as much as loading the client asks for.
const anything = () => new Proxy(class {}, {
    get: (target, name) => (name in target || typeof name === 'symbol' ? target[name] : anything()),
});

const settings = {};
let messages, registered;
const vscode = {
    commands: { registerCommand: (name) => registered.push(name) },
    window: { showErrorMessage: async (...words) => void messages.push(words) },
    workspace: {
        getConfiguration: () => ({ get: (name, otherwise) => settings[name] ?? otherwise }),
        onDidChangeConfiguration: () => undefined,
    },
};
const stand_in = new Proxy(vscode, { get: (target, name) => target[name] ?? anything() });
const load = Module._load;
Module._load = (name, ...rest) => (name === 'vscode' ? stand_in : load(name, ...rest));

const [extension, ...programs] = process.argv.slice(2);
const { activate, deactivate } = require(extension);
(async () => {
    for (const path of programs) {
        [messages, registered] = [[], []];
        settings.path = path;
        const context = { subscriptions: [] };
        await activate(context);
        await deactivate();
        console.log(JSON.stringify({ messages, registered }));
    }
})();
