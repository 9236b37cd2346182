// What works without a mouse.
import assert from 'node:assert/strict';
import { DIRTY, huge } from '../inputs.mjs';
import { shown, violations, withReport } from '../page.mjs';

const focused = (page) => page.evaluate(() => ({ name: document.activeElement.localName, text: document.activeElement.textContent, id: document.activeElement.id }));

// Presses Tab until the focus is where it should be.
async function tabTo(page, isThere) {
    for (let presses = 0; presses < 200; presses += 1) {
        await page.keyboard.press('Tab');
        if (await page.evaluate(isThere)) {
            return;
        }
    }
    assert.fail('Tab does not lead there');
}

export const the_first_key_skips_to_the_content = () =>
    withReport(DIRTY, undefined, (path) =>
        shown(path, async (page) => {
            await page.keyboard.press('Tab');
            assert.match((await focused(page)).text, /Skip to the content/);
            const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
            assert.notEqual(outline, 'none');
            await page.keyboard.press('Enter');
            assert.equal(new URL(page.url()).hash, '#main');
            // The next stop is within the content.
            await page.keyboard.press('Tab');
            assert.ok(await page.evaluate(() => document.querySelector('main').contains(document.activeElement)));
        }));

// The address as the page has it: a browser reports a change of it later.
const hash = (page) => page.evaluate(() => location.hash);

export const the_page_is_filtered = () =>
    withReport(DIRTY, undefined, (path) =>
        shown(path, async (page) => {
            const all = await page.locator('article').count();
            assert.ok(all > 5, `${all} articles`);
            await tabTo(page, () => document.activeElement.name === 'q');
            const first = (await page.locator('article .code').first().innerText()).trim();
            await page.keyboard.type(first.toUpperCase());
            const left = await page.locator('article:visible').count();
            assert.ok(left >= 1 && left < all, `${left} of ${all}`);
            assert.equal(new URLSearchParams((await hash(page)).slice(1)).get('q'), first.toUpperCase());
            assert.match(await page.locator('#filter [role=status]').innerText(), /^Shown: .* of /);
            await page.keyboard.type(' there is no such word');
            assert.equal(await page.locator('article:visible').count(), 0);
            assert.deepEqual(await violations(page), []);
            // A part of which nothing is left has no heading.
            assert.equal(await page.locator('#denials').isVisible(), false);
            await tabTo(page, () => document.activeElement.type === 'reset');
            await page.keyboard.press('Enter');
            assert.equal(await page.locator('article:visible').count(), all);
            assert.equal(await page.locator('#filter [role=status]').innerText(), '');
            assert.equal(await hash(page), '');
            await page.locator('[name=severity]').focus();
            await page.keyboard.press('w');
            assert.equal(await hash(page), '#severity=warn');
            assert.deepEqual(await page.locator('article:visible').evaluateAll((all) => [...new Set(all.map((it) => it.dataset.severity))]), ['warn']);
        }));

export const tables_are_sorted = () =>
    withReport(DIRTY, undefined, (path) =>
        shown(path, async (page) => {
            const table = page.locator('table[data-sort]').first();
            const heads = await table.locator('thead th').count();
            for (let column = 0; column < heads; column += 1) {
                const cells = () => table.locator(`tbody tr > :nth-child(${column + 1})`).allInnerTexts();
                const before = await cells();
                const head = table.locator('thead th').nth(column);
                await head.locator('button').focus();
                for (const [key, direction] of [['Enter', 'ascending'], ['Space', 'descending']]) {
                    await page.keyboard.press(key);
                    assert.equal(await head.getAttribute('aria-sort'), direction);
                    const after = await cells();
                    const compare = new Intl.Collator('en', { numeric: true }).compare;
                    const sorted = [...before].sort((one, two) => (direction === 'ascending' ? compare(one, two) : compare(two, one)));
                    assert.deepEqual(after, sorted);
                }
            }
            assert.equal(await table.locator('[aria-sort]').count(), 1);
            assert.deepEqual(await violations(page), []);
        }));

export const a_table_of_several_parts_is_sorted_as_one = () =>
    withReport(['check', '.'], huge(), (path) =>
        shown(path, async (page) => {
            assert.equal(await page.locator('#map table:visible').count(), 0);
            await page.locator('#map summary').click();
            const tables = page.locator('#map table');
            const parts = await tables.count();
            assert.ok(parts > 2, `${parts} parts`);
            const cells = () => page.locator('#map tbody tr > :first-child').allTextContents();
            const before = await cells();
            const compare = new Intl.Collator('en', { numeric: true }).compare;
            for (const [direction, order] of [['ascending', compare], ['descending', (one, two) => compare(two, one)]]) {
                await tables.nth(1).locator('thead button').first().click();
                assert.deepEqual(await cells(), [...before].sort(order));
                assert.equal(await page.locator(`#map [aria-sort=${direction}]`).count(), parts);
                assert.equal(await tables.first().locator('tbody tr').count(), 200);
            }
        }));

export const every_stop_can_be_seen = () =>
    withReport(DIRTY, undefined, (path) =>
        shown(path, async (page) => {
            for (let presses = 0; presses < 60; presses += 1) {
                await page.keyboard.press('Tab');
                const stop = await page.evaluate(() => {
                    const { width, height } = document.activeElement.getBoundingClientRect();
                    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
                    return { name: document.activeElement.localName, width, height, outline: outlineStyle !== 'none' && outlineWidth !== '0px' };
                });
                if (stop.name === 'body') {
                    break;
                }
                assert.ok(stop.width > 0 && stop.height > 0 && stop.outline, JSON.stringify(stop));
            }
        }));
