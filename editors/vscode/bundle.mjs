// Bundles the extension into one file, and the licences of what is in it into another.
import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { build } from 'esbuild';

// As in deny.toml, and what npm's packages add to it.
const ALLOWED = ['MIT', 'ISC', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0'];

await rm('out', { recursive: true, force: true });
const { metafile } = await build({
    entryPoints: ['src/extension.ts'],
    outfile: 'out/extension.js',
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    external: ['vscode'],
    define: { MEMGATE_SOURCE: JSON.stringify(process.env.MEMGATE_SOURCE ?? '') },
    minify: true,
    legalComments: 'none',
    metafile: true,
});

const folders = Object.keys(metafile.inputs).map((input) => input.match(/^.*node_modules\/(@[^/]+\/)?[^/]+/)?.[0]);
const texts = [];
for (const folder of [...new Set(folders)].filter(Boolean).sort()) {
    const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!ALLOWED.includes(license) || !file) {
        throw new Error(`${name} ${version} cannot be bundled: licence ${license}, text ${file ?? 'missing'}`);
    }
    texts.push(`${name} ${version} (${license})\n\n${(await readFile(`${folder}/${file}`, 'utf8')).trim()}\n`);
}
await writeFile('out/licences.txt', texts.join(`\n${'-'.repeat(80)}\n\n`));
