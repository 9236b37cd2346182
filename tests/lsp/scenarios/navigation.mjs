// What is shown under the pointer, and where references lead.
import assert from 'node:assert/strict';
import { agent, memory, pod, REDIS } from '../manifests.mjs';
import { lsp, session } from '../client.mjs';

const inOrder = (text, ...pieces) => {
    const places = pieces.map((piece) => text.indexOf(piece));
    assert.ok(places.every((at, index) => at > (places[index - 1] ?? -1)), `${pieces} at ${places} in ${text}`);
    assert.ok(text.length < 1500, `${text.length}`);
    assert.doesNotMatch(text, /```|## /);
};

export const a_finding_shows_what_to_do_and_its_page_last = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss') }, async (editor) => {
        await editor.open('memory.yaml');
        const hover = await editor.hover('memory.yaml', 'rediss');
        assert.equal(hover.contents.kind, 'markdown');
        inOrder(hover.contents.value, 'did you mean "redis"', 'Write `in-context`, `redis` or `vector-store`', 'memgate explain arkonis/backend-unknown');
        assert.equal(editor.textAt('memory.yaml', hover.range), 'rediss');
        await editor.replace('memory.yaml', 'rediss', 'redis');
        inOrder((await editor.hover('memory.yaml', 'spec')).contents.value, 'is required', 'Add `spec.redis`', 'because of this backend: `memory.yaml:7`', 'arkonis/redis-required');
    });

export const where_nothing_is_known_nothing_is_shown = () =>
    session({ 'memory.yaml': memory('notes', REDIS), 'pod.yaml': pod() }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.open('pod.yaml');
        const shown = async (name, piece) => (await editor.hover(name, piece))?.contents.value;
        assert.equal(await shown('memory.yaml', 'backend:'), undefined);
        assert.equal(await shown('pod.yaml', 'Pod'), undefined);
        const end = { line: 99, character: 0 };
        assert.equal(await editor.request(lsp.HoverRequest.type, { textDocument: { uri: editor.uri('memory.yaml') }, position: end }), null);
    });

export const a_reference_shows_its_memory = () =>
    session({ 'a/memory.yaml': memory('notes', REDIS), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('agent.yaml');
        const hover = await editor.hover('agent.yaml', 'notes');
        for (const known of ['ArkMemory', 'team-a/notes', 'a/memory.yaml']) {
            assert.ok(hover.contents.value.includes(known), `${known} in ${hover.contents.value}`);
        }
        await editor.replace('agent.yaml', 'notes', 'nowhere');
        assert.match((await editor.hover('agent.yaml', 'nowhere')).contents.value, /memory-not-found/);
    });

const linesOf = (editor, locations) =>
    locations.map(({ uri, range }) => `${decodeURIComponent(uri).split(`${editor.folder}/`)[1]}:${range.start.line + 1}`).sort();

export const a_reference_leads_to_its_object_and_back = () =>
    session({ 'a/memory.yaml': memory(), 'agent.yaml': agent(), 'b.yaml': `${agent('second')}---\n${agent('third', 'other')}` }, async (editor) => {
        await editor.open('agent.yaml');
        assert.deepEqual(linesOf(editor, [await editor.definition('agent.yaml', 'notes')].flat()), ['a/memory.yaml:4']);
        await editor.open('a/memory.yaml');
        assert.deepEqual(linesOf(editor, await editor.references('a/memory.yaml', 'notes')), ['agent.yaml:10', 'b.yaml:10']);
        assert.deepEqual(linesOf(editor, await editor.references('a/memory.yaml', 'notes', true)), ['a/memory.yaml:4', 'agent.yaml:10', 'b.yaml:10']);
        assert.deepEqual(linesOf(editor, await editor.references('agent.yaml', 'notes')), ['agent.yaml:10', 'b.yaml:10']);
        // Lines of the editor, before anything is saved.
        await editor.replace('a/memory.yaml', 'apiVersion', '# one\n# two\napiVersion');
        assert.deepEqual(linesOf(editor, [await editor.definition('agent.yaml', 'notes')].flat()), ['a/memory.yaml:6']);
        await editor.replace('agent.yaml', 'name: notes', 'name: other');
        assert.deepEqual(linesOf(editor, await editor.references('a/memory.yaml', 'notes')), ['b.yaml:10']);
        assert.deepEqual([await editor.definition('agent.yaml', 'other')].flat().filter(Boolean), []);
        assert.deepEqual([await editor.definition('agent.yaml', 'llama3.2')].flat().filter(Boolean), []);
    });

export const each_reference_of_the_tables_leads_to_its_object = () =>
    session({
        'settings.yaml': memory('fast').replace('ArkMemory', 'ArkSettings'),
        'secret.yaml': 'apiVersion: v1\nkind: Secret\nmetadata: {name: notes-redis, namespace: team-a}\nstringData: {REDIS_URL: x}\n',
        'memory.yaml': memory('notes', REDIS),
        'agent.yaml': `${agent()}  configRef:\n    name: fast\n`,
        'kagent.yaml': 'apiVersion: kagent.dev/v1alpha2\nkind: ModelConfig\nmetadata: {name: small, namespace: team-a}\nspec: {model: m, provider: Ollama}\n---\napiVersion: kagent.dev/v1alpha2\nkind: Agent\nmetadata: {name: k, namespace: team-a}\nspec: {type: Declarative, declarative: {modelConfig: small, memory: {modelConfig: "small"}}}\n',
        'deployment.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: team-a}\nspec: {template: {metadata: {labels: {arkonis.dev/deployment: scout}}, spec: {containers: []}}}\n',
    }, async (editor) => {
        for (const [name, piece, to] of [
            ['agent.yaml', 'fast', 'settings.yaml:4'],
            ['memory.yaml', 'notes-redis', 'secret.yaml:3'],
            ['kagent.yaml', '"small"', 'kagent.yaml:3'],
            ['deployment.yaml', 'scout', 'agent.yaml:4'],
        ]) {
            await editor.open(name);
            assert.deepEqual(linesOf(editor, [await editor.definition(name, piece)].flat()), [to], name);
        }
        await editor.open('secret.yaml');
        assert.deepEqual(linesOf(editor, await editor.references('secret.yaml', 'notes-redis', true)), ['memory.yaml:10', 'secret.yaml:3']);
        await editor.open('settings.yaml');
        assert.deepEqual(linesOf(editor, await editor.references('settings.yaml', 'fast')), ['agent.yaml:12']);
        assert.match((await editor.hover('agent.yaml', 'fast')).contents.value, /ArkSettings `team-a\/fast` at `settings.yaml:4`/);
    });

export const a_reference_does_not_leave_its_namespace = () =>
    session({ 'memory.yaml': memory().replace('team-a', 'team-b'), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('agent.yaml');
        assert.deepEqual([await editor.definition('agent.yaml', 'notes')].flat().filter(Boolean), []);
    });

export const a_credential_is_never_shown = () =>
    session({
        'memory.yaml': memory('notes', 'backend: vector-store\n  vectorStore:\n    provider: qdrant\n    endpoint: https://user:hunter2marker@qdrant.data:6333?api_key=hunter2marker\n    collection: a'),
        'agent.yaml': agent(),
        'pod.yaml': `${pod()}      env:\n        - {name: AGENT_MEMORY_PASSWORD, value: hunter2marker}\n`,
    }, async (editor) => {
        for (const name of ['memory.yaml', 'agent.yaml', 'pod.yaml']) {
            await editor.open(name);
        }
        await editor.untilAsChecked();
        assert.ok(editor.codes('memory.yaml').includes('arkonis/endpoint-credentials'), editor.codes('memory.yaml'));
        await editor.hover('memory.yaml', 'hunter2marker');
        await editor.hover('agent.yaml', 'notes');
        await editor.actions('memory.yaml', editor.range('memory.yaml', 'https:'));
        await editor.hover('pod.yaml', 'hunter2marker');
        assert.doesNotMatch(editor.written + editor.errors, /hunter2marker/);
    }, { keepsOutput: true });

export const places_outside_of_a_file_are_answered = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss'), 'empty.yaml': '' }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.open('empty.yaml');
        const far = 2 ** 31 - 1;
        for (const name of ['memory.yaml', 'empty.yaml']) {
            for (const [line, character] of [[0, 0], [0, far], [far, 0], [far, far], [3, 10_000]]) {
                const [textDocument, position] = [{ uri: editor.uri(name) }, { line, character }];
                const range = { start: position, end: position };
                await editor.request(lsp.HoverRequest.type, { textDocument, position });
                await editor.request(lsp.DefinitionRequest.type, { textDocument, position });
                await editor.request(lsp.ReferencesRequest.type, { textDocument, position, context: { includeDeclaration: true } });
                await editor.request(lsp.CodeActionRequest.type, { textDocument, range, context: { diagnostics: [] } });
            }
        }
        // A file that is not open has no text to answer about.
        const textDocument = { uri: editor.uri('nowhere.yaml') };
        assert.equal(await editor.request(lsp.HoverRequest.type, { textDocument, position: { line: 0, character: 0 } }), null);
    });
