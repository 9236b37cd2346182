// The picture of the map: it can be read at 1280 pixels, whatever is in it.
import assert from 'node:assert/strict';
import { huge } from '../inputs.mjs';
import { shown, violations, withReport } from '../page.mjs';

const WIDE = { viewport: { width: 1280, height: 900 } };

const memory = (namespace, name, spec) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`;
const agent = (namespace, name, of) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {model: m, systemPrompt: p, memoryRef: {name: ${of}}}\n`;
const store = (namespace, name) => `apiVersion: ark.mckinsey.com/v1alpha1\nkind: Memory\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {address: {value: 'http://${namespace}.example.com'}}\n`;
const query = (namespace, name, of) => `apiVersion: ark.mckinsey.com/v1alpha1\nkind: Query\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {input: a, memory: {name: ${of}, namespace: team-0}, target: {type: agent, name: x}}\n`;

// Namespaces of ten objects: memory that is used, not used, denied and not found, and a line to the first namespace.
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
            const { node, verdict, fold } = box.dataset;
            return { node, verdict, fold: Number(fold ?? 0), link: box.closest('a')?.getAttribute('href'), text: box.textContent, inside, pixels, edges: edges.toJSON() };
        });
        const marks = [...svg.querySelectorAll('[data-edge][data-mark]')].flatMap((edge) => edge.dataset.mark.split(' '));
        return { width: right - left, boxes, marks: [...new Set(marks)].sort(), lines: svg.querySelectorAll('[data-edge]').length };
    });

const WORDS = { ok: 'ok', unused: 'not used', missing: 'not found', warned: 'warned', denied: 'denied' };

// Opens the picture of these files, and expects that it can be read.
const pictured = (files, scenario) =>
    withReport(['check', '.'], files, (path) =>
        shown(path, async (page) => {
            await page.locator('#map svg').scrollIntoViewIfNeeded();
            const { width, boxes, ...rest } = await picture(page);
            assert.ok(width > 800 && width <= 1280, `${width} pixels`);
            assert.ok(boxes.length > 5 && boxes.length <= 60, `${boxes.length} boxes`);
            for (const { node, verdict, text, inside, pixels, fold, link } of boxes) {
                assert.ok(inside && pixels > 10 && text.length < 60, `${node}: ${text}, ${pixels} pixels`);
                assert.ok(text.includes(WORDS[verdict]), `${node} ${verdict}: ${text}`);
                // An object that stands for its namespace opens it too.
                assert.ok(link === undefined ? fold === 0 : /^#(namespace=.+|map-table)$/.test(link), `${node}: ${link}`);
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
        assert.deepEqual(boxes.filter(({ fold }) => fold > 0), []);
        for (const [node, verdict] of [
            ['ArkMemory team-1/notes', 'ok'],
            ['ArkMemory team-1/spare', 'unused'],
            ['ArkMemory team-1/typo', 'denied'],
            ['ArkMemory team-1/gone', 'missing'],
            ['ArkAgent team-1/lost', 'warned'],
            ['ArkAgent team-1/scout', 'ok'],
        ]) {
            assert.equal(find(boxes, node)?.verdict, verdict, node);
        }
        assert.deepEqual(marks, ['cross-namespace', 'no-tls']);
        assert.deepEqual(await violations(page), []);
    });

export const three_hundred_objects_have_a_box_for_each_namespace = () =>
    pictured(teams(30), async (page, { boxes, marks }) => {
        const box = find(boxes, 'namespace team-7');
        assert.deepEqual([box.verdict, box.fold, box.link], ['denied', 11, '#namespace=team-7']);
        assert.equal(boxes.filter(({ node }) => node.startsWith('namespace team-')).length, 30);
        assert.deepEqual(marks, ['cross-namespace', 'no-tls']);
        assert.deepEqual(await violations(page), []);
        await page.locator('a[href="#namespace=team-7"]', { has: page.locator('[data-fold]') }).click();
        assert.equal(new URL(page.url()).hash, '#namespace=team-7');
    });

export const ten_thousand_objects_have_one_too = async () => {
    await pictured(huge(), async (page, { boxes }) => {
        assert.equal(boxes.reduce((sum, { fold }) => sum + (fold || 1), 0), 10_000);
        assert.equal(boxes.filter(({ node }) => / more namespaces$/.test(node)).length, 1);
    });
    await pictured(teams(1_000), async (page, { boxes }) => {
        // The objects, what is not found, and a host for each namespace.
        assert.equal(boxes.reduce((sum, { fold }) => sum + (fold || 1), 0), 12_000);
        assert.ok(boxes.some(({ node }) => node === '1000 hosts'));
    });
};

export const long_names_stay_in_their_boxes = () =>
    pictured(teams(2, `-${'w'.repeat(240)}`), async (page, { boxes }) => {
        assert.ok(boxes.filter(({ text }) => text.includes('…')).length > 10);
        assert.deepEqual(await violations(page), []);
    });
