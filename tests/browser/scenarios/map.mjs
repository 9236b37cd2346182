// The picture of the map: it can be read at 1280 pixels, whatever is in it.
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

// What the picture of a page holds.
const picture = (page) =>
    page.evaluate(() => {
        const svg = document.querySelector('#map svg');
        const { left, right } = svg.getBoundingClientRect();
        const boxes = [...svg.querySelectorAll('[data-node]')].map((box) => {
            const edges = box.querySelector('rect').getBoundingClientRect();
            const texts = [...box.querySelectorAll('text')];
            const inside = texts.every((text) => {
                const it = text.getBoundingClientRect();
                return it.left >= edges.left && it.right <= edges.right && it.top >= edges.top - 1 && it.bottom <= edges.bottom + 1;
            });
            const pixels = Math.min(...texts.map((text) => text.getBoundingClientRect().height));
            const { node, verdict } = box.dataset;
            return { node, verdict, text: box.textContent, inside, pixels, edges: edges.toJSON() };
        });
        const marks = [...svg.querySelectorAll('[data-edge][data-mark]')].flatMap((edge) => edge.dataset.mark.split(' '));
        return { width: right - left, boxes, marks: [...new Set(marks)].sort(), lines: svg.querySelectorAll('[data-edge]').length };
    });

const WORDS = { ok: 'ok', unused: 'not used', missing: 'not found', warned: 'warned', memoryless: 'would run without memory', denied: 'denied' };

// Opens the picture of these files, and expects that it can be read.
const pictured = (files, scenario) =>
    withReport(['check', '.'], files, (path) =>
        shown(path, async (page) => {
            await page.locator('#map svg').scrollIntoViewIfNeeded();
            const { width, boxes, ...rest } = await picture(page);
            assert.ok(width > 800 && width <= 1280, `${width} pixels`);
            assert.ok(boxes.length > 5 && boxes.length <= 60, `${boxes.length} boxes`);
            for (const { node, verdict, text, inside, pixels } of boxes) {
                assert.ok(inside && pixels > 10 && text.length < 60, `${node}: ${text}, ${pixels} pixels`);
                // No one asks a host.
                assert.equal(verdict === undefined, node.startsWith('host '), node);
                assert.ok(text.includes(WORDS[verdict] ?? 'host'), `${node} ${verdict}: ${text}`);
            }
            const places = boxes.map(({ edges }) => edges).sort((one, two) => one.left - two.left || one.top - two.top);
            for (const [number, { left, bottom }] of places.entries()) {
                const next = places[number + 1];
                assert.ok(next === undefined || next.left > left || next.top > bottom, 'two boxes at one place');
            }
            assert.ok(await page.locator('#map svg [data-node] rect').first().isVisible());
            await scenario(page, { boxes, ...rest });
        }, WIDE));

const find = (boxes, node) => boxes.find((box) => box.node === node);

export const twenty_objects_are_each_a_box = () =>
    pictured(teams(2), async (page, { boxes, marks }) => {
        assert.equal(find(boxes, 'host team-1.example.com')?.verdict, undefined);
        for (const [node, verdict] of [
            ['ArkMemory team-1/notes', 'ok'],
            ['ArkMemory team-1/spare', 'unused'],
            ['ArkMemory team-1/typo', 'denied'],
            ['ArkMemory team-1/gone', 'missing'],
            ['ArkAgent team-1/lost', 'warned'],
            ['ArkAgent team-1/fool', 'memoryless'],
            ['ArkAgent team-1/scout', 'ok'],
        ]) {
            assert.equal(find(boxes, node)?.verdict, verdict, node);
        }
        assert.deepEqual(marks, ['cross-namespace', 'no-tls']);
        assert.deepEqual(await violations(page), []);
    });

export const a_larger_map_is_a_table = async () => {
    for (const files of [teams(30), huge()]) {
        await withReport(['check', '.'], files, (path) =>
            shown(path, async (page) => {
                assert.equal(await page.locator('svg').count(), 0);
                assert.match(await page.locator('#map').innerText(), /No picture: the map has \d+ boxes, and a picture at most 60\./);
                assert.ok(await page.locator('#map table').isVisible());
                assert.ok((await page.locator('#map tbody tr').count()) > 100);
            }, WIDE));
    }
};

export const long_names_stay_in_their_boxes = () =>
    pictured(teams(2, `-${'w'.repeat(240)}`), async (page, { boxes }) => {
        assert.ok(boxes.filter(({ text }) => text.includes('…')).length > 10);
        assert.deepEqual(await violations(page), []);
    });
