// A page of memgate in Chromium, and what it must never do.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.NODE_MODULES, 'here.js'));
const { chromium } = require('playwright-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// A browser that asks no network for anything, with a profile that is thrown away.
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

// Runs memgate in a folder with these files, or in the repository, and returns the path of the page that it has written.
export function report(args, files, format = 'html') {
    const folder = mkdtempSync(join(tmpdir(), 'memgate-page-'));
    for (const [name, text] of Object.entries(files ?? {})) {
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        writeFileSync(join(folder, name), text);
    }
    const page = join(folder, `report.${format}`);
    const run = spawnSync(process.env.MEMGATE, [...args, '-o', `${format}=${page}`], {
        cwd: files ? folder : ROOT,
        encoding: 'utf8',
        maxBuffer: 1 << 30,
    });
    // 2 where an input cannot be read, which is also on the page.
    assert.ok([0, 1, 2].includes(run.status) && existsSync(page), `memgate ${args.join(' ')}: ${run.status}\n${run.stderr}`);
    return page;
}

// Opens a page, at a place of it, hands it to the scenario, and expects that it did nothing but show itself.
export async function shown(path, scenario, { hash = '', ...options } = {}) {
    const profile = mkdtempSync(join(tmpdir(), 'memgate-chromium-'));
    const context = await chromium.launchPersistentContext(profile, {
        executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
        headless: true,
        args: FLAGS,
        viewport: { width: 1100, height: 900 },
        ...options,
    });
    try {
        const page = await context.newPage();
        const [requests, complaints] = [[], []];
        page.on('request', (request) => requests.push(request.url()));
        page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
        page.on('pageerror', (error) => complaints.push(`error: ${error}`));
        page.on('dialog', (dialog) => {
            complaints.push(`dialog: ${dialog.message()}`);
            dialog.dismiss();
        });
        page.on('popup', () => complaints.push('popup'));
        page.on('download', () => complaints.push('download'));
        const address = pathToFileURL(path).href;
        const start = performance.now();
        await page.goto(address + hash);
        const took = performance.now() - start;
        await scenario(page, took);
        assert.deepEqual(complaints, []);
        assert.deepEqual(requests.map((url) => url.split('#')[0]), [address]);
    } finally {
        await context.close();
        rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    }
}

// Removes what `report` has made.
export function forget(path) {
    rmSync(dirname(path), { recursive: true, force: true });
}

export async function withReport(args, files, work) {
    const path = report(args, files);
    try {
        await work(path);
    } finally {
        forget(path);
    }
}

export const size = (path) => statSync(path).size;

// What axe-core finds wrong, as lines: contrast, landmarks, names, order of headings, and the rest of its rules.
export async function violations(page) {
    await page.evaluate(AXE);
    const { violations, passes } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations', 'passes'] }));
    assert.ok(passes.length > 10, `${passes.length} rules were tried`);
    return violations.flatMap(({ id, help, nodes }) => nodes.slice(0, 5).map(({ html, failureSummary }) => `${id}: ${help}: ${html}\n${failureSummary}`));
}
