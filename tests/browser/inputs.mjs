// What the pages are made of.
import { readFileSync } from 'node:fs';

// Clean, with several platforms and a map.
export const CLEAN = ['check', 'examples/arkonis', 'examples/orloj', 'examples/sympozium', 'examples/ark', 'examples/orka'];

// Denials, warnings, notes, policies and exemptions.
export const DIRTY = ['check', 'examples/kagent/wrong', 'docs/tour', 'examples/arkonis', 'examples/orloj', '--policy', 'examples/policy/baseline.yaml', '--policy', 'examples/policy/dated-exemption.yaml', '--at', '2026-12-01T00:00:00Z'];

const POLICY = ['--policy', 'examples/policy/library/durable-in-production.yaml', '--policy', 'examples/policy/baseline.yaml', '--at', '2026-12-01T00:00:00Z'];

// The other commands with a page.
export const AUDIT = ['audit', 'examples/arkonis', 'examples/orloj', ...POLICY];
export const WHAT_IF = ['what-if', 'examples/arkonis', 'examples/orloj', ...POLICY];

// 10,000 objects, each tenth of them denied.
export function huge() {
    const files = {};
    for (let file = 0; file < 100; file += 1) {
        const objects = Array.from({ length: 50 }, (_, number) => {
            const name = `${file}-${number}`;
            const backend = number % 5 ? 'in-context' : 'rediss';
            return `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: memory-${name}, namespace: team-${file}}\nspec:\n  backend: ${backend}\n---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: agent-${name}, namespace: team-${file}}\nspec:\n  model: llama3.2\n  systemPrompt: You scout for facts.\n  memoryRef: {name: memory-${name}}\n`;
        });
        files[`team-${file}.yaml`] = objects.join('---\n');
    }
    return files;
}

// What the scripts among the texts would set.
export const PROOF = 'pwned';

// Texts that could become markup, script, a link, or another text than they are.
const TEXTS = [
    ...JSON.parse(readFileSync(new URL('../support/hostile.json', import.meta.url), 'utf8')),
    'ü漢🧠'.repeat(40),
    'n'.repeat(5_000),
];

// Each text at each place of a manifest, and in the names of files.
export function hostile() {
    const files = {};
    for (const [number, text] of TEXTS.entries()) {
        const it = JSON.stringify(text);
        const escaped = it.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
        // JSON has no trouble with any of these characters in an escape.
        const objects = [
            `{"apiVersion":"arkonis.dev/v1alpha1","kind":"ArkMemory","metadata":{"name":${escaped},"namespace":${escaped},"labels":{${escaped}:${escaped}},"annotations":{${escaped}:${escaped}}},"spec":{"backend":${escaped},${escaped}:1,"redis":{"secretRef":{"name":${escaped}}}}}`,
            `{"apiVersion":"arkonis.dev/v1alpha1","kind":"ArkMemory","metadata":{"name":"m-${number}","namespace":"a"},"spec":{"backend":${escaped}}}`,
            `{"apiVersion":"arkonis.dev/v1alpha1","kind":"ArkAgent","metadata":{"name":"a-${number}","namespace":"a"},"spec":{"model":${escaped},"systemPrompt":${escaped},"memoryRef":{"name":${escaped}}}}`,
            `{"apiVersion":${escaped},"kind":${escaped},"metadata":{"name":${escaped}}}`,
            `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-${number}","namespace":"a","labels":{"arkonis.dev/deployment":${escaped},"memgate.dev/inject":${escaped}}},"spec":{"containers":[{"name":${escaped},"image":${escaped},"env":[{"name":${escaped},"value":${escaped}}]}]}}`,
            `{"apiVersion":"policy.memgate.dev/v1alpha1","kind":"MemoryPolicy","metadata":{"name":"policy-${number}"},"spec":{"match":{"families":["arkonis"]},"exemptions":{"namespaces":[${escaped}]},"rules":[{"id":"durable","backends":{"durable":true},"hint":${escaped},"message":${escaped},"severity":"high"}]}}`,
            `{"apiVersion":"policy.memgate.dev/v1alpha1","kind":"MemoryPolicy","metadata":{"name":${escaped}},"spec":{"rules":[{"id":${escaped},"hint":${escaped}}]}}`,
        ];
        for (const [place, object] of objects.entries()) {
            files[`${number}-${place}.json`] = `${object}\n`;
        }
        // What a line of YAML shows of a value, and a syntax error beside it.
        files[`${number}.yaml`] = `# ${text.replace(/[\u0000-\u001f\u007f-\u009f\ufffe\u2028\u2029]/g, '')}\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: y-${number}, namespace: a}\nspec: {backend: ${it}}\n`;
        const name = text.replace(/[/\0]/g, '_').slice(0, 60);
        files[`${name}-${number}.yaml`] = `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: f-${number}, namespace: a}\nspec: {backend: rediss}\n`;
    }
    files['broken<b>.yaml'] = 'a: {\n';
    return files;
}

const TEAMS = ['billing', 'catalog', 'delivery', 'research', 'search', 'support'];

// 300 objects of six teams on several platforms, with policies and exemptions: 101 of them misspell one field.
export function repository() {
    const files = {};
    const add = (file, object) => (files[file] = files[file] ? `${files[file]}---\n${object}` : object);
    for (const team of TEAMS) {
        add(`teams/${team}/namespace.yaml`, `apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${team}\n  labels: {env: prod, team: ${team}}\n`);
    }
    for (let number = 0; number < 101; number += 1) {
        const team = TEAMS[number % TEAMS.length];
        add(`teams/${team}/memory.yaml`, `apiVersion: orloj.dev/v1\nkind: Memory\nmetadata:\n  name: notes-${number}\n  namespace: ${team}\nspec:\n  type: vector\n  provider: pgvector\n  endpont: postgres://notes@pg.${team}.svc:5432/notes\n  embedding_model: embed-small\n`);
        add(`teams/${team}/agents.yaml`, `apiVersion: orloj.dev/v1\nkind: Agent\nmetadata:\n  name: scribe-${number}\n  namespace: ${team}\nspec:\n  model_ref: chat-main\n  prompt: Summarise what you ingest.\n  memory:\n    ref: notes-${number}\n    allow: [read, search, ingest]\n`);
    }
    for (let number = 0; number < 46; number += 1) {
        const team = TEAMS[number % TEAMS.length];
        const backend = number === 7 ? 'reddis' : number % 4 ? 'in-context' : 'redis';
        const redis = backend === 'redis' ? `\n  redis:\n    secretRef: {name: redis-${team}}` : '';
        const ttl = number === 13 ? '\n  ttl: 5' : '';
        const memory = number === 21 ? 'ledgre' : `ledger-${number}`;
        add(`teams/${team}/ark.yaml`, `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: ledger-${number}\n  namespace: ${team}\nspec:\n  backend: ${backend}${redis}${ttl}\n`);
        add(`teams/${team}/ark.yaml`, `apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata:\n  name: clerk-${number}\n  namespace: ${team}\nspec:\n  model: llama3.2\n  systemPrompt: You keep the ledger.\n  memoryRef: {name: ${memory}}\n`);
    }
    files['policies/durable.yaml'] = `apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: durable-in-production}\nspec:\n  actions: {admission: warn, ci: warn, audit: report}\n  promote: {at: "2027-01-15T00:00:00Z", to: deny}\n  exemptions: {namespaces: [platform-exemptions], maxAge: 180d}\n  rules:\n    - id: durable\n      backends: {durable: true}\n      exemptable: true\n      hint: use redis, a vector store or pgvector\n`;
    for (const [number, [team, until]] of [['billing', '2026-12-15'], ['catalog', '2026-12-29'], ['search', '2027-03-01']].entries()) {
        files[`policies/exemption-${team}.yaml`] = `apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicyExemption\nmetadata: {name: ${team}-moves, namespace: platform-exemptions}\nspec:\n  policy: durable-in-production\n  rules: [durable]\n  target: {namespaces: [${team}], kinds: [ArkMemory], names: ["ledger-*"]}\n  reason: moves to redis with the next release, as agreed\n  ticket: MEM-${number + 1}\n  from: "2026-11-01T00:00:00Z"\n  expiresAt: "${until}T00:00:00Z"\n`;
    }
    return files;
}
