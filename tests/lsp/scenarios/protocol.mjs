// Messages that are late, wrong, too large or from another time.
import assert from 'node:assert/strict';
import { agent, memory } from '../manifests.mjs';
import { CAPABILITIES, lsp, patiently, session, sleep } from '../client.mjs';

const UNKNOWN = 'arkonis/backend-unknown';

const codeOf = (request) => request.then(() => 'a result', (error) => error.code);

// The server still works.
async function expectToWork(editor) {
    const name = 'still.yaml';
    await editor.open(name, memory('still', 'backend: rediss'));
    await editor.untilMarked(name, UNKNOWN);
    await editor.close(name);
    await editor.untilMarked(name);
}

export const an_unknown_request_is_refused_and_an_unknown_notification_ignored = () =>
    session({}, async (editor) => {
        assert.equal(await codeOf(editor.request('textDocument/unknown', {})), lsp.ErrorCodes.MethodNotFound);
        assert.equal(await codeOf(editor.request('$/unknown', {})), lsp.ErrorCodes.MethodNotFound);
        assert.equal(await codeOf(editor.request(lsp.CompletionRequest.type, { textDocument: { uri: editor.uri('a.yaml') }, position: { line: 0, character: 0 } })), lsp.ErrorCodes.MethodNotFound);
        await editor.notify('$/unknown', { a: 1 });
        await editor.notify('workspace/unknown', [1, 2]);
        await editor.notify('$/setTrace', { value: 'verbose' });
        await editor.notify('workspace/didChangeConfiguration', { settings: null });
        await expectToWork(editor);
    });

export const wrong_parameters_are_refused = () =>
    session({ 'memory.yaml': memory() }, async (editor) => {
        await editor.open('memory.yaml');
        const textDocument = { uri: editor.uri('memory.yaml') };
        for (const params of [{}, { textDocument }, { textDocument, position: { line: -1, character: 0 } }, { textDocument: 1, position: 2 }, { textDocument, position: { line: 1.5, character: 'a' } }]) {
            assert.equal(await codeOf(editor.request('textDocument/hover', params)), lsp.ErrorCodes.InvalidParams, JSON.stringify(params));
        }
        for (const method of ['didOpen', 'didChange', 'didClose', 'didSave']) {
            await editor.notify(`textDocument/${method}`, { textDocument: null });
            await editor.notify(`textDocument/${method}`, { contentChanges: [{}] });
        }
        await editor.notify('workspace/didChangeWatchedFiles', { changes: [{ uri: 1 }] });
        await editor.notify('workspace/didChangeWorkspaceFolders', {});
        await editor.notify('$/cancelRequest', { id: {} });
        await expectToWork(editor);
    });

export const requests_in_the_wrong_phase_are_refused = () =>
    session({}, async (editor) => {
        await editor.request(lsp.ShutdownRequest.type);
        assert.equal(await codeOf(editor.request('textDocument/hover', {})), lsp.ErrorCodes.InvalidRequest);
        assert.equal(await codeOf(editor.request('initialize', { capabilities: {} })), lsp.ErrorCodes.InvalidRequest);
        await editor.notify(lsp.DidOpenTextDocumentNotification.type, { textDocument: { uri: editor.uri('a.yaml'), languageId: 'yaml', version: 1, text: '' } });
        await editor.notify(lsp.ExitNotification.type);
        assert.equal(await patiently(editor.exited, () => 'the end'), 0);
        editor.end = () => undefined;
    });

export const a_second_initialize_is_refused = () =>
    session({}, async (editor) => {
        assert.notEqual(await codeOf(editor.request('initialize', { capabilities: {} })), 'a result');
        await expectToWork(editor);
    });

export const a_request_before_initialize_is_refused = () =>
    session({}, async (editor) => {
        await expectToWork(editor);
    }, {
        initialize: (editor) => {
            // The library sends it before the request whose parameters these are.
            const hover = editor.connection.sendRequest('textDocument/hover', {});
            editor.early = codeOf(hover).then((code) => assert.equal(code, lsp.ErrorCodes.ServerNotInitialized));
            return {};
        },
    });

export const an_end_without_shutdown_is_an_error = () =>
    session({}, async (editor) => {
        await editor.notify(lsp.ExitNotification.type);
        assert.equal(await patiently(editor.exited, () => 'the end'), 1);
        editor.end = () => undefined;
    });

export const the_server_ends_with_its_editor = () =>
    session({ 'memory.yaml': memory() }, async (editor) => {
        await editor.open('memory.yaml');
        editor.server.stdin.end();
        assert.equal(await patiently(editor.exited, () => 'the end'), 1);
        editor.end = () => undefined;
    });

export const a_body_that_is_not_a_message_is_survived = () =>
    session({ 'memory.yaml': memory() }, async (editor) => {
        for (const body of ['{oops', '', 'null', '[]', '[{"jsonrpc":"2.0","method":"$/a"}]', '{}', '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":null,"method":"shutdown"}', '{"id":1.5,"method":"a"}', '"text"', '{"jsonrpc":"2.0","id":99,"result":1}', '{"jsonrpc":"2.0","method":7}', `${'['.repeat(5000)}`, '\ufffd\u0000']) {
            editor.raw(body);
        }
        await expectToWork(editor);
        // What the message said may be anything, so a log does not repeat it.
        assert.doesNotMatch(editor.logged.map(({ message }) => message).join('\n'), /oops/);
    });

export const a_body_that_is_not_text_is_survived = () =>
    session({ 'memory.yaml': memory() }, async (editor) => {
        editor.raw(Buffer.from([0xff, 0xfe, 0x7b]), 'Content-Length: 3\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n');
        await expectToWork(editor);
    });

// JavaScript has texts with half a character, and sends them as the escape of that half.
export const half_a_character_moves_no_column = () =>
    session({ 'memory.json': '{"apiVersion":"arkonis.dev/v1alpha1","kind":"ArkMemory","metadata":{"name":"a","namespace":"a","annotations":{"mood":"x"}},"spec":{"backend":"rediss"}}' }, async (editor) => {
        await editor.open('memory.json');
        await editor.untilMarked('memory.json', UNKNOWN);
        const [whole, at] = ['\u{1f980}', editor.text('memory.json').indexOf('x"')];
        await editor.edit('memory.json', at, at + 1, whole[0]);
        await editor.edit('memory.json', at + 1, at + 1, whole[1]);
        await editor.replace('memory.json', 'rediss', 'raedis');
        await editor.until(() => /raedis/.test(editor.marks('memory.json')[0]?.message), () => `raedis, not ${JSON.stringify(editor.marks('memory.json'))}`);
        const { range } = editor.marks('memory.json')[0];
        assert.match(editor.textAt('memory.json', range), /^"?raedis"?$/);
        await editor.change('memory.json', [{ text: editor.text('memory.json').replace('raedis', 'in-context') }]);
        await editor.untilMarked('memory.json');
        await editor.close('memory.json');
        await editor.open('memory.json', `${whole[1]} # ${whole[0]}\n`);
        await editor.close('memory.json');
        await expectToWork(editor);
    });

const framed = (message) => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    return `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
};

export const a_client_of_a_later_protocol_is_served = () =>
    session({ 'memory.yaml': memory() }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.notify(lsp.DidChangeTextDocumentNotification.type, {
            textDocument: { uri: editor.uri('memory.yaml'), version: 2, branch: 'main' },
            contentChanges: [{ text: editor.text('memory.yaml').replace('in-context', 'rediss'), author: { name: 'b' } }],
            reason: 4,
        });
        await editor.untilMarked('memory.yaml', UNKNOWN);
        const answer = await editor.request('textDocument/codeAction', {
            textDocument: { uri: editor.uri('memory.yaml') },
            range: editor.marks('memory.yaml')[0].range,
            context: { diagnostics: [{ ...editor.marks('memory.yaml')[0], severity: 1, tags: [1, 9], more: {} }], triggerKind: 9, later: [] },
            workDoneToken: 'token',
            partialResultToken: 7,
        });
        assert.ok(answer.length > 0);
        await expectToWork(editor);
    }, {
        capabilities: {
            ...CAPABILITIES,
            general: { positionEncodings: ['utf-64', 'utf-16'], regularExpressions: { engine: 'new', version: '9' }, unknown: true },
            textDocument: { ...CAPABILITIES.textDocument, thoughts: { dynamicRegistration: true }, codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: ['new.kind'] } }, tagSupport: { valueSet: [99] } } },
            quantum: [],
        },
        initialize: () => ({ trace: 'everything', locale: 'tlh', later: { a: 1 }, initializationOptions: [1] }),
    });

export const a_client_that_breaks_the_rules_for_documents_is_survived = () =>
    session({ 'memory.yaml': memory() }, async (editor) => {
        const uri = editor.uri('memory.yaml');
        const item = (text, version = 1) => ({ textDocument: { uri, languageId: 'yaml', version, text } });
        const change = (contentChanges, version = 2) => editor.notify(lsp.DidChangeTextDocumentNotification.type, { textDocument: { uri, version }, contentChanges });
        await change([{ text: 'never opened' }]);
        await editor.notify(lsp.DidCloseTextDocumentNotification.type, { textDocument: { uri } });
        await editor.notify(lsp.DidOpenTextDocumentNotification.type, item('a: 🧠\n'));
        await editor.notify(lsp.DidOpenTextDocumentNotification.type, item('b: 🧠🧠\n', 7));
        await change([], 2 ** 31 - 1);
        await change([{ text: memory('notes', 'backend: rediss') }]);
        await editor.untilMarked('memory.yaml', UNKNOWN);
        await editor.notify(lsp.DidCloseTextDocumentNotification.type, { textDocument: { uri } });
        await editor.notify(lsp.DidCloseTextDocumentNotification.type, { textDocument: { uri } });
        await editor.untilMarked('memory.yaml');
        await expectToWork(editor);
    });

const many = (count) => Array.from({ length: count }, (_, number) => memory(`memory-${number}`)).join('---\n');

export const a_file_of_two_megabytes_is_judged = () =>
    session({}, async (editor) => {
        const text = `${many(16_000)}---\n${memory('last', 'backend: rediss')}`;
        assert.ok(text.length > 2_000_000, `${text.length}`);
        await editor.open('huge.yaml', text);
        await editor.untilMarked('huge.yaml', UNKNOWN);
        await editor.replace('huge.yaml', 'rediss', 'in-context');
        await editor.untilMarked('huge.yaml');
        await editor.hover('huge.yaml', 'last');
    });

export const a_file_beyond_the_limit_is_reported_and_the_others_are_judged = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss') }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.open('huge.yaml', `# ${'x'.repeat(1_100_000)}\n${memory('huge')}`);
        await editor.until(() => editor.marks('huge.yaml').length > 0, () => 'a mark on the large file');
        assert.match(editor.marks('huge.yaml')[0].message, /larger than 1 MiB/);
        await editor.untilMarked('memory.yaml', UNKNOWN);
        await editor.close('huge.yaml');
        await editor.untilMarked('huge.yaml');
        await expectToWork(editor);
    }, { arguments: ['--max-file-size', '1Mi'] });

export const a_file_of_many_findings_is_marked = () =>
    session({}, async (editor) => {
        await editor.open('many.yaml', Array.from({ length: 3_000 }, (_, number) => memory(`m-${number}`, 'backend: rediss')).join('---\n'));
        await editor.until(() => editor.marks('many.yaml').length === 3_000, () => 'many marks');
        await editor.actions('many.yaml', editor.rangeAt(editor.document('many.yaml'), 0, editor.text('many.yaml').length));
    });

export const a_line_with_very_many_findings_is_marked = () =>
    session({}, async (editor) => {
        const item = (name) => ({ apiVersion: 'arkonis.dev/v1alpha1', kind: 'ArkMemory', metadata: { name, namespace: 'a' }, spec: { backend: 'rediss' } });
        const items = Array.from({ length: 5_000 }, (_, number) => item(`m-${number}`));
        await editor.open('one-line.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
        await editor.until(() => editor.marks('one-line.json').length === 5_000, () => 'a mark for each finding');
    });

export const a_text_that_cannot_be_read_is_forgotten = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss') }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.untilMarked('memory.yaml', UNKNOWN);
        await editor.notify('textDocument/didChange', {
            textDocument: { uri: editor.uri('memory.yaml'), version: null },
            contentChanges: [{ text: memory() }],
        });
        await editor.until(() => editor.marks('memory.yaml').length === 0, () => 'no mark of the text before');
        assert.match(editor.logged.at(-1).message, /cannot be read/);
    });

export const output_that_is_not_read_does_not_stop_the_end = () =>
    session({}, async (editor) => {
        editor.server.stdout.pause();
        // More than a pipe and the buffers of node hold.
        editor.raw(framed({ id: 'x', method: 'textDocument/unknown' }).repeat(10_000), '');
        await sleep(300);
        editor.server.stdout.resume();
        await expectToWork(editor);
    });
