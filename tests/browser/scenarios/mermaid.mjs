// The map of `-o mermaid`, drawn by Mermaid itself.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { CLEAN, hostile, PROOF } from '../inputs.mjs';
import { map, shown } from '../page.mjs';

const MERMAID = readFileSync(createRequire(join(process.env.NODE_MODULES, 'here.js')).resolve('@mermaid-js/tiny'), 'utf8');

// What a label shows, of the codes in it.
const decoded = (label) => label.replace(/#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
const words = (text) => text.replace(/\s+/g, ' ').trim();

// Draws the map, or the words that it has none, in an empty page, and expects each node and each line of it once, with its text.
const isDrawn = async (text, path) => {
    // The label behind an id and the signs of a shape.
    const nodes = [...text.matchAll(/^ *((?:memory|user|host)__\w+|note)[[(]+"(.*)"[\])]+$/gm)].map(([, id, label]) => [id, words(decoded(label))]);
    const edges = text.match(/ (-->|-\.->)/g) ?? [];
    assert.ok(nodes.length <= 60, text);
    await shown(path, async (page) => {
        await page.addScriptTag({ content: MERMAID });
        const drawn = await page.evaluate(async (text) => {
            // Its own limits, which those of GitHub and GitLab are.
            globalThis.mermaid.initialize({ startOnLoad: false });
            const { svg } = await globalThis.mermaid.render('map', text);
            document.body.innerHTML = svg;
            const all = [...document.querySelectorAll('*')];
            return {
                nodes: [...document.querySelectorAll('.node')].map((node) => node.textContent),
                edges: document.querySelectorAll('.edgePaths > path').length,
                links: document.querySelectorAll('body :is(a, img, script, iframe, link)').length,
                handlers: all.flatMap((element) => element.getAttributeNames().filter((name) => name.startsWith('on'))),
            };
        }, text);
        assert.deepEqual(drawn.nodes.map(words).sort(), nodes.map(([, label]) => label).sort());
        assert.deepEqual({ ...drawn, nodes: [] }, { nodes: [], edges: edges.length, links: 0, handlers: [] });
        assert.equal(await page.evaluate((name) => globalThis[name], PROOF), undefined);
    });
};

export const it_draws_what_is_written = () => map(CLEAN.slice(1), undefined, isDrawn);

// One file after another, since together they are too many for a picture.
export const it_draws_hostile_texts_as_texts = async () => {
    for (const [name, text] of Object.entries(hostile()).filter(([name]) => name.endsWith('-0.json'))) {
        await map(['.', '--max-file-size', '1Mi'], { [name]: text }, isDrawn);
    }
};

// As many agents as make a table that Mermaid still reads.
export const it_draws_the_words_that_a_map_is_too_large = () => {
    const agents = Array.from({ length: 100 }, (_, number) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: a-${number}, namespace: team}\nspec: {model: m, systemPrompt: p, memoryRef: {name: one}}\n`);
    return map(['.'], { 'agents.yaml': agents.join('---\n') }, isDrawn);
};
