// Fixes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { agent, memory } from '../manifests.mjs';
import { CAPABILITIES, session } from '../client.mjs';

const all = (editor, name) => editor.rangeAt(editor.document(name), 0, editor.text(name).length);
const fixes = (actions) => actions.filter(({ kind, isPreferred }) => kind === 'quickfix' && isPreferred);

export const a_fix_mends_its_finding = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss  # 🧠') }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.untilMarked('memory.yaml', 'arkonis/backend-unknown');
        const [mark] = editor.marks('memory.yaml');
        const [fix, ...others] = fixes(await editor.actions('memory.yaml', mark.range));
        assert.deepEqual(others, []);
        assert.equal(fix.title, 'Replace with `redis`');
        assert.deepEqual(fix.diagnostics, [mark]);
        const before = editor.text('memory.yaml');
        await editor.apply(fix.edit);
        assert.equal(editor.text('memory.yaml'), before.replace('rediss', 'redis'));
        await editor.untilMarked('memory.yaml', 'arkonis/redis-required');
    });

export const a_name_that_may_be_meant_is_offered = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent('scout', "'ntoes'  # mine") }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.untilMarked('agent.yaml', 'arkonis/memory-not-found');
        const [mark] = editor.marks('agent.yaml');
        const actions = await editor.actions('agent.yaml', mark.range);
        assert.deepEqual(actions.map(({ title }) => title).slice(0, 1), ['Replace with `notes`']);
        // It is a guess, so nothing makes it by itself.
        assert.deepEqual(fixes(actions), []);
        await editor.apply(actions[0].edit);
        assert.equal(editor.text('agent.yaml'), agent('scout', "'notes'  # mine"));
        await editor.untilMarked('agent.yaml');
    });

// What `check --fix` corrects, and what it writes: sections of a scenario of tests/ui.
const EXAMPLE = readFileSync(new URL('../../ui/check/fixes-what-has-one-answer.txt', import.meta.url), 'utf8');
const example = (name) => EXAMPLE.split(`\n-- ${name} --\n`)[1].split(/^-- .* --$/m)[0];

const eachFix = (capabilities) =>
    session({ 'memories.yaml': example('memories.yaml') }, async (editor) => {
        await editor.open('memories.yaml');
        await editor.untilAsChecked();
        const titles = [];
        for (let made = 0; ; made += 1) {
            assert.ok(made < 50, 'the fixes end');
            const [fix] = fixes(await editor.actions('memories.yaml', all(editor, 'memories.yaml')));
            if (!fix) {
                assert.ok(made > 4, `${made} fixes`);
                break;
            }
            // The new name or value, and no code.
            const shown = /`([^`]+)`/.exec(fix.title)?.[1];
            assert.ok(shown && !/arkonis\/|memgate\//.test(fix.title), fix.title);
            titles.push(fix.title);
            await editor.apply(fix.edit);
            await editor.untilAsChecked();
        }
        for (const kind of [/^Rename to `/, /^Replace with `[^`]+`$/, /^Replace with `[^`]+`, without quotes$/]) {
            assert.ok(titles.some((title) => kind.test(title)), `${kind} in ${titles}`);
        }
        assert.equal(editor.text('memories.yaml'), example('written/memories.yaml'));
    }, { capabilities });

export const all_fixes_one_by_one_are_those_of_check = () => eachFix(CAPABILITIES);

export const fixes_are_for_clients_without_versions_too = () =>
    eachFix({ ...CAPABILITIES, workspace: { ...CAPABILITIES.workspace, workspaceEdit: {} } });

export const actions_are_for_the_range_and_the_kind_that_is_asked_for = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss'), 'memory.json': '{"apiVersion":"arkonis.dev/v1alpha1","kind":"ArkMemory","metadata":{"name":"b","namespace":"a"},"spec":{"backend":"rediss"}}' }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.untilMarked('memory.yaml', 'arkonis/backend-unknown');
        const elsewhere = editor.range('memory.yaml', 'apiVersion');
        assert.deepEqual((await editor.actions('memory.yaml', elsewhere)).filter(({ kind }) => kind === 'quickfix'), []);
        assert.deepEqual(await editor.actions('memory.yaml', all(editor, 'memory.yaml'), ['refactor']), []);
        const only = await editor.actions('memory.yaml', all(editor, 'memory.yaml'), ['quickfix']);
        assert.ok(only.length > 0 && only.every(({ kind }) => kind === 'quickfix'), JSON.stringify(only));
        await editor.open('memory.json');
        await editor.untilMarked('memory.json', 'arkonis/backend-unknown');
        const inJson = await editor.actions('memory.json', all(editor, 'memory.json'));
        assert.equal(fixes(inJson).length, 1);
        await editor.apply(fixes(inJson)[0].edit);
        assert.doesNotThrow(() => JSON.parse(editor.text('memory.json')));
        await editor.untilAsChecked();
    });

export const a_fix_in_a_file_with_other_line_ends_keeps_them = () =>
    session({ 'memory.yaml': `\ufeff${memory('notes', 'backend: rediss').replaceAll('\n', '\r\n')}` }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.untilMarked('memory.yaml', 'arkonis/backend-unknown');
        const before = editor.text('memory.yaml');
        const [fix] = fixes(await editor.actions('memory.yaml', all(editor, 'memory.yaml')));
        await editor.apply(fix.edit);
        assert.equal(editor.text('memory.yaml'), before.replace('rediss', 'redis'));
    });
