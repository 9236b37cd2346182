// The map: a table that can be read at 1280 pixels, whatever is in it.
import assert from 'node:assert/strict';
import { huge } from '../inputs.mjs';
import { shown, violations, withReport } from '../page.mjs';

const WIDE = { viewport: { width: 1280, height: 900 } };

const memory = (namespace, name, spec) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`;
const agent = (namespace, name, of) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {model: m, systemPrompt: p, memoryRef: {name: ${of}}}\n`;
const store = (namespace, name) => `apiVersion: ark.mckinsey.com/v1alpha1\nkind: Memory\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {address: {value: 'http://${namespace}.example.com'}}\n`;
const query = (namespace, name, of) => `apiVersion: ark.mckinsey.com/v1alpha1\nkind: Query\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {input: a, memory: {name: ${of}, namespace: team-0}, target: {type: agent, name: x}}\n`;

// Namespaces of eleven objects: memory that is used, not used, denied and not found, and a line to the first namespace.
function teams(count, end = '') {
    const files = {};
    for (let team = 0; team < count; team += 1) {
        const at = `team-${team}`;
        files[`${at}.yaml`] = [
            memory(at, `notes${end}`, '{backend: in-context}'),
            memory(at, `spare${end}`, '{backend: in-context}'),
            memory(at, `typo${end}`, '{backend: reddis}'),
            agent(at, `scout${end}`, `notes${end}`),
            agent(at, `scribe${end}`, `notes${end}`),
            agent(at, `lost${end}`, `gone${end}`),
            agent(at, `fool${end}`, `typo${end}`),
            store(at, `shared${end}`),
            store(at, `other${end}`),
            query(at, `ask${end}`, `shared${end}`),
            query(at, `tell${end}`, `other${end}`),
        ].join('---\n');
    }
    return files;
}

export const a_map_is_a_table = async () => {
    for (const [files, rows] of [[teams(2), 10], [teams(30), 100], [huge(), 100]]) {
        await withReport(['check', '.'], files, (path) =>
            shown(path, async (page) => {
                assert.ok(await page.locator('#map table').isVisible());
                assert.ok((await page.locator('#map tbody tr').count()) >= rows);
                assert.deepEqual(await violations(page), []);
            }, WIDE));
    }
};

export const verdicts_stand_behind_names = () =>
    withReport(['check', '.'], teams(2), (path) =>
        shown(path, async (page) => {
            const text = await page.locator('#map').innerText();
            for (const words of ['typo denied', 'gone not found', 'lost warned', 'fool would run without memory', 'across namespaces']) {
                assert.ok(text.includes(words), words);
            }
        }, WIDE));
