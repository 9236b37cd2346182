// Files and folders that come, change and go while an editor is open.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agent, memory } from '../manifests.mjs';
import { lsp, session } from '../client.mjs';

const UNKNOWN = 'arkonis/backend-unknown';
const MISSING = 'arkonis/memory-not-found';

export const a_closed_file_has_no_marks = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss') }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.untilMarked('memory.yaml', UNKNOWN);
        await editor.close('memory.yaml');
        await editor.untilMarked('memory.yaml');
        await editor.open('memory.yaml');
        await editor.untilMarked('memory.yaml', UNKNOWN);
    });

export const a_file_that_is_deleted_while_open_is_still_judged = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.open('memory.yaml');
        await editor.remove('memory.yaml');
        await editor.replace('memory.yaml', 'in-context', 'rediss');
        await editor.untilMarked('memory.yaml', UNKNOWN);
        await editor.untilAsChecked();
        await editor.close('memory.yaml');
        await editor.untilMarked('memory.yaml');
        await editor.remove('agent.yaml');
        await editor.close('agent.yaml');
        await editor.untilMarked('agent.yaml');
    });

export const other_files_count_as_they_are_on_disk = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.untilAsChecked();
        await editor.remove('memory.yaml');
        await editor.write('others/memory.yaml', memory('elsewhere'));
        await editor.untilMarked('agent.yaml', MISSING);
        await editor.write('others/memory.yaml', memory('notes'));
        await editor.untilMarked('agent.yaml');
        // Renamed by the editor itself.
        await editor.write('memory.yaml', memory('notes'));
        await editor.remove('others');
        await editor.untilMarked('agent.yaml');
        await editor.write('memory.yaml', 'half: {');
        await editor.untilAsChecked();
    });

// Another text of the same size with the same time, which the client reports.
export const a_file_that_looks_the_same_counts_once_it_is_reported = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.untilAsChecked();
        await editor.replace('agent.yaml', 'facts', 'words');
        await editor.untilAsChecked();
        const { atime, mtime } = statSync(editor.path('memory.yaml'));
        writeFileSync(editor.path('memory.yaml'), memory('notez'));
        utimesSync(editor.path('memory.yaml'), atime, mtime);
        await editor.changedOnDisk('memory.yaml', lsp.FileChangeType.Changed);
        await editor.untilMarked('agent.yaml', MISSING);
        await editor.untilAsChecked();
    });

export const what_is_saved_counts_in_other_files = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.open('memory.yaml');
        await editor.replace('memory.yaml', 'notes', 'other');
        await editor.save('memory.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
    });

const RULES = 'rules:\n  - {codes: [arkonis/backend-unknown], severity: warn}\n';

export const choices_of_the_repository_count_at_once = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss') }, async (editor) => {
        const severities = (...expected) =>
            editor.until(
                () => JSON.stringify(editor.marks('memory.yaml').map(({ severity }) => severity)) === JSON.stringify(expected),
                () => `severities ${expected} and not ${JSON.stringify(editor.marks('memory.yaml'))}`,
            );
        await editor.open('memory.yaml');
        await severities(1);
        await editor.write('.memgate.yaml', RULES);
        await severities(2);
        // Broken, half-typed and mended.
        for (const broken of ['rules: {', 'rules: [{codes: [arkonis/no-such-code], severity: warn}]', 'unknown: true', '\0']) {
            await editor.write('.memgate.yaml', broken);
            await editor.until(
                () => !editor.codes('memory.yaml').includes(UNKNOWN),
                () => `the reason why nothing is judged, not ${JSON.stringify(editor.marks('memory.yaml'))}`,
            );
            assert.match(editor.marks('memory.yaml')[0].message, /\.memgate\.yaml/);
            await editor.write('.memgate.yaml', RULES);
            await severities(2);
        }
        // What the cluster denies stays a note.
        await editor.write('.memgate.yaml', RULES.replace('warn', '"off"'));
        await severities(3);
        await editor.write('.memgate.yaml', 'exclude: ["*.yaml"]\n');
        await severities();
        await editor.remove('.memgate.yaml');
        await severities(1);
        await editor.untilAsChecked();
    });

export const choices_are_edited_like_a_manifest = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss'), '.memgate.yaml': RULES }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.open('.memgate.yaml');
        await editor.untilMarked('memory.yaml', UNKNOWN);
        for (let typed = 1; typed < RULES.length; typed += 7) {
            await editor.change('.memgate.yaml', [{ text: RULES.slice(0, typed) }]);
        }
        await editor.change('.memgate.yaml', [{ text: RULES.replace('warn', 'note') }]);
        await editor.save('.memgate.yaml');
        await editor.until(() => editor.marks('memory.yaml')[0]?.severity === 3, () => 'a note');
        await editor.close('.memgate.yaml');
        await editor.untilAsChecked();
    });

export const a_file_that_is_left_out_is_not_marked = () =>
    session({
        '.memgate.yaml': 'exclude: [vendor]\n',
        'vendor/memory.yaml': memory('notes', 'backend: rediss'),
        'chart/Chart.yaml': 'apiVersion: v2\nname: chart\nversion: 1.0.0\n',
        'vendor/Chart.yaml': 'apiVersion: v2\nname: chart\nversion: 1.0.0\n',
        'vendor/templates/memory.yaml': memory('{{ .Release.Name }}', 'backend: rediss'),
        'chart/values.yaml': 'name: notes\n',
        'here.yaml': memory('here', 'backend: rediss'),
    }, async (editor) => {
        for (const name of ['vendor/memory.yaml', 'vendor/templates/memory.yaml', 'chart/values.yaml', 'chart/Chart.yaml', 'here.yaml']) {
            await editor.open(name);
        }
        await editor.untilMarked('here.yaml', UNKNOWN);
        await editor.untilAsChecked();
        await editor.replace('vendor/memory.yaml', 'rediss', 'raedis');
        await editor.replace('vendor/templates/memory.yaml', 'rediss', '{{ .Values.backend }}');
        await editor.untilAsChecked();
    });

export const a_template_of_a_chart_is_judged_in_part = () =>
    session({
        'chart/Chart.yaml': 'apiVersion: v2\nname: chart\nversion: 1.0.0\n',
        'chart/templates/memory.yaml': `${memory('a', 'backend: rediss\n  retentoin: 5')}---\n${memory('b', 'backend: redis')}`,
        'chart/templates/agent.yaml': `{{- if .Values.agent }}\n${agent('{{ .Release.Name }}-agent', '{{ .Values.memory }}')}  {{- with .Values.more }}\n  {{- toYaml . | nindent 2 }}\n  {{- end }}\n{{- end }}\n`,
    }, async (editor) => {
        await editor.open('chart/templates/memory.yaml');
        await editor.open('chart/templates/agent.yaml');
        const wrong = () => editor.marks('chart/templates/memory.yaml').filter(({ severity }) => severity < 3);
        await editor.until(() => wrong().length > 0, () => 'its marks');
        // Nothing that is required: values may bring it.
        assert.deepEqual(wrong().map(({ code, range }) => [code, editor.textAt('chart/templates/memory.yaml', range)]), [
            [UNKNOWN, 'rediss'],
            ['arkonis/unknown-field', 'retentoin'],
        ]);
        assert.deepEqual(editor.marks('chart/templates/agent.yaml').filter(({ severity }) => severity < 3), []);
        // What helm fills in is judged as it is built, which an editor does not do.
        await editor.replace('chart/templates/memory.yaml', 'rediss', '{{ .Values.backend');
        await editor.until(() => wrong().length === 0, () => 'no mark');
    });

export const two_folders_are_judged_apart = () =>
    session({ 'one/memory.yaml': memory(), 'one/agent.yaml': agent(), 'two/memory.yaml': memory('other'), 'two/agent.yaml': agent() }, async (editor) => {
        await editor.open('one/agent.yaml');
        await editor.open('two/agent.yaml');
        await editor.untilMarked('two/agent.yaml', MISSING);
        await editor.untilMarked('one/agent.yaml');
        await editor.open('two/memory.yaml');
        await editor.replace('two/memory.yaml', 'other', 'notes');
        await editor.untilMarked('two/agent.yaml');
        await editor.write('two/.memgate.yaml', 'rules:\n  - {codes: ["arkonis/*"], severity: note}\n');
        await editor.replace('two/memory.yaml', 'in-context', 'rediss');
        await editor.until(() => editor.marks('two/memory.yaml')[0]?.severity === 3, () => 'a note');
        assert.deepEqual(editor.marks('one/agent.yaml'), []);
    }, { folders: ['one', 'two'], repository: false });

export const folders_come_and_go = () =>
    session({ 'one/agent.yaml': agent(), 'two/memory.yaml': memory('notes', 'backend: rediss') }, async (editor) => {
        const folder = (name) => ({ uri: editor.uri(name), name });
        const change = (added, removed) =>
            editor.notify(lsp.DidChangeWorkspaceFoldersNotification.type, { event: { added, removed } });
        await editor.open('two/memory.yaml');
        await change([folder('two')], []);
        await editor.untilMarked('two/memory.yaml', UNKNOWN);
        await change([folder('gone')], [folder('one'), folder('never')]);
        await change([], [folder('two'), folder('gone')]);
        await editor.replace('two/memory.yaml', 'rediss', 'raedis');
        await editor.untilMarked('two/memory.yaml', UNKNOWN);
    }, { folders: ['one'], repository: false });

export const a_file_without_a_folder_is_judged_alone = () =>
    session({ 'agent.yaml': agent(), 'memory.yaml': memory() }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
        // Files that are open beside each other are judged together.
        await editor.open('memory.yaml');
        await editor.untilMarked('agent.yaml');
    }, { folders: null, repository: false });

export const a_repository_without_a_folder_is_the_state = () =>
    session({ 'deep/agent.yaml': agent(), 'memory.yaml': memory('other') }, async (editor) => {
        await editor.open('deep/agent.yaml');
        await editor.untilMarked('deep/agent.yaml', MISSING);
        await editor.write('memory.yaml', memory('notes'));
        await editor.untilMarked('deep/agent.yaml');
    }, { folders: null });

export const an_older_client_names_its_folder_otherwise = () =>
    session({ 'agent.yaml': agent(), 'memory.yaml': memory('other') }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
    }, { capabilities: {}, initialize: (editor) => ({ workspaceFolders: undefined, rootUri: editor.uri('.') }) });

export const a_new_file_is_judged_before_it_is_saved = () =>
    session({ 'agent.yaml': agent(), 'memory.yaml': memory('other') }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
        await editor.open('new/notes.yaml', '');
        await editor.change('new/notes.yaml', [{ text: memory('notes', 'backend: rediss') }]);
        await editor.untilMarked('new/notes.yaml', UNKNOWN);
        await editor.untilMarked('agent.yaml');
        mkdirSync(editor.path('new'));
        await editor.save('new/notes.yaml');
        await editor.untilAsChecked();
    });

export const an_open_file_with_choices_of_its_own_counts_for_the_files_around_it = () =>
    session({ 'agent.yaml': agent(), 'team/.memgate.yaml': 'failOn: warn\n', 'team/memory.yaml': memory('other', 'backend: rediss') }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.open('team/memory.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
        await editor.replace('team/memory.yaml', 'other', 'notes');
        await editor.untilMarked('agent.yaml', 'arkonis/memory-invalid');
        await editor.replace('team/memory.yaml', 'rediss', 'in-context');
        await editor.untilMarked('agent.yaml');
        await editor.replace('team/memory.yaml', 'apiVersion', '# One.\n# Two.\napiVersion');
        const [{ range }] = await editor.definition('agent.yaml', 'name: notes');
        assert.equal(range.start.line, 5);
    });

export const odd_addresses_are_files_or_nothing = () =>
    session({ 'memory.yaml': memory() }, async (editor) => {
        const wrong = memory('odd', 'backend: rediss');
        for (const name of ['a b#c?d%20e.yaml', 'ä/ö漢🧠.yaml', "quote'\"&<>.yaml", '[x]{y}*.yaml', '-.yaml', '--help.yaml', 'x..yaml']) {
            await editor.open(name, wrong);
            await editor.untilMarked(name, UNKNOWN);
            await editor.write(name, wrong);
            await editor.replace(name, 'rediss', 'in-context');
            await editor.untilMarked(name);
            await editor.close(name);
            await editor.remove(name);
        }
        for (const uri of ['untitled:Untitled-1', 'git:/a.yaml?{}', 'vscode-notebook-cell:/a.yaml', 'file:///', 'file://host/a.yaml', 'file:///%00.yaml', 'file:///%ff.yaml', 'http://[', 'a', '', 'file:relative.yaml']) {
            const textDocument = { uri, languageId: 'yaml', version: 1, text: wrong };
            await editor.notify(lsp.DidOpenTextDocumentNotification.type, { textDocument });
            await editor.notify(lsp.DidChangeTextDocumentNotification.type, { textDocument: { uri, version: 2 }, contentChanges: [{ text: '' }] });
            const position = { line: 0, character: 0 };
            await editor.request(lsp.HoverRequest.type, { textDocument: { uri }, position }).catch(() => undefined);
            await editor.notify(lsp.DidCloseTextDocumentNotification.type, { textDocument: { uri } });
        }
        await editor.open('memory.yaml');
        await editor.replace('memory.yaml', 'in-context', 'rediss');
        await editor.untilMarked('memory.yaml', UNKNOWN);
    });

export const a_folder_that_vanishes_is_survived = () =>
    session({ 'one/memory.yaml': memory('notes', 'backend: rediss'), 'two/memory.yaml': memory('other', 'backend: rediss') }, async (editor) => {
        await editor.open('one/memory.yaml');
        await editor.untilMarked('one/memory.yaml', UNKNOWN);
        rmSync(editor.path('one'), { recursive: true });
        await editor.replace('one/memory.yaml', 'rediss', 'raedis');
        await editor.hover('one/memory.yaml', 'raedis').catch(() => undefined);
        await editor.open('two/memory.yaml');
        await editor.untilMarked('two/memory.yaml', UNKNOWN);
        mkdirSync(editor.path('one'));
        writeFileSync(editor.path('one/memory.yaml'), memory('notes'));
        await editor.replace('one/memory.yaml', 'raedis', 'rediss');
        await editor.untilMarked('one/memory.yaml', UNKNOWN);
    }, { folders: ['one', 'two'], repository: false });

export const a_server_that_is_started_elsewhere_reads_the_folder = () =>
    session({ 'agent.yaml': agent(), 'memory.yaml': memory('other') }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
    }, { directory: '/' });

export const links_and_loops_of_directories_are_read_as_check_reads_them = () =>
    session({ 'agent.yaml': agent(), 'memory.yaml': memory('other') }, async (editor) => {
        symlinkSync('.', editor.path('loop'));
        symlinkSync('nowhere.yaml', editor.path('dangling.yaml'));
        symlinkSync('/etc/passwd', editor.path('outside.yaml'));
        symlinkSync('memory.yaml', editor.path('link.yaml'));
        await editor.open('agent.yaml');
        await editor.untilMarked('agent.yaml', MISSING);
        await editor.untilAsChecked();
    });

export const choices_of_a_folder_within_count_for_its_files = () =>
    session({
        'memory.yaml': memory('top', 'backend: rediss'),
        'team/.memgate.yaml': RULES,
        'team/deep/memory.yaml': memory('deep', 'backend: rediss'),
    }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.open('team/deep/memory.yaml');
        await editor.until(() => editor.marks('team/deep/memory.yaml')[0]?.severity === 2, () => 'a warning');
        await editor.until(() => editor.marks('memory.yaml')[0]?.severity === 1, () => 'a denial');
        await editor.remove('team/.memgate.yaml');
        await editor.until(() => editor.marks('team/deep/memory.yaml')[0]?.severity === 1, () => 'a denial');
    });

export const what_flags_name_must_be_there = async () => {
    for (const [flag, problem] of [['--policy', /not everything was read: .*none\.yaml: no such file/], ['--with', /not everything was read: .*none\.yaml: no such file/]]) {
        await session({ 'memory.yaml': memory() }, async (editor) => {
            await editor.open('memory.yaml');
            await editor.until(() => editor.marks('memory.yaml').length === 1, () => 'an error');
            assert.match(editor.marks('memory.yaml')[0].message, problem);
        }, { arguments: [flag, 'none.yaml'] });
    }
};

// Paths of flags are those of the directory in which the editor starts the server.
export const flags_count_in_each_folder = async () => {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), 'memgate-lsp-flags-')));
    writeFileSync(join(directory, 'cluster.yaml'), memory());
    const files = { 'agent.yaml': agent(), 'team/.memgate.yaml': 'strict: true\n', 'team/agent.yaml': agent() };
    await session(files, async (editor) => {
        await editor.open('agent.yaml');
        await editor.open('team/agent.yaml');
        await editor.untilMarked('agent.yaml');
        await editor.untilMarked('team/agent.yaml');
    }, { directory, arguments: ['--with', 'cluster.yaml'] });
    rmSync(directory, { recursive: true });
};

// An open exemption has all files judged, and an error of another file stays there.
export const a_damaged_file_does_not_hide_the_others = () =>
    session({
        'agent.yaml': agent(),
        'broken.yaml': 'apiVersion: v1\na: [\n',
        'exemption.yaml': 'apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicyExemption\nmetadata: {name: e, namespace: p}\nspec: {policy: p, target: {namespaces: [t]}, reason: r, expiresAt: "2099-01-01T00:00:00Z"}\n',
    }, async (editor) => {
        await editor.open('agent.yaml');
        await editor.open('exemption.yaml');
        await editor.until(() => editor.marks('exemption.yaml').length > 0, () => 'the marks of the exemption');
        assert.deepEqual(editor.marks('agent.yaml').filter(({ message }) => /not everything was read/.test(message)), []);
    });

export const a_new_file_is_judged_where_a_saved_one_is = () =>
    session({ '.memgate.yaml': 'paths: [sub]\n', 'sub/agent.yaml': agent(), 'sub/chart/Chart.yaml': 'name: x\n' }, async (editor) => {
        const wrong = memory('notes', 'backend: rediss');
        await editor.open('sub/new.yaml', wrong);
        await editor.untilMarked('sub/new.yaml', UNKNOWN);
        for (const name of ['other/new.yaml', 'sub/.hidden/new.yaml', 'sub/chart/templates/new.yaml']) {
            await editor.open(name, wrong);
        }
        // The last change is judged with all of them.
        await editor.replace('sub/new.yaml', 'rediss', 'in-context');
        await editor.untilMarked('sub/new.yaml');
        // In a template of a chart nothing is marked.
        for (const name of ['other/new.yaml', 'sub/.hidden/new.yaml', 'sub/chart/templates/new.yaml']) {
            assert.deepEqual(editor.marks(name), [], name);
        }
    });

// All of a home would be read, so a file in it is judged alone.
export const a_home_is_not_read = () =>
    session({ 'memory.yaml': memory('notes', 'backend: rediss'), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('agent.yaml');
        // With the folder as a repository, the memory would be found, and be invalid.
        await editor.untilMarked('agent.yaml', MISSING);
    }, { repository: false, environment: (folder) => ({ HOME: folder }) });
