// What works without a mouse.
import assert from 'node:assert/strict';
import { DIRTY } from '../inputs.mjs';
import { shown, withReport } from '../page.mjs';

const focused = (page) => page.evaluate(() => ({ name: document.activeElement.localName, text: document.activeElement.textContent, id: document.activeElement.id }));

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
