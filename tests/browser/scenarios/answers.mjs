// What is broken, whose it is, and what to do first: on the first screen of a repository with 300 objects.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { DIRTY, huge, repository } from '../inputs.mjs';
import { forget, report, shown, size, violations, withReport } from '../page.mjs';

const AT = ['--at', '2026-12-01T00:00:00Z'];
const CHECK = ['check', '.', ...AT];
const DESKTOP = { viewport: { width: 1280, height: 900 } };

// The parts that the page begins with, in their order.
const ORDER = ['summary', 'changes', 'denials', 'map', 'warnings', 'matrix', 'timeline'];

const ids = (page) => page.locator('main section').evaluateAll((all) => all.map(({ id }) => id));

const visible = (page) => page.locator('article:not([hidden])').evaluateAll((all) => all.map(({ dataset }) => ({ ...dataset })));

// Opens the page with this filter in its address.
const filtered = async (page, hash) => {
    await page.evaluate((hash) => {
        location.hash = hash;
    }, hash);
    await page.waitForFunction(() => document.querySelector('#filter [role=status]').textContent !== '');
};

export const the_first_screen_answers_three_questions = async () => {
    for (const [args, files] of [[CHECK, repository()], [DIRTY, undefined]]) {
        await withReport(args, files, (path) =>
            shown(path, async (page) => {
                const verdict = page.locator('p#verdict');
                assert.equal(await verdict.getAttribute('data-verdict'), 'denied');
                assert.match(await verdict.innerText(), /^[^.]+ would be denied, in namespaces? [^.]+\.$/);
                const tiles = page.locator('#summary li[data-tile]');
                assert.deepEqual(await tiles.evaluateAll((all) => all.map(({ dataset }) => dataset.tile)), ['denied', 'warnings', 'ending', 'not-judged']);
                for (const tile of await tiles.all()) {
                    const data = tile.locator('data');
                    assert.equal(await data.getAttribute('value'), (await data.innerText()).trim());
                }
                const { y } = await page.locator('#denials article').first().boundingBox();
                assert.ok(y < 800, `${y} pixels`);
                const first = page.locator('#denials article').first();
                for (const part of ['owner', 'place', 'do']) {
                    assert.ok(await first.locator(`[data-part=${part}]`).isVisible(), part);
                }
                const order = await ids(page);
                assert.deepEqual(order.slice(0, 6), ORDER.filter((id) => order.includes(id)));
                assert.equal(new Set(order).size, order.length);
            }, DESKTOP));
    }
};

export const a_page_without_findings_is_clean = () =>
    withReport(['check', 'examples/arkonis/memory-in-context.yaml'], undefined, (path) =>
        shown(path, async (page) => {
            assert.equal(await page.locator('p#verdict').getAttribute('data-verdict'), 'clean');
            assert.deepEqual((await ids(page)).filter((id) => ORDER.includes(id)), ['summary', 'map']);
            assert.equal(await page.locator('article').count(), 0);
        }));

export const a_cause_of_many_objects_is_one_article = () =>
    withReport(CHECK, repository(), (path) =>
        shown(path, async (page) => {
            for (const part of ['#denials', '#warnings']) {
                const first = page.locator(`${part} article`).first();
                assert.equal(await first.getAttribute('data-objects'), '101', part);
                assert.equal(await first.getAttribute('data-namespace'), 'billing catalog delivery research search support');
                assert.equal(await first.getAttribute('data-platform'), 'orloj');
                assert.equal(await first.locator('details li[data-object]').count(), 101);
                assert.equal(await first.locator('details').evaluate((it) => it.open), false);
                assert.equal(await first.locator('li[data-object="Memory billing/notes-0"]').count(), 1);
                assert.equal(await first.locator('[data-part=do]').innerText(), 'rename "endpont" to "endpoint"');
            }
            // Every other object that is denied has its own.
            const denied = await page.locator('#denials article').evaluateAll((all) => all.map(({ dataset }) => dataset.objects));
            assert.deepEqual(denied, ['101', '1']);
            const other = page.locator('#denials article').nth(1);
            assert.match(await other.locator('[data-part=place]').innerText(), /^\.\/teams\/catalog\/ark\.yaml:\d+$/);
            assert.match(await other.locator('[data-part=owner]').innerText(), /catalog.*teams\/catalog\/ark\.yaml/);
            assert.equal(await other.locator('[data-part=do]').innerText(), 'write "redis"');
            // Each article has each of them once.
            for (const part of ['owner', 'place', 'do']) {
                const counts = await page.locator('article').evaluateAll((all, part) => all.map((it) => it.querySelectorAll(`[data-part=${part}]`).length), part);
                assert.deepEqual([...new Set(counts)], [1], part);
            }
        }));

export const the_address_filters_the_whole_page = () =>
    withReport(CHECK, repository(), (path) =>
        shown(path, async (page) => {
            const all = (await visible(page)).length;
            await filtered(page, 'q=ENDPONT&namespace=search');
            assert.equal(await page.locator('[name=q]').inputValue(), 'ENDPONT');
            assert.equal(await page.locator('[name=namespace]').inputValue(), 'search');
            const left = await visible(page);
            assert.ok(left.length > 0 && left.length < all && left.every((it) => it.namespace.split(' ').includes('search')), JSON.stringify(left));
            // Of the objects that share a cause, those of the namespace.
            const objects = await page.locator('#warnings li[data-object]:not([hidden])').evaluateAll((all) => all.map(({ dataset }) => dataset.object));
            assert.ok(objects.length === 17 && objects.every((it) => it.startsWith('Memory search/')), objects.join());
            await filtered(page, 'platform=arkonis');
            assert.ok((await visible(page)).every((it) => it.platform === 'arkonis'));
            await filtered(page, 'severity=warn');
            assert.deepEqual([...new Set((await visible(page)).map((it) => it.severity))], ['warn']);
            // One that no option names, and one that no article fits.
            await filtered(page, 'namespace=nowhere');
            assert.equal((await visible(page)).length, 0);
            assert.equal(await page.locator('#timeline li[data-kind=exemption]:not([hidden])').count(), 0);
            await page.locator('#filter [type=reset]').click();
            assert.equal((await visible(page)).length, all);
            // A link to a part leaves the filter as it is.
            await page.locator('[name=severity]').selectOption('deny');
            await page.locator('nav a[href="#denials"]').click();
            assert.deepEqual([...new Set((await visible(page)).map((it) => it.severity))], ['deny']);
        }, DESKTOP));

export const the_filter_stays_in_the_address_until_it_is_left = () =>
    withReport(CHECK, repository(), (path) =>
        shown(path, async (page) => {
            const all = (await visible(page)).length;
            const hash = () => page.evaluate(() => location.hash);
            await page.locator('#matrix td[data-policy=durable-in-production][data-namespace=support] a').click();
            const [filter, left] = [await hash(), (await visible(page)).length];
            assert.ok(filter.includes('policy=') && left > 0 && left < all, `${filter} ${left} of ${all}`);
            assert.ok(await page.locator('article:not([hidden])').first().evaluate((it) => it.getBoundingClientRect().top < innerHeight));
            // A link to a part of the page.
            await page.locator('nav a[href="#map"]').click();
            assert.ok(/policy=durable-in-production/.test(await hash()) && /namespace=support/.test(await hash()), await hash());
            assert.equal((await visible(page)).length, left);
            assert.ok(await page.locator('#map').evaluate((it) => Math.abs(it.getBoundingClientRect().top) < innerHeight));
            // Back through both, to a page without a filter.
            await page.goBack();
            await page.goBack();
            await page.waitForFunction(() => document.querySelector('#filter [role=status]').textContent === '');
            assert.equal((await visible(page)).length, all);
            await page.goForward();
            await page.waitForFunction(() => document.querySelector('#filter [role=status]').textContent !== '');
            assert.equal((await visible(page)).length, left);
            await page.evaluate(() => {
                location.hash = '';
            });
            await page.waitForFunction(() => document.querySelector('#filter [role=status]').textContent === '');
            assert.equal((await visible(page)).length, all);
        }, DESKTOP));

// Of the causes of very many objects the lists are cut, not the namespaces.
export const an_article_with_a_cut_list_leaves_with_its_namespaces = () => {
    const files = { 'agents.yaml': Array.from({ length: 10_000 }, (_, number) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: ${'m'.repeat(200)}-${number}, namespace: team}\nspec: {backend: reddis}\n`).join('---\n') };
    return withReport(['check', '.', ...AT], files, (path) =>
        shown(path, async (page) => {
            assert.equal(await page.locator('#denials article[data-cut-list]').count(), 1);
            await filtered(page, 'namespace=nowhere');
            assert.equal((await visible(page)).length, 0);
            await filtered(page, 'namespace=team&severity=deny');
            assert.equal((await visible(page)).length, 1);
        }));
};

export const a_page_opens_with_the_filter_of_its_address = () =>
    withReport(CHECK, repository(), (path) =>
        shown(path, async (page) => {
            const left = await visible(page);
            assert.deepEqual(left.map((it) => it.codes), ['arkonis/backend-unknown']);
        }, { hash: '#q=ledger-7&severity=deny' }));

export const each_cell_of_the_matrix_filters_the_page = () =>
    withReport(CHECK, repository(), (path) =>
        shown(path, async (page) => {
            const cells = await page.locator('#matrix td').evaluateAll((all) => all.map((cell) => ({ ...cell.dataset, href: cell.querySelector('a')?.getAttribute('href') })));
            assert.equal(cells.length, 12);
            for (const { policy, namespace, count, href } of cells) {
                assert.equal(href, Number(count) > 0 ? `#policy=${policy}&namespace=${namespace}` : undefined);
            }
            await page.locator('#matrix td[data-policy=durable-in-production][data-namespace=support] a').click();
            const left = await visible(page);
            assert.ok(left.length > 0);
            for (const { policy, namespace } of left) {
                assert.ok(policy === 'durable-in-production' && namespace.split(' ').includes('support'), `${policy} ${namespace}`);
            }
            assert.equal(await page.locator('#matrix td:visible').count(), 1);
            assert.ok(await page.locator('article:not([hidden])').first().evaluate((it) => Math.abs(it.getBoundingClientRect().top) < 2));
            assert.match(await page.locator('#filter [role=status]').innerText(), /only of policy durable-in-production/);
            const number = await page.locator('#matrix td:visible').innerText();
            assert.equal(await page.locator('#warnings li[data-object]:not([hidden])').count(), Number(number));
            // It is kept while something else is chosen.
            await page.locator('[name=q]').fill('ledger-5');
            assert.equal(await page.evaluate(() => location.hash), '#q=ledger-5&namespace=support&policy=durable-in-production');
            assert.deepEqual(await violations(page), []);
        }, DESKTOP));

export const dates_stand_in_their_order = () =>
    withReport(CHECK, repository(), (path) =>
        shown(path, async (page) => {
            const rows = await page.locator('#timeline li').evaluateAll((all) => all.map(({ dataset, innerText }) => [dataset.kind, dataset.until, dataset.days, /(\d+ days?)/.exec(innerText)[1]]));
            assert.deepEqual(rows, [
                ['exemption', '2026-12-15', '14', '14 days'],
                ['exemption', '2026-12-29', '28', '28 days'],
                ['promotion', '2027-01-15', '45', '45 days'],
                ['exemption', '2027-03-01', '90', '90 days'],
            ]);
            assert.equal(await page.locator('[data-tile=ending] data').getAttribute('value'), '2');
        }));

export const a_branch_shows_what_is_new_and_what_is_gone = async () => {
    const files = repository();
    const first = report(CHECK, files);
    const cwd = dirname(first);
    const git = (...args) => {
        const run = spawnSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example', ...args], { cwd, encoding: 'utf8' });
        assert.equal(run.status, 0, run.stderr);
    };
    try {
        git('init', '-q');
        git('add', 'teams', 'policies');
        git('commit', '-qm', 'base');
        writeFileSync(join(cwd, 'teams/catalog/ark.yaml'), files['teams/catalog/ark.yaml'].replace('reddis', 'in-context').replace('backend: in-context\n  ttl: 5', 'backend: memory'));
        const run = spawnSync(process.env.MEMGATE, ['check', 'teams', 'policies', ...AT, '--base', 'HEAD', '-o', `html=${first}`], { cwd, encoding: 'utf8' });
        assert.equal(run.status, 1, run.stderr);
        await shown(first, async (page) => {
            const order = await ids(page);
            assert.deepEqual(order.slice(0, 3), ['summary', 'changes', 'denials']);
            const changes = await page.locator('#changes [data-change]').evaluateAll((all) => all.map(({ dataset, textContent }) => `${dataset.change} ${dataset.severity}: ${textContent}`));
            assert.equal(changes.filter((it) => /^new deny: .*ArkMemory catalog\/ledger-13/.test(it)).length, 1, changes.join('\n'));
            assert.equal(changes.filter((it) => /^gone deny: .*ArkMemory catalog\/ledger-7.*reddis.* teams\/catalog\/ark\.yaml:\d+/.test(it)).length, 1, changes.join('\n'));
            assert.ok(changes.every((it) => /catalog/.test(it)), changes.join('\n'));
            const { y } = await page.locator('#denials article').first().boundingBox();
            assert.ok(y < 800, `${y} pixels`);
            assert.deepEqual(await violations(page), []);
        }, DESKTOP);
    } finally {
        forget(first);
    }
};

// A thousand namespaces and a hundred policies, all of which have findings.
export const a_large_matrix_says_what_it_leaves_out = () => {
    const files = {};
    for (let number = 0; number < 100; number += 1) {
        files[`policies/${number}.yaml`] = `apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: policy-${number}}\nspec:\n  actions: {ci: warn}\n  rules: [{id: durable, backends: {durable: true}}]\n`;
    }
    files['memories.yaml'] = Array.from({ length: 1_000 }, (_, number) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: m, namespace: team-${number}}\nspec: {backend: in-context}\n`).join('---\n');
    return withReport(['check', '.', ...AT], files, async (path) => {
        assert.ok(size(path) < 5_000_000, `${size(path)} bytes`);
        await shown(path, async (page) => {
            const cells = await page.locator('#matrix td').count();
            assert.ok(cells > 500 && cells < 3_000, `${cells} cells`);
            assert.match(await page.locator('#matrix').innerText(), /\d+ more policies and \d+ more namespaces with fewer findings are not shown here/);
            assert.ok((await page.evaluate(() => document.scrollingElement.scrollWidth)) <= 1280);
        }, DESKTOP);
    });
};

// Ten thousand agents of one memory, which does not exist.
export const ten_thousand_agents_of_one_memory_fit = () => {
    const files = { 'agents.yaml': Array.from({ length: 10_000 }, (_, number) => `apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: agent-${number}, namespace: team}\nspec: {model: m, systemPrompt: s, memoryRef: {name: one}}\n`).join('---\n') };
    return withReport(['check', '.', ...AT], files, async (path) => {
        assert.ok(size(path) < 5_000_000, `${size(path)} bytes`);
        await shown(path, async (page) => {
            assert.equal(await page.locator('article[data-objects="10000"]').count(), 1);
            assert.equal(await page.locator('article[data-objects="10000"] li[data-object]').count(), 10_000);
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
                const over = await page.locator('main :is(article, li, p, td, th, h3, summary, .tiles)').evaluateAll((all) => all.filter((it) => !it.closest('.scroll, figure') && it.scrollWidth > it.clientWidth + 1 && getComputedStyle(it).display !== 'inline').map((it) => it.outerHTML.slice(0, 200)));
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
                const text = await page.evaluate(() => {
                    const copy = document.body.cloneNode(true);
                    // What explains codes is a document of its own.
                    copy.querySelectorAll('script, #codes').forEach((element) => element.remove());
                    return copy.textContent;
                });
                assert.doesNotMatch(text, /\bpoint\b|lines to memory|passed over/i);
            }));
    }
};
