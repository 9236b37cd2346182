// An hour of typing.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { session } from '../client.mjs';
import { play } from '../replay.mjs';
import { record } from '../typing.mjs';

const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url));
// Another number makes another hour.
const SEED = Number(process.env.MEMGATE_TEST_SEED ?? 34);
const STRETCHES = 10;
// What the allocator may keep besides: a twentieth, and a few large texts.
const GROWTH = 1.05;
const SPARE = 8 * 1024;

function examples(...folders) {
    const files = {};
    for (const folder of folders) {
        for (const name of readdirSync(EXAMPLES + folder).filter((name) => /\.ya?ml$/.test(name))) {
            files[`${folder}/${name}`] = readFileSync(`${EXAMPLES}${folder}/${name}`, 'utf8');
        }
    }
    return files;
}

export const an_hour_of_typing_ends_with_the_marks_of_check_and_no_more_memory = () => {
    const files = examples('arkonis', 'orloj', 'policy');
    const events = record(files, SEED);
    assert.ok(events.at(-1).at > 59 * 60_000);
    return session(files, async (editor) => {
        const memory = [];
        for (const [number, event] of events.entries()) {
            await play(editor, event);
            if (number % Math.ceil(events.length / STRETCHES) === 0 || number === events.length - 1) {
                // `check` reports nothing beside choices that it cannot read.
                await editor.write('.memgate.yaml', 'failOn: warn\n');
                await editor.untilAsChecked();
                memory.push(editor.memory());
            }
        }
        const [, first] = memory;
        const last = memory.at(-1);
        console.log(`${events.length} events, ${events.filter(({ kind }) => kind === 'edit').length} edits; KiB: ${memory.join(' ')}`);
        assert.ok(last <= first * GROWTH + SPARE, `${memory.join(' ')} KiB`);
    });
};
