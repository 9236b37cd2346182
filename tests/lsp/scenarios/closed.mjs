// What edits break in files that are not open.
import assert from 'node:assert/strict';
import { agent, memory, REDIS } from '../manifests.mjs';
import { session, sleep } from '../client.mjs';

const FILES = {
    'memory.yaml': memory('notes', REDIS),
    'agents/scout.yaml': agent(),
    'agents/other.yaml': agent('other', 'nowhere'),
    'broken.yaml': memory('broken', 'backend: rediss'),
};

export const a_closed_file_is_marked_for_what_an_edit_broke = () =>
    session(FILES, async (editor) => {
        await editor.open('memory.yaml');
        await editor.until(() => editor.published.size > 0, () => 'the first marks');
        assert.deepEqual([...editor.published.keys()], [editor.uri('memory.yaml')], 'nothing was edited');
        await editor.replace('memory.yaml', 'name: notes', 'name: memos');
        await editor.untilMarked('agents/scout.yaml', 'arkonis/memory-not-found');
        // What was wrong before has no mark.
        assert.deepEqual([editor.marks('agents/other.yaml'), editor.marks('broken.yaml')], [[], []]);
        const [mark] = editor.marks('agents/scout.yaml');
        const [edit, ...others] = mark.relatedInformation;
        assert.deepEqual(others, []);
        assert.equal(edit.location.uri, editor.uri('memory.yaml'));
        assert.equal(editor.textAt('memory.yaml', edit.location.range), 'name: memos');
        assert.equal(edit.message, 'this edit breaks it');
        // While the text cannot be read, nothing is known anew.
        await editor.replace('memory.yaml', 'ttlSeconds: 5400', 'ttlSeconds: [');
        await editor.until(() => editor.codes('memory.yaml').includes('syntax'), () => 'an error');
        assert.deepEqual(editor.codes('agents/scout.yaml'), ['arkonis/memory-not-found']);
        await editor.replace('memory.yaml', 'ttlSeconds: [', 'ttlSeconds: 5400');
        await editor.save('memory.yaml');
        await editor.untilMarked('memory.yaml');
        assert.deepEqual(editor.codes('agents/scout.yaml'), ['arkonis/memory-not-found'], 'saving mends nothing');
        await editor.replace('memory.yaml', 'name: memos', 'name: notes');
        await editor.untilMarked('agents/scout.yaml');
    });

export const a_mark_goes_when_its_file_is_mended_opened_or_the_editor_closes = () =>
    session(FILES, async (editor) => {
        await editor.open('memory.yaml');
        await editor.replace('memory.yaml', 'name: notes', 'name: memos');
        await editor.untilMarked('agents/scout.yaml', 'arkonis/memory-not-found');
        await editor.write('agents/scout.yaml', agent('scout', 'memos'));
        await editor.untilMarked('agents/scout.yaml');
        await editor.write('agents/scout.yaml', agent());
        await editor.untilMarked('agents/scout.yaml', 'arkonis/memory-not-found');
        // An open file has its own marks.
        await editor.open('agents/scout.yaml');
        await editor.until(() => editor.published.get(editor.uri('agents/scout.yaml')).version === 1, () => 'its own');
        assert.deepEqual(editor.codes('agents/scout.yaml'), ['arkonis/memory-not-found']);
        await editor.close('agents/scout.yaml');
        await editor.until(() => editor.published.get(editor.uri('agents/scout.yaml')).version === undefined, () => 'closed');
        await editor.untilMarked('agents/scout.yaml', 'arkonis/memory-not-found');
        await editor.close('memory.yaml');
        await editor.untilMarked('agents/scout.yaml');
        await sleep(0);
    });

export const a_file_that_is_opened_while_another_one_cannot_be_read_has_its_own_marks = () =>
    session(FILES, async (editor) => {
        await editor.open('memory.yaml');
        await editor.replace('memory.yaml', 'name: notes', 'name: memos');
        await editor.untilMarked('agents/scout.yaml', 'arkonis/memory-not-found');
        await editor.replace('memory.yaml', 'ttlSeconds: 5400', 'ttlSeconds: [');
        await editor.until(() => editor.codes('memory.yaml').includes('syntax'), () => 'an error');
        await editor.open('agents/scout.yaml', `${agent()}---\n${memory('more', 'backend: rediss')}`);
        await editor.until(() => editor.codes('agents/scout.yaml').includes('arkonis/backend-unknown'), () => 'its own marks');
    });

export const an_object_that_goes_breaks_what_names_it = () =>
    session({ ...FILES, 'two.yaml': `${memory('first')}---\n${memory('second')}`, 'b.yaml': agent('b', 'second') }, async (editor) => {
        await editor.open('two.yaml');
        await editor.open('memory.yaml');
        await editor.replace('two.yaml', memory('second'), '');
        await editor.untilMarked('b.yaml', 'arkonis/memory-not-found');
        assert.deepEqual(editor.marks('agents/scout.yaml'), []);
        assert.equal(editor.marks('b.yaml')[0].relatedInformation[0].location.uri, editor.uri('two.yaml'));
    });

export const what_was_wrong_before_is_not_broken_by_other_words = () =>
    session({ ...FILES, 'agents/like.yaml': agent('like', 'memoz') }, async (editor) => {
        await editor.open('memory.yaml');
        // From now on a name that is like it exists.
        await editor.replace('memory.yaml', 'name: notes', 'name: memos');
        await editor.untilMarked('agents/scout.yaml', 'arkonis/memory-not-found');
        assert.deepEqual(editor.marks('agents/like.yaml'), []);
    });

export const the_last_object_of_its_kind_breaks_what_names_it = () =>
    session({ 'memory.yaml': memory('notes', REDIS), 'scout.yaml': agent() }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.replace('memory.yaml', memory('notes', REDIS), '');
        await editor.untilMarked('scout.yaml', 'arkonis/memory-not-found');
        assert.equal(editor.marks('scout.yaml')[0].relatedInformation[0].location.uri, editor.uri('memory.yaml'));
    });

export const the_edit_has_the_whole_name = () =>
    session({ ...FILES, 'two.yaml': `${memory('a-notes')}---\n${memory('notes-b')}---\n${memory('c')}` }, async (editor) => {
        await editor.open('two.yaml');
        await editor.open('memory.yaml');
        for (const name of ['name: a-notes', 'name: notes-b']) await editor.replace('two.yaml', name, `${name}2`);
        await editor.replace('memory.yaml', 'name: notes', 'name: memos');
        await editor.untilMarked('agents/scout.yaml', 'arkonis/memory-not-found');
        assert.equal(editor.marks('agents/scout.yaml')[0].relatedInformation[0].location.uri, editor.uri('memory.yaml'));
    });

const MODEL = `apiVersion: kagent.dev/v1alpha2
kind: ModelConfig
metadata: {name: emb, namespace: ops}
spec:
  provider: OpenAI
  model: text-embedding-3-small
`;
const ONCALL = `apiVersion: kagent.dev/v1alpha2
kind: Agent
metadata: {name: oncall, namespace: ops}
spec:
  type: Declarative
  declarative:
    runtime: go
    systemMessage: You help the engineer on call.
    modelConfig: emb
    memory: {modelConfig: emb}
`;

export const the_text_of_other_kinds_breaks_what_reads_it = () =>
    session({ 'model.yaml': MODEL, 'agent.yaml': ONCALL }, async (editor) => {
        await editor.open('model.yaml');
        await editor.replace('model.yaml', 'provider: OpenAI', 'provider: Anthropic');
        await editor.until(() => editor.marks('agent.yaml').length > 0, () => 'a mark');
        await editor.replace('model.yaml', 'provider: Anthropic', 'provider: OpenAI');
        await editor.untilMarked('agent.yaml');
    });
