// What is broken, whose it is, and what to do first: on the first screen of a repository with 300 objects.
import assert from 'node:assert/strict';
import { DIRTY, huge, repository } from '../inputs.mjs';
import { shown, violations, withReport } from '../page.mjs';

const AT = ['--at', '2026-12-01T00:00:00Z'];
const CHECK = ['check', '.', ...AT];
const DESKTOP = { viewport: { width: 1280, height: 900 } };

// The parts that the page begins with, in their order.
const ORDER = ['denials', 'map', 'warnings', 'policies'];

const ids = (page) => page.locator('main section').evaluateAll((all) => all.map(({ id }) => id));

export const the_first_screen_answers_three_questions = async () => {
    for (const [args, files] of [[CHECK, repository()], [DIRTY, undefined]]) {
        await withReport(args, files, (path) =>
            shown(path, async (page) => {
                const verdict = page.locator('p#verdict');
                assert.equal(await verdict.getAttribute('data-verdict'), 'denied');
                assert.match(await verdict.innerText(), /^[^.]+ would be denied\.$/);
                const { y } = await page.locator('#denials article').first().boundingBox();
                assert.ok(y < 800, `${y} pixels`);
                const first = page.locator('#denials article').first();
                for (const part of ['owner', 'place']) {
                    assert.ok(await first.locator(`[data-part=${part}]`).isVisible(), part);
                }
                assert.deepEqual(await ids(page), ORDER);
            }, DESKTOP));
    }
};

export const a_page_without_findings_is_clean = () =>
    withReport(['check', 'examples/arkonis/memory-in-context.yaml'], undefined, (path) =>
        shown(path, async (page) => {
            assert.equal(await page.locator('p#verdict').getAttribute('data-verdict'), 'clean');
            assert.deepEqual(await ids(page), ['map']);
            assert.equal(await page.locator('article').count(), 0);
        }));

export const a_cause_of_many_objects_is_one_article = () =>
    withReport(CHECK, repository(), (path) =>
        shown(path, async (page) => {
            for (const part of ['#denials', '#warnings']) {
                const first = page.locator(`${part} article`).first();
                assert.equal(await first.getAttribute('data-objects'), '101', part);
                assert.equal(await first.locator('details li[data-object]').count(), 101);
                assert.equal(await first.locator('details').evaluate((it) => it.open), false);
                assert.equal(await first.locator('li[data-object="Memory billing/notes-0"]').count(), 1);
                assert.match(await first.locator('pre').innerText(), /endpoint/);
            }
            // Every other object that is denied has its own.
            const denied = await page.locator('#denials article').evaluateAll((all) => all.map(({ dataset }) => dataset.objects));
            assert.deepEqual(denied, ['101', '1']);
            const other = page.locator('#denials article').nth(1);
            assert.match(await other.locator('[data-part=place]').innerText(), /^\.\/teams\/catalog\/ark\.yaml:\d+$/);
            assert.match(await other.locator('[data-part=owner]').innerText(), /catalog.*teams\/catalog\/ark\.yaml/);
            assert.match(await other.locator('pre').innerText(), /backend: reddis\n.*\^{6}/);
            // Each article has each of them once.
            for (const part of ['owner', 'place']) {
                const counts = await page.locator('article').evaluateAll((all, part) => all.map((it) => it.querySelectorAll(`[data-part=${part}]`).length), part);
                assert.deepEqual([...new Set(counts)], [1], part);
            }
        }));

// Ten thousand agents of one memory, which does not exist.
export const the_first_of_ten_thousand_agents_are_listed = () => {
    const files = { 'agents.yaml': Array.from({ length: 10_000 }, (_, number) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: agent-${number}, namespace: team}\nspec: {model: m, systemPrompt: s, memoryRef: {name: one}}\n`).join('---\n') };
    return withReport(['check', '.', ...AT], files, async (path) => {
        await shown(path, async (page) => {
            assert.equal(await page.locator('article[data-objects="10000"]').count(), 1);
            assert.equal(await page.locator('article[data-objects="10000"] li[data-object]').count(), 1_000);
            assert.match(await page.locator('article[data-objects="10000"]').textContent(), /9000 more are not shown in this page/);
        });
    });
};

// Names as long as Kubernetes allows, which nothing breaks but a line.
export const long_names_stay_within_the_window = async () => {
    const long = (start) => `${start}-${'n'.repeat(251 - start.length)}m`;
    const memory = (number) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: ${long(`a${number}`)}, namespace: ${'t'.repeat(63)}}\nspec: {backend: ${number % 2 ? 'reddis' : 'in-context'}, x${number}: 1}\n`;
    const policy = `apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: ${long('p')}}\nspec:\n  actions: {ci: warn}\n  promote: {at: "2027-01-15T00:00:00Z", to: deny}\n  exemptions: {namespaces: [x], maxAge: 90d}\n  rules: [{id: durable, exemptable: true, backends: {durable: true}}]\n---\napiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicyExemption\nmetadata: {name: ${long('e')}, namespace: x}\nspec: {policy: ${long('p')}, rules: [durable], target: {namespaces: [${'t'.repeat(63)}], names: ["*"]}, reason: it is a test of long names, from: "2026-12-01T00:00:00Z", expiresAt: "2026-12-20T00:00:00Z"}\n`;
    await withReport(CHECK, { 'memories.yaml': Array.from({ length: 6 }, (_, number) => memory(number)).join('---\n'), 'policy.yaml': policy }, async (path) => {
        for (const [width, height] of [[1280, 900], [390, 844], [320, 640]]) {
            await shown(path, async (page) => {
                assert.equal(await page.evaluate(() => document.scrollingElement.scrollWidth), width);
                // Nothing is drawn over the edge of what holds it, unless that scrolls.
                const over = await page.locator('main :is(article, li, p, td, th, h3, summary, pre)').evaluateAll((all) => all.filter((it) => !it.closest('.scroll, figure') && it.scrollWidth > it.clientWidth + 1 && getComputedStyle(it).display !== 'inline').map((it) => it.outerHTML.slice(0, 200)));
                assert.deepEqual(over, []);
                assert.deepEqual(await violations(page), []);
            }, { viewport: { width, height } });
        }
    });
};

export const the_words_are_those_of_the_reader = async () => {
    for (const [args, files] of [[CHECK, repository()], [DIRTY, undefined], [['check', '.'], huge()]]) {
        await withReport(args, files, (path) =>
            shown(path, async (page) => {
                const text = await page.evaluate(() => document.body.textContent);
                assert.doesNotMatch(text, /\bpoint\b|lines to memory|passed over/i);
            }));
    }
};
