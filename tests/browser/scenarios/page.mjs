// The page as it is read.
import assert from 'node:assert/strict';
import { AUDIT, CLEAN, DIRTY, hostile, huge, PROOF, WHAT_IF } from '../inputs.mjs';
import { shown, size, violations, withReport } from '../page.mjs';

const KINDS = [['clean', CLEAN], ['dirty', DIRTY], ['audit', AUDIT], ['what-if', WHAT_IF]];

export const it_has_no_violations_in_light_and_in_dark = async () => {
    for (const [kind, args] of KINDS) {
        await withReport(args, undefined, async (path) => {
            for (const colorScheme of ['light', 'dark']) {
                await shown(path, async (page) => {
                    assert.deepEqual(await violations(page), [], `${kind}, ${colorScheme}`);
                    const [back] = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/));
                    assert.equal(Number(back) > 128, colorScheme === 'light', `${back}`);
                }, { colorScheme });
            }
        });
    }
};

export const what_it_says_is_what_was_found = async () => {
    await withReport(CLEAN, undefined, (path) =>
        shown(path, async (page) => {
            assert.match(await page.title(), /^memgate check: Nothing would be denied/);
            assert.equal(await page.locator('.finding.is-deny').count(), 0);
            assert.ok((await page.locator('main section').count()) >= 2);
        }));
    await withReport(DIRTY, undefined, (path) =>
        shown(path, async (page) => {
            assert.match(await page.title(), /would be denied/);
            assert.ok((await page.locator('.finding').count()) > 5);
            // Each part that the navigation names exists.
            for (const link of await page.locator('nav a').all()) {
                const target = await link.getAttribute('href');
                assert.equal(await page.locator(target).count(), 1, target);
            }
            const ids = await page.evaluate(() => [...document.querySelectorAll('[id]')].map(({ id }) => id));
            assert.equal(new Set(ids).size, ids.length, `${ids}`);
        }));
};

export const ten_thousand_objects_are_shown = async () => {
    await withReport(['check', '.'], huge(), async (path) => {
        await shown(path, async (page, took) => {
            console.log(`10,000 objects: ${size(path)} bytes, opened in ${Math.round(took)} ms`);
            assert.match(await page.locator('header').innerText(), /10,?000 objects judged/);
            assert.match(await page.locator('main').innerText(), / more are not shown in this page/);
        });
    });
};

const ELEMENTS = ['a', 'article', 'body', 'caption', 'code', 'details', 'div', 'footer', 'h1', 'h2', 'h3', 'head', 'header', 'html', 'li', 'main', 'meta', 'nav', 'p', 'pre', 'section', 'span', 'strong', 'style', 'summary', 'table', 'tbody', 'td', 'th', 'thead', 'title', 'tr', 'ul'];

export const hostile_texts_stay_texts = async () => {
    await withReport(['check', '.', '--max-file-size', '1Mi'], hostile(), async (path) => {
        for (const options of [{}, { javaScriptEnabled: false }]) {
            await shown(path, async (page) => {
                const found = await page.evaluate(() => {
                    const all = [...document.querySelectorAll('*')];
                    return {
                        elements: [...new Set(all.map((element) => element.localName))].sort(),
                        handlers: all.flatMap((element) => element.getAttributeNames().filter((name) => /^(on|style$|srcdoc$)/.test(name))),
                        links: all.flatMap((element) => ['href', 'src', 'action', 'xlink:href'].map((name) => element.getAttribute(name)).filter(Boolean)),
                        scripts: document.scripts.length,
                        sheets: document.querySelectorAll('style, link').length,
                        // Of the browser itself: the characters that change the order or the look of others.
                        odd: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/.exec(document.documentElement.textContent)?.[0].charCodeAt(0),
                        long: Math.max(...all.filter(({ childElementCount }) => childElementCount === 0).filter((element) => !element.closest('style')).map(({ textContent }) => textContent.length)),
                        shown: document.body.innerText,
                    };
                });
                assert.deepEqual(found.elements.filter((name) => !ELEMENTS.includes(name)), []);
                assert.deepEqual(found.handlers, []);
                assert.equal(found.scripts, 0);
                assert.equal(found.sheets, 1);
                assert.deepEqual(found.links.filter((link) => !link.startsWith('#')), []);
                assert.equal(found.odd, undefined);
                assert.ok(found.long < 3_000, `${found.long} characters`);
                // They are shown, as what they are.
                for (const piece of ['<script>', '"><img src=x onerror=', '</style>', '{{7*', 'javascript:']) {
                    assert.ok(found.shown.includes(piece), piece);
                }
                assert.equal(await page.evaluate((name) => globalThis[name], PROOF), undefined);
                assert.ok(await page.locator('h1').isVisible());
            }, options);
        }
        await shown(path, async (page) => assert.deepEqual(await violations(page), []));
    });
};

export const it_fits_a_narrow_window = () =>
    withReport(DIRTY, undefined, (path) =>
        shown(path, async (page) => {
            const width = await page.evaluate(() => document.scrollingElement.scrollWidth);
            assert.ok(width <= 320, `${width} pixels`);
            assert.deepEqual(await violations(page), []);
        }, { viewport: { width: 320, height: 640 } }));

export const it_is_printed_on_white_with_everything_on_it = () =>
    withReport(DIRTY, undefined, (path) =>
        shown(path, async (page) => {
            const findings = await page.locator('.finding').count();
            await page.emulateMedia({ media: 'print' });
            assert.equal(await page.locator('nav').first().isVisible(), false);
            assert.equal(await page.locator('.finding:visible').count(), findings);
            const colours = await page.evaluate(() => {
                const { backgroundColor, color } = getComputedStyle(document.body);
                return [backgroundColor, color];
            });
            assert.match(colours[0], /rgb\(255, 255, 255\)|rgba\(0, 0, 0, 0\)/);
            assert.deepEqual(await violations(page), []);
            const pdf = await page.pdf({ format: 'A4' });
            assert.ok(pdf.length > 10_000, `${pdf.length} bytes`);
        }, { colorScheme: 'dark' }));
