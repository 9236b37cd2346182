// What is marked in open files while they are edited.
import assert from 'node:assert/strict';
import { agent, memory, REDIS } from '../manifests.mjs';
import { CAPABILITIES, session } from '../client.mjs';

const UNKNOWN = 'arkonis/backend-unknown';
const MISSING = 'arkonis/memory-not-found';

export const a_finding_has_its_code_its_page_and_its_place = () =>
    session({ 'a/memory.yaml': memory('notes', 'backend: rediss'), 'agent.yaml': agent('scout', 'other') }, async (editor) => {
        await editor.open('a/memory.yaml');
        await editor.untilMarked('a/memory.yaml', UNKNOWN);
        const [mark] = editor.marks('a/memory.yaml');
        assert.equal(mark.source, 'memgate');
        assert.equal(mark.severity, 1);
        // No address of pages is built in; hover shows the page.
        assert.equal(mark.codeDescription, undefined);
        assert.match(mark.message, /unsupported value "rediss".*did you mean "redis"\?/s);
        assert.equal(editor.textAt('a/memory.yaml', mark.range), 'rediss');
        // The state of the repository is around it.
        await editor.open('agent.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
        assert.equal(editor.marks('agent.yaml')[0].severity, 2);
        await editor.untilAsChecked();
    });

export const edits_change_the_marks = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss') }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.untilMarked('memory.yaml', UNKNOWN);
        await editor.replace('memory.yaml', 'rediss', 'redis');
        await editor.untilMarked('memory.yaml', 'arkonis/redis-required');
        await editor.replace('memory.yaml', 'backend: redis\n', `${REDIS}\n`);
        await editor.untilMarked('memory.yaml');
        // Several changes in one message, each for the text that the one before has left.
        const text = editor.text('memory.yaml');
        const at = (piece) => editor.range('memory.yaml', piece);
        await editor.change('memory.yaml', [
            { range: at('ttlSeconds'), text: 'ttl' },
            { range: { start: at('ttlSeconds').start, end: { ...at('ttlSeconds').start, character: 7 } }, text: 'ttlSeconds' },
            { range: at('team-a'), text: 'team-b' },
        ]);
        assert.equal(editor.text('memory.yaml'), text.replace('team-a', 'team-b'));
        await editor.untilAsChecked();
        await editor.change('memory.yaml', [{ text: memory('notes', 'backend: raedis') }]);
        await editor.untilMarked('memory.yaml', UNKNOWN);
    });

const EMOJI = '{"apiVersion":"arkonis.dev/v1alpha1","kind":"ArkMemory","metadata":{"name":"notes","namespace":"a","annotations":{"mood":"🧠é漢🧠"}},"spec":{"backend":"rediss"}}';

export const columns_are_those_of_utf_16 = () =>
    session({ 'memory.json': EMOJI }, async (editor) => {
        await editor.open('memory.json');
        await editor.untilMarked('memory.json', UNKNOWN);
        const { range } = editor.marks('memory.json')[0];
        assert.match(editor.textAt('memory.json', range), /^"?rediss"?$/);
        const hover = await editor.hover('memory.json', 'rediss');
        assert.match(hover.contents.value, /backend-unknown/);
        // Behind, between and before the wide characters.
        await editor.replace('memory.json', 'rediss', 'in-context');
        await editor.untilMarked('memory.json');
        await editor.replace('memory.json', '漢🧠', 'x🧠🧠');
        await editor.replace('memory.json', '"in-context"', '"raedis"');
        await editor.untilMarked('memory.json', UNKNOWN);
        assert.match(editor.textAt('memory.json', editor.marks('memory.json')[0].range), /^"?raedis"?$/);
    });

export const an_open_file_counts_as_it_is_in_the_editor = () =>
    session({ 'memory.yaml': memory('other'), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
        await editor.open('memory.yaml');
        await editor.replace('memory.yaml', 'other', 'notes');
        await editor.untilMarked('agent.yaml');
        await editor.replace('memory.yaml', 'team-a', 'team-b');
        await editor.untilMarked('agent.yaml', MISSING);
        await editor.replace('memory.yaml', 'team-b', 'team-a');
        await editor.untilMarked('agent.yaml');
        // Closed without saving: the file counts again.
        await editor.close('memory.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
    });

export const a_half_typed_file_is_marked_until_it_is_mended = () =>
    session({ 'memory.yaml': memory('notes', REDIS), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.open('agent.yaml');
        await editor.untilAsChecked();
        for (const half of ['redis: {', 'redis: "', '\tredis:', 'redis: [a, {b: c}', '? - : -', '*nowhere', '&a *a', '%', '- |-\n\0', '🧠: @', '---\n...\n}']) {
            await editor.replace('memory.yaml', 'redis:\n', `${half}\n`);
            await editor.untilAsChecked();
            await editor.replace('memory.yaml', `${half}\n`, 'redis:\n');
            await editor.untilMarked('memory.yaml');
            await editor.untilMarked('agent.yaml');
        }
        await editor.untilAsChecked();
    });

export const files_of_every_shape_are_marked_as_check_reports_them = () =>
    session({}, async (editor) => {
        const wrong = memory('notes', 'backend: rediss');
        const shapes = {
            'empty.yaml': '',
            'comments.yaml': '# nothing\n# here\n',
            'several.yaml': `---\n${memory('one')}---\n---\n${memory('two', 'backend: rediss')}---\n${agent('a', 'three')}`,
            'crlf.yaml': memory('crlf', 'backend: rediss').replaceAll('\n', '\r\n'),
            'bom.yaml': `\ufeff${memory('bom', 'backend: rediss')}`,
            'list.yaml': `apiVersion: v1\nkind: List\nitems:\n- ${memory('item', 'backend: rediss').trim().replaceAll('\n', '\n  ')}\n`,
            'list.json': `[1, 2, {"kind": "ArkMemory"}]`,
            'scalar.yaml': 'just a text',
            'no-end.yaml': wrong.trimEnd(),
            'deep.yaml': `${'['.repeat(3000)}`,
            'deep.json': `${'{"a":'.repeat(3000)}`,
            'anchors.yaml': `a: &a [1]\nb: *a\n---\n${memory('anchored', 'backend: &b rediss')}`,
            'duplicate.yaml': `${memory('twice')}---\n${memory('twice')}`,
            'values.yaml': 'replicas: 1\n',
        };
        for (const [name, text] of Object.entries(shapes)) {
            await editor.open(name, text);
        }
        await editor.untilAsChecked();
        for (const name of Object.keys(shapes)) {
            await editor.close(name);
        }
        await editor.until(() => Object.keys(shapes).every((name) => editor.marks(name).length === 0), () => 'no marks');
    });

export const an_ignored_finding_is_as_in_check = () =>
    session({
        'ignored.yaml': `# memgate: ignore[arkonis/backend-unknown] an old name\n${memory('a', 'backend: rediss')}`,
        'above.yaml': memory('b', '# memgate: ignore[arkonis/backend-unknown] an old name\n  backend: rediss'),
    }, async (editor) => {
        for (const name of ['ignored.yaml', 'above.yaml']) {
            await editor.open(name);
        }
        await editor.untilMarked('ignored.yaml', 'arkonis/backend-unknown');
        await editor.untilAsChecked();
        const [{ severity }] = editor.marks('above.yaml');
        assert.equal(severity, 3);
    });

export const an_object_of_two_files_is_reported_with_one_of_them_open = () =>
    session({ 'a.yaml': memory(), 'b.yaml': memory(), 'c.yaml': memory('other', 'backend: rediss') }, async (editor) => {
        await editor.open('b.yaml');
        await editor.untilAsChecked();
        await editor.open('a.yaml');
        await editor.untilAsChecked();
        await editor.close('b.yaml');
        await editor.untilAsChecked();
        await editor.replace('a.yaml', 'notes', 'else');
        await editor.untilAsChecked();
        // Which of two counts as the state does not depend on which is open.
        await editor.write('c.yaml', `${memory('notes', 'backend: rediss')}---\n${agent()}`);
        await editor.open('c.yaml');
        await editor.untilAsChecked();
    });

const DURABLE = `apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: backends}
spec:
  match: {families: [arkonis]}
  rules:
    - id: durable
      backends: {durable: true}
`;

export const a_policy_of_a_closed_file_counts = () =>
    session({ 'policies/a.yaml': DURABLE, 'memory.yaml': memory() }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.untilAsChecked();
        assert.ok(editor.marks('memory.yaml').length > 0, 'the policy denies the backend');
        // A damaged copy of it in an open file.
        await editor.open('copy.yaml', DURABLE.replace('durable: true', 'durabel: true'));
        await editor.write('copy.yaml', editor.text('copy.yaml'));
        await editor.untilAsChecked();
        await editor.close('copy.yaml');
        await editor.remove('copy.yaml');
        await editor.open('policies/a.yaml');
        await editor.replace('policies/a.yaml', 'durable: true', 'durable: false');
        await editor.untilAsChecked();
        await editor.replace('memory.yaml', 'in-context', 'redis');
        await editor.untilAsChecked();
    });
