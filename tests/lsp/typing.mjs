// An hour of work on a repository, made from a seed: the same seed and files give the same recording. The author types,
// mistypes and corrects, deletes and pastes, saves, changes between files, and looks at things while pausing. Other programs
// change files, and not all of them are watched.

const HOUR = 3_600_000;
const OPEN_AT_ONCE = 6;
const VALUES = ['redis', 'rediss', 'in-context', 'vector-store', 'notes', 'notes-short', 'team-a', '0', '-1', '3600', '"1h"', 'true', 'yes', '[a, b]', '{a: 1}', '"', '{', '*a', '&a x', 'ünï', '🧠', '| ', 'https://user:pw@host:1/x', 'a: b', ''];
const LINES = ['backend: redis', 'memoryRef: {name: notes}', 'ttlSeconds: 60', '# memgate: ignore[arkonis/redis-required] later', 'labels: {a: b}', '- name: a', 'env: []', '---', 'spec:', '\tx: 1', 'name: 🧠漢', "key: 'it''s'"];
const MANIFEST = '---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: typed\n  namespace: team-a\nspec:\n  backend: redis\n  redis:\n    secretRef:\n      name: typed\n    ttlSeconds: 60\n';
const PROJECTS = ['failOn: warn\n', 'rules:\n  - {codes: ["arkonis/*"], severity: warn}\n', 'rules: {', 'namespace: team-a\n', ''];

// Numbers from 0 up to 1, by xorshift.
function dice(seed) {
    let state = seed >>> 0 || 1;
    return () => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return (state >>> 0) / 2 ** 32;
    };
}

// Events in order: `{ at, kind, ... }`, with `at` in milliseconds. Offsets are those of JavaScript.
export function record(files, seed) {
    const random = dice(seed);
    const below = (count) => Math.floor(random() * count);
    const one = (list) => list[below(list.length)];
    const names = Object.keys(files).sort();
    const [disk, texts, events] = [new Map(Object.entries(files)), new Map(), []];
    let [at, file] = [0, undefined];

    const add = (kind, event = {}) => events.push({ at, kind, file, ...event });
    const think = (least, most) => (at += least + below(most - least));
    const edit = (offset, removed, text) => {
        const old = texts.get(file);
        texts.set(file, old.slice(0, offset) + text + old.slice(offset + removed));
        add('edit', { offset, removed, text });
    };
    const type = (offset, text) => {
        let place = offset;
        for (const character of text) {
            think(80, 260);
            if (random() < 0.03) {
                edit(place, 0, one(['x', ' ', ':', '"', '[']));
                think(100, 400);
                edit(place, 1, '');
            }
            edit(place, 0, character);
            place += character.length;
        }
        return place;
    };
    const look = (offset) => {
        think(700, 4_000);
        add(one(['hover', 'actions', 'definition', 'references']), { offset });
    };
    const open = (name) => {
        file = name;
        if (!texts.has(name)) {
            if (texts.size >= OPEN_AT_ONCE) {
                const oldest = texts.keys().next().value;
                texts.delete(oldest);
                add('close', { file: oldest });
            }
            texts.set(name, disk.get(name));
            add('open', { text: disk.get(name) });
        }
    };
    const save = () => {
        disk.set(file, texts.get(file));
        add('save');
    };
    // The start and the end of a line.
    const line = () => {
        const text = texts.get(file);
        const start = text.lastIndexOf('\n', below(text.length + 1) - 1) + 1;
        const end = text.indexOf('\n', start);
        return [start, end < 0 ? text.length : end];
    };

    const work = {
        value: () => {
            const [start, end] = line();
            const colon = texts.get(file).slice(start, end).indexOf(': ');
            let place = end;
            for (const floor = colon < 0 ? start : start + colon + 2; place > floor && end - place < 12; ) {
                think(60, 160);
                // A character of two units goes at once.
                const step = place - 2 >= floor && /^[\ud800-\udbff]/.test(texts.get(file).slice(place - 2)) ? 2 : 1;
                place -= step;
                edit(place, step, '');
            }
            look(type(place, one(VALUES)));
        },
        line: () => {
            const [start, end] = line();
            const indentation = /^ */.exec(texts.get(file).slice(start))[0];
            look(type(end, `\n${indentation}${one(LINES)}`));
        },
        cut: () => {
            const [start, end] = line();
            edit(start, Math.min(end + 1, texts.get(file).length) - start, '');
            look(start);
        },
        paste: () => {
            const [start] = line();
            edit(start, 0, one(['---\n', '']) + disk.get(one(names)));
            look(start);
        },
        manifest: () => look(type(texts.get(file).length, MANIFEST)),
        undo: () => {
            edit(0, texts.get(file).length, files[file]);
            look(0);
        },
        save,
        change: () => open(one(names)),
        other: () => {
            const name = one(names);
            const text = random() < 0.5 ? files[name] : files[name].slice(0, below(files[name].length));
            disk.set(name, text);
            add('write', { file: name, text });
        },
        // Another branch has other texts in some files, and the editor reports none of them.
        checkout: () => {
            const texts = Object.fromEntries(names.filter(() => random() < 0.3).map((name) => [name, one([files[name], files[one(names)]])]));
            Object.entries(texts).forEach(([name, text]) => disk.set(name, text));
            add('checkout', { texts });
        },
        project: () => add('write', { file: '.memgate.yaml', text: one(PROJECTS) }),
    };
    const habits = ['value', 'value', 'value', 'value', 'line', 'line', 'line', 'cut', 'paste', 'manifest', 'undo', 'undo', 'save', 'change', 'change', 'other', 'checkout', 'project'];

    open(names[0]);
    while (at < HOUR) {
        // Files do not grow for ever.
        const habit = texts.get(file).length > 20_000 ? 'undo' : one(habits);
        work[habit]();
        think(500, 9_000);
    }
    return events;
}
