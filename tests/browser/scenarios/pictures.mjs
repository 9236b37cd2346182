// The pictures of the page in README and the documents: `just page-pictures` writes them, and the text that is on them.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, shown, size, withReport } from '../page.mjs';

const PICTURED = ['check', 'docs/tour/memory.yaml', 'examples/arkonis', 'examples/orloj', '--policy', 'examples/policy/baseline.yaml', '--at', '2026-12-01T00:00:00Z'];
const LIMIT = 300_000;

// What the page said when the pictures were taken.
const TEXT = new URL('../pictured.txt', import.meta.url);

// The width that a page of a repository shows.
const WIDTH = 1100;

// Takes a picture of a window of this height. What is on it is in the window from the beginning: a browser that is busy
// does not always paint what it gets to show only for the picture.
async function take(name, colorScheme, height, picture) {
    const scratch = mkdtempSync(join(tmpdir(), 'memgate-picture-'));
    const path = process.env.BLESS ? join(ROOT, 'docs/pictures', name) : join(scratch, name);
    try {
        await withReport(PICTURED, undefined, (report) =>
            shown(report, async (page) => {
                // What is not laid out yet has no text.
                await page.evaluate(() => document.querySelectorAll('.finding, .part').forEach(({ style }) => {
                    style.contentVisibility = 'visible';
                }));
                const text = `${await page.locator('header').innerText()}\n${await page.locator('main').innerText()}\n`;
                if (process.env.BLESS) {
                    writeFileSync(TEXT, text);
                }
                assert.equal(text, readFileSync(TEXT, 'utf8'), 'the pictures are older than the page: just page-pictures');
                await page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted))));
                await picture(page, path);
                assert.ok(size(path) > 20_000 && size(path) < LIMIT, `${name}: ${size(path)} bytes`);
            }, { colorScheme, viewport: { width: WIDTH, height } }));
    } finally {
        rmSync(scratch, { recursive: true });
    }
}

export const what_was_found_in_light = () =>
    take('report-light.png', 'light', 1320, (page, path) => page.screenshot({ path }));
