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
