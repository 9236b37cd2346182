// How long an edit takes until its marks are there: node bench.mjs EDITS. A file of 500 lines in a repository of 1,000
// manifests. Each edit changes what is found, and the next one comes when the marks are there.
import { agent, memory, REDIS } from './manifests.mjs';
import { session } from './client.mjs';

const edits = Number(process.argv[2] ?? 100);

const files = {};
for (let number = 0; number < 1_000; number += 1) {
    files[`team-${number % 20}/${number}.yaml`] = number % 2 ? agent(`agent-${number}`, `notes-${number - 1}`) : memory(`notes-${number}`, REDIS);
}
const open = 'team-0/open.yaml';
files[open] = Array.from({ length: 42 }, (_, number) => memory(`open-${number}`, REDIS)).join('---\n');

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1);

await session(files, async (editor) => {
    await editor.open(open);
    await editor.untilAsChecked();
    const [published, asked] = [[], []];
    for (let edit = 0; edit < edits; edit += 1) {
        const [from, to] = edit % 2 ? ['rediss', 'redis'] : ['redis', 'rediss'];
        const place = editor.text(open).indexOf(`backend: ${from}\n`, 5_000) + 'backend: '.length;
        let start = performance.now();
        await editor.edit(open, place, place + from.length, to);
        await editor.until(() => editor.marks(open).length === (edit + 1) % 2, () => 'the marks of an edit');
        published.push(performance.now() - start);
        start = performance.now();
        await editor.actions(open, editor.range(open, `backend: ${to}`, 5_000));
        asked.push(performance.now() - start);
    }
    const lines = editor.text(open).split('\n').length - 1;
    console.log(`a file of ${lines} lines among ${Object.keys(files).length - 1} manifests, ${edits} edits; milliseconds`);
    for (const [what, times] of [['from an edit to its marks', published], ['code actions', asked]]) {
        const sorted = times.sort((one, two) => one - two);
        console.log(`${what}: median ${at(sorted, 0.5)}, 95 of 100 ${at(sorted, 0.95)}, most ${at(sorted, 1)}`);
    }
    console.log(`memory: ${Math.round(editor.memory() / 1024)} MiB`);
});
process.exit(0);
